"""Score one recipe's image-text retrieval in every language it knows."""

import json
from pathlib import Path

import click

from pipeline_lib.contract.embeddings import read_embeddings
from pipeline_lib.contract.tables import read_captions
from pipeline_lib.evaluation.pools import retrieval_report
from pipeline_lib.publishing import publish
from pipeline_lib.settings.study import load_settings


@click.command(help=__doc__)
@click.argument("name")
def main(name: str) -> None:
    """Write metrics/recipes/NAME/retrieval.json."""
    settings = load_settings()
    recipe = settings.recipe(name)
    report = retrieval_report(
        read_embeddings(Path(f"data/embeddings/{name}.h5")),
        read_captions(Path(f"data/captions/{recipe.dataset}.parquet")),
        {language: settings.pools[language] for language in recipe.languages},
        settings.evaluations.retrieval,
        recipe.similarity,
    )
    with publish(Path(f"metrics/recipes/{name}/retrieval.json")) as path:
        path.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
