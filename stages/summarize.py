"""Gather every recipe's scores into tables, as CSV, Markdown and the metric DVC compares."""

import json
from pathlib import Path

import click

from pipeline_lib.contract.problems import raise_problems
from pipeline_lib.evaluation.hits import read_hits
from pipeline_lib.publishing import publish
from pipeline_lib.reporting.comparisons import compare, comparison_tables
from pipeline_lib.reporting.published import (
    beside_published,
    published_markdown,
    read_published,
)
from pipeline_lib.reporting.published_tasks import published_task_markdown, tasks_beside_published
from pipeline_lib.reporting.reports import read_reports, recipe_files
from pipeline_lib.reporting.summary import headline, markdown, summary_table
from pipeline_lib.reporting.tables import markdown_table
from pipeline_lib.reporting.tasks import REPORTED, task_markdown, task_table
from pipeline_lib.settings.study import load_settings


@click.command(help=__doc__)
def main() -> None:
    """Write metrics/summary.csv, .md and .json, tasks.csv and comparisons.csv of what ran."""
    settings = load_settings()
    reports = {
        task: {
            name: json.loads(path.read_text(encoding="utf-8"))
            for name, path in recipe_files(settings.recipes, f"{task}.json").items()
        }
        for task in REPORTED
    }
    ran = reports["retrieval"]
    nothing_ran = "expected the scores of a recipe, found none: run dvc repro evaluate@RECIPE"
    raise_problems("metrics/recipes", [] if ran else [nothing_ran])
    published = read_published(Path("published.csv"))
    papers = {name: str(row["paper"]) for name, row in settings.recipes.items()}
    hits = {name: read_hits(path) for name, path in recipe_files(ran, "images.csv").items()}
    scores = summary_table(ran, papers)
    compared = compare(scores, hits, settings.evaluations)
    table = beside_published(scores, published)
    tasks = tasks_beside_published(
        task_table(reports, read_reports(Path("metrics/translated_queries"))), published
    )
    parts = [
        markdown(table),
        *(
            f"**{question.title}.**\n\n{markdown_table(question)}"
            for question in comparison_tables(compared, settings.evaluations)
        ),
        published_markdown(table, published),
        task_markdown(tasks),
        published_task_markdown(tasks, published),
    ]
    texts = {
        "summary.csv": table.round(4).to_csv(index=False),
        "summary.md": "\n".join(filter(None, parts)),
        "summary.json": json.dumps(headline(scores), indent=1) + "\n",
        "comparisons.csv": compared.round(4).to_csv(index=False),
        "tasks.csv": tasks.round(4).to_csv(index=False),
    }
    for name, text in texts.items():
        with publish(Path(f"metrics/{name}")) as path:
            path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
