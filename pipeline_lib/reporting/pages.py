"""Put each table of results into README.md, between its two marker comments.

Run ``python -m pipeline_lib.reporting.readme`` in the project's root after ``dvc repro`` of a
study; a test and a pre-commit hook hold that README and metrics agree.
"""

import re
from pathlib import Path

from pipeline_lib.publishing import publish
from pipeline_lib.reporting.published import read_published
from pipeline_lib.reporting.published_tasks import printed_table
from pipeline_lib.reporting.reports import read_reports
from pipeline_lib.reporting.tables import markdown_table
from pipeline_lib.reporting.translator_tables import reranking_table, translator_table

README = Path("README.md")
TABLES = {
    "world": Path("metrics/summary.md"),
    "flickr8k": Path("studies/flickr8k/metrics/summary.md"),
}
TRANSLATORS = {"translators of multi30k": Path("studies/multi30k/metrics/translators")}
RERANKINGS = {"re-rankings of flickr8k": Path("studies/flickr8k/metrics/rerankings")}
PAPERS = {"printed for other tasks": Path("studies/multi30k/published.csv")}


def translator_markdown(folder: Path) -> str:
    """Return the quality of the translators whose reports are in a folder."""
    table = translator_table(read_reports(folder))
    return markdown_table(table) if table else ""


def reranking_markdown(folder: Path) -> str:
    """Return what the re-rankings whose reports are in a folder have brought."""
    table = reranking_table(read_reports(folder))
    return markdown_table(table) if table else ""


def printed_markdown(path: Path) -> str:
    """Return what papers print for the other tasks, of the published.csv of a study."""
    return markdown_table(printed_table(read_published(path)))


def results() -> dict[str, str]:
    """Return every table of results by the name of its markers."""
    return {
        **{study: path.read_text(encoding="utf-8") for study, path in TABLES.items()},
        **{name: translator_markdown(folder) for name, folder in TRANSLATORS.items()},
        **{name: reranking_markdown(folder) for name, folder in RERANKINGS.items()},
        **{name: printed_markdown(path) for name, path in PAPERS.items()},
    }


def with_results(readme: str, tables: dict[str, str]) -> str:
    """Return the text with the part between each name's markers replaced by its table.

    Raises:
        ValueError: If a name's markers are not there exactly once.
    """
    for name, table in tables.items():
        begin, end = f"<!-- results: {name} -->", f"<!-- end of results: {name} -->"
        parts = re.split(f"{re.escape(begin)}.*?{re.escape(end)}", readme, flags=re.DOTALL)
        if len(parts) != 2:
            raise ValueError(f"README.md: expected {begin} … {end} once, found {len(parts) - 1}")
        readme = f"{begin}\n{table}{end}".join(parts)
    return readme


def main() -> None:
    """Rewrite README.md in place."""
    text = with_results(README.read_text(encoding="utf-8"), results())
    with publish(README) as path:
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
