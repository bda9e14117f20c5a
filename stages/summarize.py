"""Gather every recipe's scores into one table, as CSV, Markdown and the metric DVC compares."""

import json
from pathlib import Path

import click

from pipeline_lib.contract.problems import raise_problems
from pipeline_lib.publishing import publish
from pipeline_lib.reporting.published import beside_published, comparison, read_published
from pipeline_lib.reporting.summary import headline, markdown, summary_table
from pipeline_lib.settings.study import load_settings


@click.command(help=__doc__)
def main() -> None:
    """Write metrics/summary.csv, .md and .json: of the recipes that ran."""
    recipes = load_settings().recipes
    paths = {name: Path(f"metrics/recipes/{name}/retrieval.json") for name in recipes}
    reports = {
        name: json.loads(path.read_text(encoding="utf-8"))
        for name, path in paths.items()
        if path.is_file()
    }
    nothing_ran = "expected the scores of a recipe, found none: run dvc repro retrieval@RECIPE"
    raise_problems("metrics/recipes", [] if reports else [nothing_ran])
    published = read_published(Path("published.csv"))
    ours = summary_table(reports, {name: str(row["paper"]) for name, row in recipes.items()})
    table = beside_published(ours, published)
    texts = {
        "csv": table.round(4).to_csv(index=False),
        "md": "\n".join(filter(None, [markdown(table), comparison(table, published)])),
        "json": json.dumps(headline(table), indent=1) + "\n",
    }
    for ending, text in texts.items():
        with publish(Path(f"metrics/summary.{ending}")) as path:
            path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
