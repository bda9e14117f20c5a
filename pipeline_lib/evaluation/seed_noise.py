"""Means over seeds: how far they would move with other seeds and with other units together.

Seeds and units, photos as a rule, are crossed: every seed's model answers for every unit. What a
unit adds to a score is the sum of a part of the unit, a part of the seed, and one of both. Draws of
the units, with seeds averaged, hold the first and the third. They lack the seeds' own part, whose
variance is that of the seeds' totals less the third part's. Three seeds tell little about it: it is
pooled over rows, and drawn as its generalised pivotal quantity (Weerahandi 1993), which is a normal
draw times the root of (variance / (chi² / degrees) - within)+. Without a third part that is
Student's t.

Seeds that are resampled instead, three of three, make intervals too narrow: 27 draws, of which a
ninth have no spread at all.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from pipeline_lib.compute.exact import ordered_sum, summable
from pipeline_lib.evaluation.significance import (
    ROUNDING,
    bootstrap_interval,
    bootstrap_totals,
    sign_flipped_totals,
)

_GRID = 2.0**30
"""Draws are rounded to multiples of 1 / _GRID: a logarithm's last bit may differ by machine."""


class SeedNoise(NamedTuple):
    """Deviation of seeds, pooled over rows that are measured on the same units.

    Attributes:
        variance: Of the seeds' totals on the same units.
        within: What of it comes from parts of seed and unit, which draws of the units hold already.
        degrees: Of freedom of both: seeds less rows, where no two rows share any.
    """

    variance: float
    within: float
    degrees: float


def seed_noise(rows: Iterable[np.ndarray]) -> SeedNoise:
    """Pool the deviation of seeds over rows.

    Args:
        rows: What each unit adds to the score of each seed, ``[seeds, units]``; those of one seed
            tell nothing.

    Raises:
        ValueError: No row has two seeds.
    """
    rows = [row for row in rows if len(row) > 1]
    if not rows:
        raise ValueError("expected a row of two seeds or more, found none")
    degrees = sum(len(row) - 1 for row in rows)
    parts = np.array([_squares(row) for row in rows])
    variance, within = (float(part) / degrees for part in ordered_sum(parts))
    return SeedNoise(variance, within, degrees)


def _squares(row: np.ndarray) -> tuple[float, float]:
    """Return the sums of squares between totals, and those of seed and unit times the units."""
    units = row.shape[1]
    row = summable(row.reshape(-1, 1), row.size).reshape(row.shape)
    totals = row.sum(axis=1)
    between = ordered_sum((totals - totals.mean()) ** 2)
    rest = row - row.mean(axis=0) - (totals / units)[:, None] + totals.sum() / row.size
    return float(between), float(ordered_sum(rest.ravel() ** 2)) * units / max(units - 1, 1)


def noise_draws(noise: SeedNoise, per_seed: float, draws: int, seed: int) -> np.ndarray:
    """Draw how far the seeds' own parts move a mean over them ``[draws]``.

    Args:
        noise: Deviation of single seeds.
        per_seed: Share of a seed's variance that is left in the mean: 1 / seeds; in a difference of
            two means that share no seed, the sum of both.
        draws: How many.
        seed: Of the draws.
    """
    chi2 = _rounded(np.random.default_rng([seed, 1]).chisquare(noise.degrees, draws))
    spread = noise.variance * noise.degrees / np.maximum(chi2, 1 / _GRID)
    own = np.sqrt(np.maximum(spread - noise.within, 0) * per_seed)
    return own * normal_draws(draws, [seed, 2])


def normal_draws(draws: int, seed: Sequence[int]) -> np.ndarray:
    """Return standard normal draws that are the same on every machine ``[draws]``."""
    return _rounded(np.random.default_rng(seed).standard_normal(draws))


def _rounded(drawn: np.ndarray) -> np.ndarray:
    return np.rint(_GRID * drawn) / _GRID


def mean_intervals(
    means: np.ndarray, noises: np.ndarray, *, resamples: int, confidence: float, seed: int
) -> np.ndarray:
    """Return the intervals of means over seeds, ``[2, rows]``, low and high.

    Args:
        means: What each unit adds to a row's score, mean over its seeds ``[units, rows]``.
        noises: How far the seeds' own parts move each row ``[resamples, rows]``.
        resamples: Draws of the units.
        confidence: Level, such as 0.95.
        seed: Of the draws.
    """
    return bootstrap_interval(bootstrap_totals(means, resamples, seed) + noises, confidence)


class DifferenceTest(NamedTuple):
    """Interval of a difference of two means over seeds, and p of none; two-sided.

    Attributes:
        low: Bound of the interval.
        high: Bound of the interval.
        p: Of no difference.
        p_error: Standard error of ``p``, which rests on draws; NaN where it is that of a share.
    """

    low: float
    high: float
    p: float
    p_error: float = np.nan


def difference_tests(
    differences: np.ndarray, noises: np.ndarray, *, resamples: int, confidence: float, seed: int
) -> list[DifferenceTest]:
    """Test differences of means over seeds, over units and seeds together.

    Under the null hypothesis the two rows are interchangeable on every unit, so that the sign of
    each unit's difference is a coin toss, and the seeds' own parts are drawn with mean 0. The
    observed difference counts as one of the draws (Phipson and Smyth 2010).

    Args:
        differences: Of each unit, means over seeds ``[units, tests]``.
        noises: How far the seeds' own parts move each of them ``[resamples, tests]``.
        resamples: Draws.
        confidence: Level of the intervals.
        seed: Of the draws.
    """
    observed = summable(differences, len(differences)).sum(axis=0)
    flipped = sign_flipped_totals(differences, resamples, seed)
    p = [two_sided_p(*each) for each in zip(observed, flipped.T, noises.T, strict=True)]
    drawn = {"resamples": resamples, "confidence": confidence, "seed": seed}
    low, high = mean_intervals(differences, noises, **drawn)
    return [
        DifferenceTest(float(a), float(b), *found) for a, b, found in zip(low, high, p, strict=True)
    ]


def two_sided_p(observed: float, units: np.ndarray, seeds: np.ndarray) -> tuple[float, float]:
    """Return how probable a value as far from 0 as the observed one is, and its standard error.

    Units and seeds are drawn apart, so each draw of the one goes with every draw of the other: that
    is a U-statistic of two samples (Hoeffding 1948), whose error is a fraction of that of pairs.

    Args:
        observed: The value.
        units: Draws of the units' part where there is no difference ``[draws]``.
        seeds: Of the seeds' own part ``[draws]``.
    """
    least, draws = abs(observed) * (1 - ROUNDING), len(units)
    by_units, by_seeds = _beyond(least, units, seeds), _beyond(least, seeds, units)
    p = (1 + by_units.sum() / draws) / (draws + 1)
    error = np.sqrt((by_units.var() + by_seeds.var()) / draws) / draws
    return float(p), max(float(error), 1 / (draws + 1))  # none so far is not none ever


def _beyond(least: float, own: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Count for each draw the others with which it is at least so far from 0, ``int64 [draws]``."""
    if not least:
        return np.full(len(own), len(others))
    ordered = np.sort(others)
    above = len(others) - np.searchsorted(ordered, least - own, "left")
    return above + np.searchsorted(ordered, -least - own, "right")
