"""published.csv of a study: the figures that papers print.

It has one line per printed figure; a recipe is the row that ``recipe`` names it in.
"""

from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from pipeline_lib.contract.problems import raise_problems
from pipeline_lib.contract.reports import read_rows

PUBLISHED = Path("published.csv")
"""In the folder of a study."""

COLUMNS = [
    "source", "table", "row", "run_by", "quoted_from", "needs",
    "recipe", "language", "task", "metric", "value",
]  # fmt: skip
"""Columns of published.csv."""


def read_published(path: Path) -> pd.DataFrame:
    """Read the figures that papers print.

    Returns:
        The file's columns; ``value`` is a number, all others are text.

    Raises:
        ContractError: Lists missing columns, or the lines whose value is no number.
    """
    table = read_rows(path, dtype=str, na_values=[])
    raise_problems(path, _column_problems(table))
    number = pd.to_numeric(table["value"], errors="coerce")
    raise_problems(path, _value_problems(table["value"], number))
    return table.assign(value=number)


def _column_problems(table: pd.DataFrame) -> Iterator[str]:
    if list(table.columns) != COLUMNS:
        yield f"expected the columns {', '.join(COLUMNS)}; found {', '.join(table.columns)}"


def _value_problems(texts: pd.Series, numbers: pd.Series) -> Iterator[str]:
    for line in texts.index[numbers.isna()]:
        yield f"line {line + 2}: expected a number as value, found {texts[line]!r}"
