"""Recipes against the baseline of their comparison: how far they are apart, and if by chance."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, fields

import numpy as np
import pandas as pd

from pipeline_lib.reporting.differences import Asked, Difference
from pipeline_lib.reporting.table import NOTHING, Table, mean_cell
from pipeline_lib.settings.evaluations import Comparison

Comparisons = Mapping[str, Comparison]
"""Which recipes are compared with which, by name."""

CORRECTED = "p is corrected for all tests of the study (Holm)"
"""What titles say of p."""

_SCORED = ["recipe", "language", "seeds", "sum_of_recalls", "sum_of_recalls_sd"]


_FIELDS = [field.name for field in fields(Difference)]


def asked_by_comparisons(summary: pd.DataFrame, comparisons: Comparisons) -> Iterator[Asked]:
    """Yield what comparisons ask, of recipes that ran (in summary.summary_table)."""
    for chosen in comparisons.values():
        for row in _members(summary, chosen):
            if row["recipe"] != chosen.baseline:
                yield Asked.sums(row["recipe"], chosen.baseline, row["language"])


def compare(
    summary: pd.DataFrame, tests: Mapping[Asked, Difference], comparisons: Comparisons
) -> pd.DataFrame:
    """Set the recipes of each comparison against its baseline.

    Args:
        summary: Of summary.summary_table.
        tests: Of differences.differences, all of :func:`asked_by_comparisons` among them.
        comparisons: What is compared.

    Returns:
        One row per comparison, recipe that ran (the baseline first) and language: ``comparison``,
        ``recipe``, ``language``, ``seeds``, ``sum_of_recalls``, its ``sum_of_recalls_sd``, and the
        fields of differences.Difference, empty for the baseline.
    """
    rows = []
    for name, chosen in comparisons.items():
        for row in _members(summary, chosen):
            found = tests.get(Asked.sums(row["recipe"], chosen.baseline, row["language"]))
            shown = asdict(found) if found else {"untested": ""}
            rows.append({"comparison": name, **row, **shown})
    return pd.DataFrame(rows, columns=["comparison", *_SCORED, *_FIELDS])


def comparison_tables(compared: pd.DataFrame, comparisons: Comparisons) -> list[Table]:
    """Return one table per comparison of which two recipes ran, with languages side by side.

    Args:
        compared: Of :func:`compare`.
        comparisons: Their questions and baselines.
    """
    return [
        _table(name, rows, comparisons[str(name)])
        for name, rows in compared.groupby("comparison", sort=False)
        if rows["recipe"].nunique() > 1
    ]


def _members(summary: pd.DataFrame, chosen: Comparison) -> Iterator[dict[str, object]]:
    for recipe in (chosen.baseline, *chosen.recipes):
        yield from summary.loc[summary["recipe"] == recipe, _SCORED].to_dict("records")


def _table(name: object, rows: pd.DataFrame, chosen: Comparison) -> Table:
    languages = list(rows["language"].unique())
    header = ["recipe", "seeds"]
    for language in languages:
        header += [language, "difference", "p"]
    lines = [
        [str(recipe), str(own["seeds"].iloc[0]), *_cells(own.set_index("language"), languages)]
        for recipe, own in rows.groupby("recipe", sort=False)
    ]
    title = f"{chosen.question} Differences are from {chosen.baseline}, {CORRECTED}"
    return Table(f"comparison_{name}", title, header, lines, labels=1)


def _cells(own: pd.DataFrame, languages: list[str]) -> Iterator[str]:
    for language in languages:
        if language not in own.index:
            yield from [NOTHING] * 3
            continue
        row = own.loc[language]
        yield mean_cell(row["sum_of_recalls"], row["sum_of_recalls_sd"])
        yield from difference_cells(Difference(*(row[name] for name in _FIELDS)))


def difference_cells(found: Difference, form: str = "+.1f") -> tuple[str, str]:
    """Return a difference with its interval, and its corrected p or why there is none."""
    if np.isnan(found.difference):
        return NOTHING, found.untested or NOTHING
    if found.untested:
        return signed(found.difference, form), found.untested
    return bounded(found.difference, found.low, found.high, form), p_value(found.holm)


def bounded(points: float, low: float, high: float, form: str = "+.1f") -> str:
    """Return a difference with its interval."""
    return f"{signed(points, form)} ({signed(low, form)} to {signed(high, form)})"


def p_value(p: float) -> str:
    """Return a p-value as papers print it; one that would only round to the level is above it."""
    if p < 0.001:
        return "< .001"
    shown = f"{p:.3f}".replace("0.", ".", 1)
    return f"> {shown}" if shown == ".050" and p > 0.05 else shown


def signed(points: float, form: str = "+.1f") -> str:
    """Return a difference with its sign, which none has that rounds to 0."""
    text = f"{points:{form}}"
    return text.replace("-", "−") if float(text) else text.lstrip("+-")
