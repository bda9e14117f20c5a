"""Put each study's results table into README.md, between its two marker comments.

Run ``python -m pipeline_lib.reporting.readme`` in the project's root after ``dvc repro`` of a
study; a test and a pre-commit hook hold that README and metrics agree.
"""

import re
from pathlib import Path

from pipeline_lib.publishing import publish

README = Path("README.md")
TABLES = {
    "world": Path("metrics/summary.md"),
    "flickr8k": Path("studies/flickr8k/metrics/summary.md"),
}


def with_results(readme: str, tables: dict[str, str]) -> str:
    """Return the text with the part between each study's markers replaced by its table.

    Raises:
        ValueError: If a study's markers are not there exactly once.
    """
    for study, table in tables.items():
        begin, end = f"<!-- results: {study} -->", f"<!-- end of results: {study} -->"
        parts = re.split(f"{re.escape(begin)}.*?{re.escape(end)}", readme, flags=re.DOTALL)
        if len(parts) != 2:
            raise ValueError(f"README.md: expected {begin} … {end} once, found {len(parts) - 1}")
        readme = f"{begin}\n{table}{end}".join(parts)
    return readme


def main() -> None:
    """Rewrite README.md in place."""
    tables = {study: path.read_text(encoding="utf-8") for study, path in TABLES.items()}
    text = with_results(README.read_text(encoding="utf-8"), tables)
    with publish(README) as path:
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
