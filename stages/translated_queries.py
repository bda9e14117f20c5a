"""Query a recipe's models by captions that were translated into a language they read."""

from pathlib import Path

import click

from pipeline_lib.contract.features import read_features
from pipeline_lib.contract.queries import write_queries
from pipeline_lib.contract.reports import write_report
from pipeline_lib.contract.tables import read_captions, read_images
from pipeline_lib.evaluation.embedding import embed_evaluated
from pipeline_lib.evaluation.retrieval.pools import rank_pools
from pipeline_lib.evaluation.retrieval.queries import query_table
from pipeline_lib.evaluation.retrieval.recalls import summarise
from pipeline_lib.evaluation.retrieval.scores import SCORES
from pipeline_lib.models.joint_space import JointSpace
from pipeline_lib.running.edge import EdgeCommand
from pipeline_lib.settings.loading import load_settings
from pipeline_lib.settings.strict import choose


@click.command(cls=EdgeCommand, help=__doc__)
@click.argument("name")
def main(name: str) -> None:
    """Write metrics/reports/translated_queries/NAME.json, data/translated_queries/NAME.parquet."""
    settings = load_settings()
    chosen = choose(settings.translated_queries, name, "entry of translated_queries")
    retrieval, seeds = settings.evaluations.retrieval, settings.recipe(chosen.recipe).seeds
    translation = settings.translations[chosen.translation]
    pool = {translation.target_language: "machine"}
    captions, images = (
        table[table["split"] == retrieval.split]
        for table in (
            read_captions(Path(f"data/captions/{chosen.translation}.parquet")),
            read_images(Path(f"data/images/{chosen.translation}.parquet")),
        )
    )
    features = read_features(Path(f"data/features/{chosen.features}.h5"))
    ranked = {}
    for seed in seeds:
        folder = Path(f"data/models/{chosen.recipe}/seed-{seed}")
        model = JointSpace.load(folder).to_best_device()
        scores = SCORES[model.architecture.similarity]
        vectors = embed_evaluated(model, captions, images, features, {})
        ranked[seed] = rank_pools(vectors, captions, pool, scores)
    write_queries(query_table(ranked, scores), Path(f"data/translated_queries/{name}.parquet"))
    report = {
        "recipe": chosen.recipe,
        "source_language": translation.source_language,
        "target_language": translation.target_language,
        "per_seed": {
            str(seed): summarise(pools[translation.target_language].ranks, **retrieval.bootstrap)
            for seed, pools in ranked.items()
        },
    }
    write_report(report, Path(f"metrics/reports/translated_queries/{name}.json"))


if __name__ == "__main__":
    main()
