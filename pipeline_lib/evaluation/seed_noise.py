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
    as_extreme,
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
    """Interval of a difference of two means over seeds, and p of none; two-sided."""

    low: float
    high: float
    p: float


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
    p = two_sided_p(observed, sign_flipped_totals(differences, resamples, seed) + noises)
    drawn = {"resamples": resamples, "confidence": confidence, "seed": seed}
    low, high = mean_intervals(differences, noises, **drawn)
    return [DifferenceTest(*map(float, found)) for found in zip(low, high, p, strict=True)]


def two_sided_p(observed: np.ndarray, null: np.ndarray) -> np.ndarray:
    """Return how probable values as far from 0 as those observed are, ``[tests]``.

    Args:
        observed: Values ``[tests]``.
        null: Draws of them where there is no difference ``[draws, tests]``.
    """
    return (1 + as_extreme(null, observed)) / (len(null) + 1)
