"""Score one recipe in every task of evaluation.tasks."""

from pathlib import Path

import click

from pipeline_lib.contract.features import read_features
from pipeline_lib.contract.lexicons import read_lexicon
from pipeline_lib.contract.queries import write_queries
from pipeline_lib.contract.reports import write_report
from pipeline_lib.contract.tables import read_captions, read_images, read_pairs
from pipeline_lib.corpora.scored_pairs import read_scored_pairs
from pipeline_lib.evaluation.embedding import embed_evaluated, scored_sentences
from pipeline_lib.evaluation.evaluated import Evaluated
from pipeline_lib.evaluation.reports import reports
from pipeline_lib.evaluation.retrieval.hits import image_hits
from pipeline_lib.evaluation.retrieval.queries import query_table
from pipeline_lib.models.joint_space import JointSpace
from pipeline_lib.running.edge import EdgeCommand
from pipeline_lib.running.publishing import publish
from pipeline_lib.settings.loading import load_settings
from pipeline_lib.training.examples import join_features


@click.command(cls=EdgeCommand, help=__doc__)
@click.argument("name")
def main(name: str) -> None:
    """Write metrics/reports/recipes/NAME/scores (TASK.json, hits.csv) and data/queries."""
    run = _evaluated(name)
    queries = query_table(run.ranked, run.scores)
    write_queries(queries, Path(f"data/queries/{name}.parquet"))
    made = reports(run, name)
    with publish(Path(f"metrics/reports/recipes/{name}/scores")) as folder:
        folder.mkdir()
        image_hits(queries).to_csv(folder / "hits.csv", index=False)
        for task, report in made.items():
            write_report(report, folder / f"{task}.json")


def _evaluated(name: str) -> Evaluated:
    settings = load_settings()
    recipe, evaluations = settings.recipe(name), settings.evaluations
    captions, images = (
        table[table["split"] == evaluations.retrieval.split]
        for table in (
            read_captions(Path(f"data/captions/{recipe.dataset}.parquet")),
            read_images(Path(f"data/images/{recipe.dataset}.parquet")),
        )
    )
    features = join_features(
        read_features(Path(f"data/features/{recipe.features}.h5")),
        read_features(Path(f"data/features/{recipe.more_features}.h5")),
    )
    scored = {
        set_name: read_scored_pairs(Path(evaluations.sts.source) / chosen.file)
        for set_name, chosen in evaluations.sts.sets.items()
        if chosen.language in recipe.languages
    }
    sentences = scored_sentences(scored, evaluations.sts, settings.tokenizers)
    return Evaluated(
        recipe=recipe,
        settings=evaluations,
        pools={language: settings.pools[language] for language in recipe.languages},
        embeddings={
            seed: embed_evaluated(
                JointSpace.load(Path(f"data/models/{name}/seed-{seed}")).to_best_device(),
                captions,
                images,
                features,
                sentences,
            )
            for seed in recipe.seeds
        },
        captions=captions,
        pairs=read_pairs(Path(f"data/pairs/{recipe.pairs}.parquet")),
        scored=scored,
        lexicon=read_lexicon(Path(f"data/lexicons/{evaluations.word_translation.lexicon}.parquet")),
    )


if __name__ == "__main__":
    main()
