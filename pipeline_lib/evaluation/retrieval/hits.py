"""What each image adds to a recipe's sum of recalls, and a paired test of two recipes over it.

The table is small enough for metrics/, so that recipes can be compared without their models.
"""

from pathlib import Path

import numpy as np
import pandas as pd

from pipeline_lib.contract.queries import DIRECTIONS
from pipeline_lib.evaluation.retrieval.recalls import CUTOFFS
from pipeline_lib.evaluation.significance import randomisation_test

HITS = ["language", "image_id", "seeds", "captions", *DIRECTIONS]
"""Columns: of each image in each language how many seeds were measured, how many captions query,
and how often, in all seeds, its queries in each direction are right within each of
:data:`CUTOFFS` (an image that is first counts for all three)."""


def image_hits(queries: pd.DataFrame) -> pd.DataFrame:
    """Count the hits of every image.

    Args:
        queries: Table of one recipe (contract.queries.QUERIES).

    Returns:
        A table with the columns :data:`HITS`, sorted by language and image.
    """
    right = (queries["rank"].to_numpy()[:, None] <= np.array(CUTOFFS)).sum(axis=1)
    key = ["language", "image_id"]
    counted = queries.assign(hits=right).groupby([*key, "direction"])["hits"]
    sums, asked = (each.unstack("direction") for each in (counted.sum(), counted.size()))
    seeds = queries.groupby(key)["seed"].nunique()
    captions = asked["text_to_image"] // seeds
    hits = sums.rename_axis(columns=None).assign(seeds=seeds, captions=captions)
    return hits.reset_index()[HITS]


def read_hits(path: Path) -> pd.DataFrame:
    """Read the hits of a recipe from metrics/reports/recipes/<recipe>/scores/images.csv."""
    return pd.read_csv(path, dtype={"language": str, "image_id": str}, keep_default_na=False)


def image_contributions(hits: pd.DataFrame, language: str) -> pd.Series:
    """Return what each image adds to the sum of recalls, in per cent; together they are that sum.

    Args:
        hits: Table of one recipe, of columns :data:`HITS`.
        language: Whose queries count.
    """
    rows = hits[hits["language"] == language].set_index("image_id").sort_index()
    queries = {"image_to_text": len(rows), "text_to_image": rows["captions"].sum()}
    shares = [rows[way] / (rows["seeds"] * asked) for way, asked in queries.items()]
    return 100 * sum(shares)


def paired_p(
    hits: pd.DataFrame, baseline: pd.DataFrame, language: str, permutations: int, seed: int
) -> float:
    """Test whether two recipes differ in the sum of recalls, paired over images.

    Args:
        hits: Table of one recipe, of columns :data:`HITS`.
        baseline: Table of the other.
        language: Whose queries count.
        permutations: How many times to swap the recipes on images at random.
        seed: Of the swaps.

    Returns:
        The two-sided p-value; NaN where the two have not the same queries.
    """
    asked = [_asked(table, language) for table in (hits, baseline)]
    if not asked[0] or asked[0] != asked[1]:
        return float("nan")
    sides = [image_contributions(table, language).to_numpy()[:, None] for table in (hits, baseline)]
    return randomisation_test(*sides, _total, permutations, seed)


def _asked(hits: pd.DataFrame, language: str) -> dict[str, int]:
    rows = hits[hits["language"] == language]
    return dict(zip(rows["image_id"], rows["captions"], strict=True))


def _total(totals: np.ndarray) -> np.ndarray:
    return totals[:, 0]
