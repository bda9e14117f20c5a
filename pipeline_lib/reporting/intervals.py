"""Intervals of means over seeds: over seeds and photos together."""

from collections import defaultdict
from functools import cache
from itertools import pairwise

import numpy as np
import pandas as pd

from pipeline_lib.contract.recalls import CUTOFFS, PERFECT_RECALL_SUM
from pipeline_lib.evaluation.seed_noise import SeedNoise, mean_intervals, noise_draws
from pipeline_lib.reporting.differences import Measured
from pipeline_lib.reporting.figures import FIGURE, RECALLS

_PRECISIONS = tuple(f"p{k}" for k in CUTOFFS)

_RANGES = {
    "sum_of_recalls": (0, PERFECT_RECALL_SUM),
    ("sentence_retrieval", "sum_of_recalls"): (0, PERFECT_RECALL_SUM / 2),  # of one direction
    **dict.fromkeys((*RECALLS, *_PRECISIONS, "mean_recall", "overlap"), (0, 100)),
    **dict.fromkeys(("pearson", "spearman", "rank_correlation"), (-1, 1)),
}
"""Least and greatest value of a metric, or of that of one task."""


_LISTS = (*pairwise(RECALLS), *pairwise(_PRECISIONS))
"""Recalls and precisions of a list, and of a longer one that holds it."""


def over_seeds(measured: Measured) -> pd.DataFrame:
    """Return the figures with the intervals of their means.

    ``low`` and ``high`` of recipes with several seeds become those of the mean: of the sum of
    recalls and the mean recall by draws of seeds and photos, where the hits of each seed are
    stored; else the single models' bounds, drawn apart by the deviation of seeds, which errs on the
    wide side. What has one seed keeps its interval over photos.
    """
    table = _nested(_widened(measured))
    bounds = _bounds_of_sums(measured)
    for metric, share in (("sum_of_recalls", 1), ("mean_recall", 2 * len(CUTOFFS))):
        rows = table.index[
            (table["task"] == "retrieval") & (table["variant"] == "") & (table["metric"] == metric)
        ]
        for row in rows:
            found = bounds.get((table.at[row, "recipe"], table.at[row, "item"]))
            if found is not None:
                table.loc[row, ["low", "high"]] = found / share
    return _within_ranges(table)


def _within_ranges(table: pd.DataFrame) -> pd.DataFrame:
    """Cut bounds where no value can be: Student's t knows of no greatest recall."""
    named = zip(table["task"], table["metric"], strict=True)
    ends = [_RANGES.get(each) or _RANGES.get(each[1], (-np.inf, np.inf)) for each in named]
    least, greatest = np.reshape(ends, (-1, 2)).T
    return table.assign(**{s: table[s].clip(least, greatest) for s in ("low", "high")})


def _widened(measured: Measured) -> pd.DataFrame:
    """Draw bounds apart by the deviation of seeds, pooled over the recipes tested alike."""
    table = measured.figures.astype({"low": float, "high": float})
    rows = table[(table["seeds"] > 1) & table["low"].notna()]
    named = zip(rows[FIGURE].itertuples(index=False), rows["queries"], strict=True)
    noises = [measured.figure_noise(*each) for each in named]
    reach = np.array([_reach(noise.degrees, **measured.settings.drawn) for noise in noises])
    variance = np.array([noise.variance for noise in noises])
    apart = reach**2 * variance / rows["seeds"]
    for side, sign in (("low", -1), ("high", 1)):
        far = np.sqrt((rows[side] - rows["value"]) ** 2 + apart)
        table.loc[rows.index, side] = rows["value"] + sign * far
    return table


def _nested(table: pd.DataFrame) -> pd.DataFrame:
    """Keep the bounds of recalls in their order: what is among the first 5 is among the first 10.

    A deviation that is pooled over recipes may be larger of the longer list.
    """
    own = [name for name in FIGURE if name != "metric"]
    key = pd.MultiIndex.from_frame(table[["recipe", *own]])
    for shorter, longer in _LISTS:
        _bind(table, key, "low", shorter, longer, np.maximum)
    for shorter, longer in reversed(_LISTS):
        _bind(table, key, "high", longer, shorter, np.minimum)
    return table


def _bind(
    table: pd.DataFrame, key: pd.MultiIndex, side: str, by: str, bound: str, binds: np.ufunc
) -> None:
    """Bind one side of a metric's intervals by that of another metric of the same recipe."""
    of = (table["metric"] == by).to_numpy() & table[side].notna().to_numpy()
    others = pd.Series(table[side].to_numpy()[of], key[of])
    others = others[~others.index.duplicated()].reindex(key).to_numpy()
    rows = (table["metric"] == bound).to_numpy() & ~np.isnan(others)
    table.loc[rows, side] = binds(table.loc[rows, side], others[rows])


@cache
def _reach(degrees: int, confidence: float, resamples: int, seed: int) -> float:
    """Return how many deviations of a mean the interval reaches: Student's t."""
    unit = noise_draws(SeedNoise(1.0, 0.0, degrees), 1, resamples, seed)
    return float(np.quantile(abs(unit), confidence))


def _bounds_of_sums(measured: Measured) -> dict[tuple[str, str], np.ndarray]:
    """Return the interval of each recipe's and language's sum, of those with several seeds."""
    drawn, found, alike = measured.settings.drawn, {}, defaultdict(list)
    for pool, noise in measured.pooled.items():
        for name, row in measured.pools[pool].items():
            if len(row) > 1:
                seeds = noise_draws(noise, 1 / len(row), drawn["resamples"], drawn["seed"])
                alike[row.shape[1]].append(((name, pool[0]), row.mean(axis=0), seeds))
    for rows in alike.values():  # of equally many images: by the same draws
        names, means, seeds = zip(*rows, strict=True)
        bounds = mean_intervals(np.stack(means, axis=1), np.stack(seeds, axis=1), **drawn)
        found |= dict(zip(names, bounds.T, strict=True))
    return found
