"""Our scores beside those that papers print: published.csv of a study.

It has one line per printed figure. Compared are those of image-text retrieval in one pool, which
is what the summary holds; a recipe is the row that ``recipe`` names it in.
"""

from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from pipeline_lib.contract.problems import raise_problems
from pipeline_lib.reporting.summary import DIRECTIONS, RECALLS, table_line

COLUMNS = [
    "source", "table", "row", "run_by", "quoted_from", "needs",
    "recipe", "language", "task", "metric", "value",
]  # fmt: skip
"""Columns of published.csv."""

WAYS = {"image_to_text": "i2t", "text_to_image": "t2i"}
"""How published.csv begins the metrics of each direction."""

SCORES = {
    **{f"{short}_{recall}": f"{way}_{recall}" for way, short in WAYS.items() for recall in RECALLS},
    **{f"{short}_median": f"{way}_median_rank" for way, short in WAYS.items()},
    "sum_of_recalls": "sum_of_recalls",
    "mean_recall": "mean_recall",
}
"""Scores of the summary by the metrics of published.csv."""


def read_published(path: Path) -> pd.DataFrame:
    """Read the figures that papers print.

    Returns:
        The file's columns; ``value`` is a number, all others are text.

    Raises:
        ContractError: Lists missing columns, or the lines whose value is no number.
    """
    table = pd.read_csv(path, dtype=str, keep_default_na=False)
    raise_problems(path, _column_problems(table))
    number = pd.to_numeric(table["value"], errors="coerce")
    raise_problems(path, _value_problems(table["value"], number))
    return table.assign(value=number)


def beside_published(table: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """Return the summary with what papers print for its recipes.

    Args:
        table: Of summary.summary_table.
        published: Of :func:`read_published`.

    Returns:
        ``table`` and, if any of its rows is published, ``mean_recall``, the figures' ``source`` and
        ``tables``, and for each score of :data:`SCORES` ``<score>_published`` and
        ``<score>_difference``, ours less theirs; empty where nothing is printed.
    """
    ran = _retrieval(published)
    ran = ran[(ran["run_by"] == "authors") & ran["recipe"].isin(table["recipe"])]
    if ran.empty:
        return table
    ours = table.assign(mean_recall=table["sum_of_recalls"] / (len(DIRECTIONS) * len(RECALLS)))
    keys = ["recipe", "language"]
    joined = ours.merge(_figures(ran, keys), on=keys, how="left", validate="1:1")
    differences = {
        f"{score}_difference": joined[score] - joined[f"{score}_published"]
        for score in SCORES.values()
    }
    return joined.assign(**differences)


def published_markdown(table: pd.DataFrame, published: pd.DataFrame) -> str:
    """Return, as Markdown, each published row of the summary above the papers' own figures.

    Below stand the rows that those papers quote from others, in the same tables and languages.

    Args:
        table: Of :func:`beside_published`.
        published: Of :func:`read_published`.

    Returns:
        The table, or an empty text if no recipe is published.
    """
    if "source" not in table:
        return ""
    header = ["recipe", "language", "figures"]
    header += [f"{arrow} R@1/5/10 (median)" for arrow in DIRECTIONS.values()]
    header += ["sum of recalls", "mean recall"]
    lines = [header, ["---"] * 3 + ["---:"] * 4]
    for _, row in table.dropna(subset="source").iterrows():
        printed = f"{row['source']}, table {row['tables']}"
        lines.append([f"`{row['recipe']}`", row["language"], "ours", *_cells(row, "", ".1f")])
        lines.append(["", "", printed, *_cells(row, "_published", ".1f")])
        lines.append(["", "", "difference", *_cells(row, "_difference", "+.1f")])
    for _, row in _quoted(table, published).iterrows():
        printed = f"{row['quoted_from']}, by {row['source']}, table {row['tables']}"
        cells = _cells(row, "_published", ".1f")
        lines.append([row["row"], row["language"], printed, *cells])
    return "\n".join(map(table_line, lines)) + "\n"


def _retrieval(published: pd.DataFrame) -> pd.DataFrame:
    return published[(published["task"] == "retrieval") & published["metric"].isin(SCORES)]


def _figures(cells: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Return one row per paper and ``keys``, with its ``tables`` and ``<score>_published``."""
    groups = cells.groupby(["source", *keys], sort=False)
    tables = groups["table"].agg(lambda numbers: ", ".join(dict.fromkeys(numbers)))
    # A figure that several tables print is the same in all of them.
    scores = cells.groupby(["source", *keys, "metric"], sort=False)["value"].first().unstack()
    names = {metric: f"{score}_published" for metric, score in SCORES.items()}
    scores = scores.reindex(columns=SCORES).rename(columns=names)
    return scores.assign(tables=tables).reset_index()


def _quoted(table: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """Return the rows quoted in those tables and languages where a recipe that ran stands."""
    cells = _retrieval(published)
    place = pd.MultiIndex.from_frame(cells[["source", "table", "language"]])
    ours = (cells["run_by"] == "authors") & cells["recipe"].isin(table["recipe"])
    chosen = cells[(cells["run_by"] == "quoted") & place.isin(place[ours])]
    return _figures(chosen, ["quoted_from", "row", "language"])


_NOT_PRINTED = "–"


def _cells(row: pd.Series, suffix: str, form: str) -> list[str]:
    both_ways = []
    for way in DIRECTIONS:
        recalls = [_number(row[f"{way}_{recall}{suffix}"], form) for recall in RECALLS]
        median = _number(row[f"{way}_median_rank{suffix}"], form.replace(".1f", "g"))
        both_ways.append("/".join(recalls) + (f" ({median})" if median != _NOT_PRINTED else ""))
    totals = [_number(row[f"{name}{suffix}"], form) for name in ("sum_of_recalls", "mean_recall")]
    return both_ways + totals


def _number(value: float, form: str) -> str:
    return _NOT_PRINTED if pd.isna(value) else f"{round(value, 1):{form}}"


def _column_problems(table: pd.DataFrame) -> Iterator[str]:
    if list(table.columns) != COLUMNS:
        yield f"expected the columns {', '.join(COLUMNS)}; found {', '.join(table.columns)}"


def _value_problems(texts: pd.Series, numbers: pd.Series) -> Iterator[str]:
    for line in texts.index[numbers.isna()]:
        yield f"line {line + 2}: expected a number as value, found {texts[line]!r}"
