"""Gather every recipe's scores into one table, as CSV, Markdown and the metric DVC compares."""

import json
from pathlib import Path

import click

from pipeline_lib.publishing import publish
from pipeline_lib.reporting.summary import headline, markdown, summary_table
from pipeline_lib.settings.study import load_settings


@click.command(help=__doc__)
def main() -> None:
    """Write metrics/summary.csv, .md and .json."""
    recipes = load_settings().recipes
    reports = {
        name: json.loads(Path(f"metrics/recipes/{name}/retrieval.json").read_text(encoding="utf-8"))
        for name in recipes
    }
    table = summary_table(reports, {name: str(row["paper"]) for name, row in recipes.items()})
    texts = {
        "csv": table.round(4).to_csv(index=False),
        "md": markdown(table),
        "json": json.dumps(headline(table), indent=1) + "\n",
    }
    for ending, text in texts.items():
        with publish(Path(f"metrics/summary.{ending}")) as path:
            path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
