"""Score one recipe in every task: retrieval, translation, STS, word alignment, and its probes."""

from pathlib import Path

import click

from pipeline_lib.contract.embeddings import read_embeddings
from pipeline_lib.contract.lexicons import read_lexicon
from pipeline_lib.contract.queries import write_queries
from pipeline_lib.contract.tables import read_captions, read_pairs
from pipeline_lib.evaluation.evaluated import Evaluated
from pipeline_lib.evaluation.hits import image_hits
from pipeline_lib.evaluation.queries import query_table
from pipeline_lib.evaluation.report_text import to_json
from pipeline_lib.evaluation.reports import REPORTS
from pipeline_lib.evaluation.sts import read_scored_pairs
from pipeline_lib.publishing import publish
from pipeline_lib.settings.study import load_settings


@click.command(help=__doc__)
@click.argument("name")
def main(name: str) -> None:
    """Write metrics/recipes/NAME/TASK.json of every task, images.csv, data/queries/NAME.parquet."""
    settings = load_settings()
    recipe, evaluations = settings.recipe(name), settings.evaluations
    captions = read_captions(Path(f"data/captions/{recipe.dataset}.parquet"))
    run = Evaluated(
        recipe=recipe,
        settings=evaluations,
        pools={language: settings.pools[language] for language in recipe.languages},
        embeddings=read_embeddings(Path(f"data/embeddings/{name}.h5")),
        captions=captions[captions["split"] == evaluations.retrieval.split],
        pairs=read_pairs(Path(f"data/pairs/{recipe.pairs}.parquet")),
        scored={
            set_name: read_scored_pairs(Path(evaluations.sts.source) / scored.file)
            for set_name, scored in evaluations.sts.sets.items()
            if scored.language in recipe.languages
        },
        lexicon=read_lexicon(Path(f"data/lexicons/{evaluations.alignment.lexicon}.parquet")),
    )
    queries = query_table(run.ranked, run.scores)
    write_queries(queries, Path(f"data/queries/{name}.parquet"))
    with publish(Path(f"metrics/recipes/{name}/images.csv")) as path:
        image_hits(queries).to_csv(path, index=False)
    for task, report in REPORTS.items():
        with publish(Path(f"metrics/recipes/{name}/{task}.json")) as path:
            path.write_text(to_json(report(run)), encoding="utf-8")


if __name__ == "__main__":
    main()
