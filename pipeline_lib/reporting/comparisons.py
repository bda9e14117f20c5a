"""Recipes against the baseline of their comparison: how far they are apart, and if by chance."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass

import numpy as np
import pandas as pd

from pipeline_lib.evaluation.retrieval.hits import image_contributions, paired_p
from pipeline_lib.evaluation.significance import bootstrap_interval, bootstrap_totals
from pipeline_lib.reporting.table import NOTHING, Table
from pipeline_lib.settings.evaluations import Comparison, RetrievalEvaluation

Hits = Mapping[str, pd.DataFrame]
"""Hits of every image (hits.HITS), by recipe."""

Comparisons = Mapping[str, Comparison]
"""Which recipes are compared with which, by name."""


@dataclass(frozen=True)
class Difference:
    """One recipe's sum of recalls less another's, paired over images; means over their seeds.

    Attributes:
        difference: In per cent, as the sums.
        low: Lower end of its bootstrap interval.
        high: Upper end.
        p: Of a two-sided randomisation test.
    """

    difference: float
    low: float
    high: float
    p: float


def difference(
    recipe: str, baseline: str, hits: Hits, language: str, settings: RetrievalEvaluation
) -> Difference | None:
    """Compare two recipes in one language; None if one has no hits, or not the same queries.

    Args:
        recipe: Name of one.
        baseline: Name of the other.
        hits: Of the recipes that have any.
        language: Whose queries count.
        settings: Bootstrap settings; there are as many permutations as resamples.
    """
    if not {recipe, baseline} <= hits.keys():
        return None
    samples, seed = settings.bootstrap_samples, settings.seed
    sides = hits[recipe], hits[baseline]
    p = paired_p(*sides, language, samples, seed)
    if np.isnan(p):
        return None
    # Both are sorted by image id, so that rows are pairs.
    a, b = (image_contributions(side, language).to_numpy()[:, None] for side in sides)
    draws = bootstrap_totals(a - b, samples, seed)[:, 0]
    low, high = bootstrap_interval(draws, settings.confidence)
    return Difference(float((a - b).sum()), float(low), float(high), p)


def compare(
    summary: pd.DataFrame, hits: Hits, comparisons: Comparisons, settings: RetrievalEvaluation
) -> pd.DataFrame:
    """Set the recipes of each comparison against its baseline.

    Args:
        summary: Of summary.summary_table.
        hits: Of the recipes that have any.
        comparisons: What is compared.
        settings: Bootstrap settings.

    Returns:
        One row per comparison, recipe that ran (the baseline first) and language: ``comparison``,
        ``recipe``, ``language``, ``seeds``, ``sum_of_recalls``, its ``sum_of_recalls_sd``, and the
        fields of :class:`Difference`, empty for the baseline and where there is none.
    """
    scored = ["recipe", "language", "seeds", "sum_of_recalls", "sum_of_recalls_sd"]
    rows = [
        {"comparison": name, **row, **_against(row, chosen.baseline, hits, settings)}
        for name, chosen in comparisons.items()
        for row in _members(summary[scored], chosen)
    ]
    fields = list(Difference.__dataclass_fields__)
    return pd.DataFrame(rows, columns=["comparison", *scored, *fields])


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


def _members(scored: pd.DataFrame, chosen: Comparison) -> Iterator[dict[str, object]]:
    for recipe in (chosen.baseline, *chosen.recipes):
        yield from scored[scored["recipe"] == recipe].to_dict("records")


def _against(
    row: Mapping[str, object], baseline: str, hits: Hits, settings: RetrievalEvaluation
) -> dict[str, float]:
    recipe, language = str(row["recipe"]), str(row["language"])
    found = difference(recipe, baseline, hits, language, settings) if recipe != baseline else None
    return asdict(found) if found else {}


def _table(name: object, rows: pd.DataFrame, chosen: Comparison) -> Table:
    languages = list(rows["language"].unique())
    header = ["recipe", "seeds"]
    for language in languages:
        header += [language, "difference", "p"]
    lines = [
        [str(recipe), str(own["seeds"].iloc[0]), *_cells(own.set_index("language"), languages)]
        for recipe, own in rows.groupby("recipe", sort=False)
    ]
    title = f"{chosen.question} Differences are from {chosen.baseline}"
    return Table(f"comparison_{name}", title, header, lines, labels=1)


def _cells(own: pd.DataFrame, languages: list[str]) -> Iterator[str]:
    for language in languages:
        if language not in own.index:
            yield from [NOTHING] * 3
            continue
        row = own.loc[language]
        spread = row["sum_of_recalls_sd"]
        yield f"{row['sum_of_recalls']:.1f}" + ("" if np.isnan(spread) else f" ± {spread:.1f}")
        if np.isnan(row["p"]):
            yield from [NOTHING] * 2
        else:
            points, low, high = (signed(row[name]) for name in ("difference", "low", "high"))
            yield f"{points} ({low} to {high})"
            yield p_value(row["p"])


def p_value(p: float) -> str:
    """Return a p-value as papers print it."""
    return "< .001" if p < 0.001 else f"{p:.3f}".replace("0.", ".", 1)


def signed(points: float) -> str:
    """Return a difference with its sign."""
    return f"{points:+.1f}".replace("-", "−")
