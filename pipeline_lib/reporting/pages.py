"""Put tables of results into README.md and the pages of docs, between their marker comments.

``<!-- results: flickr8k/papers -->`` names a study and one of its tables; what stands up to the
next ``<!-- end -->`` is replaced. Run ``python -m pipeline_lib.reporting.pages`` in the project's
root after ``dvc repro`` of a study; a test and a pre-commit hook hold that pages and results agree.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from pipeline_lib.contract.published import PUBLISHED, read_published
from pipeline_lib.contract.reports import read_reports
from pipeline_lib.reporting.published import printed_table
from pipeline_lib.reporting.study_tables import reranking_table, translator_table
from pipeline_lib.reporting.table import markdown_table
from pipeline_lib.running.publishing import publish

ROOT_STUDY = "world"
"""The study whose folder is the project's root."""

OF_A_STUDY = (
    "languages", "models", "claims", "comparison_*", "published", "published_tasks", "folds",
    "one_caption", "consistency", "sentence_retrieval", "sts", "word_translation",
    "translated_queries",
)  # fmt: skip
"""The tables that the name of a study alone stands for."""

_MARKED = re.compile(r"<!-- results: ([^>]+?) -->\n.*?<!-- end -->", re.S)


def pages(root: Path) -> list[Path]:
    """Return the files that may show results."""
    return [root / "README.md", *sorted(root.glob("docs/**/*.md"))]


def with_results(text: str, root: Path) -> str:
    """Return a page with the tables that its markers name.

    Raises:
        ValueError: A marker names no table that is there.
    """
    return _MARKED.sub(lambda found: _marked(found[1], root), text)


def _marked(name: str, root: Path) -> str:
    study, _, table = name.partition("/")
    wanted = [table] if table else OF_A_STUDY
    texts = [text for each in wanted for text in _tables(study, each, root)]
    if not texts:
        raise ValueError(
            f"<!-- results: {name} -->: expected the name of a study, or STUDY/TABLE of a file "
            "in its metrics/results/tables; found no such table. Run dvc repro report there."
        )
    return f"<!-- results: {name} -->\n" + "\n".join(texts) + "<!-- end -->"


def _tables(study: str, table: str, root: Path) -> Iterator[str]:
    folder = root if study == ROOT_STUDY else root / "studies" / study
    files = sorted(folder.glob(f"metrics/results/tables/{table}.md"))
    yield from (path.read_text(encoding="utf-8") for path in files)
    # A study that trained no recipe has no results, but may have translators.
    other = None if files else _OTHERS.get(table)
    found = other(folder) if other else None
    if found:
        yield markdown_table(found)


_OTHERS = {
    "printed": lambda folder: printed_table(read_published(folder / PUBLISHED)),
    "translators": lambda folder: translator_table(
        read_reports(folder / "metrics/reports/translators")
    ),
    "rerankings": lambda folder: reranking_table(
        read_reports(folder / "metrics/reports/rerankings")
    ),
}


def main() -> None:
    """Rewrite the pages in place."""
    root = Path()
    for page in pages(root):
        text = with_results(page.read_text(encoding="utf-8"), root)
        with publish(page) as path:
            path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
