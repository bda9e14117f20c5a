"""How sure a score is: bootstrap intervals and randomisation tests, for every task.

The captions of one image are not independent, so the image is the unit that is drawn: its queries
stay together. Where there are no images, a unit is a pair of sentences or a segment. A score is a
function of sums over units: hits / queries, or BLEU of summed n-gram counts.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from pipeline_lib.compute.exact import summable

Score = Callable[[np.ndarray], np.ndarray]
"""Scores of summed statistics: ``[draws, statistics] -> [draws]``."""

_BATCH = 500
"""Draws per step: bounds memory at ``_BATCH x units`` numbers."""

ROUNDING = 1e-12
"""Share by which equal differences of scores may come out unequal."""


def bootstrap_counts(units: int, resamples: int, seed: int) -> Iterator[np.ndarray]:
    """Draw ``units`` units with replacement, again and again.

    Args:
        units: How many there are.
        resamples: How many times to draw all of them.
        seed: Seed of the draws; with equally many units, equal draws.

    Yields:
        How often each unit was drawn, ``float64 [some resamples, units]``; together all of them.
    """
    generator = np.random.default_rng(seed)
    for start in range(0, resamples, _BATCH):
        rows = min(_BATCH, resamples - start)
        drawn = generator.integers(0, units, (rows, units))
        drawn += np.arange(rows)[:, None] * units
        counts = np.bincount(drawn.ravel(), minlength=rows * units)
        yield counts.reshape(rows, units).astype(np.float64)


def bootstrap_totals(statistics: np.ndarray, resamples: int, seed: int) -> np.ndarray:
    """Sum the statistics ``[units, statistics]`` of each draw, ``[resamples, statistics]``.

    Two systems that are measured on the same units in the same order share the draws of a seed.
    """
    statistics = summable(statistics.astype(np.float64), len(statistics))
    draws = bootstrap_counts(len(statistics), resamples, seed)
    return np.vstack([counts @ statistics for counts in draws])


def bootstrap_ratios(sums: np.ndarray, counts: np.ndarray, resamples: int, seed: int) -> np.ndarray:
    """Draw the units again with replacement, and compute the ratios of each draw.

    Columns share their draws, so sums of columns have the right spread too. See Efron and
    Tibshirani, An Introduction to the Bootstrap, 1993, chapter 13 (percentile intervals).

    Args:
        sums: Sum of a value over the queries of each unit, as an image ``[units, statistics]``.
        counts: Queries of each unit ``[units, statistics]``.
        resamples: How many times to draw.
        seed: Seed of the draws; with equally many units, equal draws.

    Returns:
        Ratios of the summed values to the summed counts ``[resamples, statistics]``.

    Raises:
        ValueError: ``sums`` and ``counts`` differ in shape, or a unit has no query.
    """
    if sums.ndim != 2 or sums.shape != counts.shape or not (counts > 0).all():
        raise ValueError(
            "expected sums and counts [units, statistics] with a query for each unit, found "
            f"{sums.shape} and {counts.shape}, smallest count {counts.min(initial=0)}"
        )
    totals = bootstrap_totals(np.hstack([sums, counts]), resamples, seed)
    return totals[:, : sums.shape[1]] / totals[:, sums.shape[1] :]


def bootstrap_interval(values: np.ndarray, confidence: float) -> np.ndarray:
    """Return the percentile interval ``[2, ...]`` of bootstrapped values ``[resamples, ...]``."""
    tail = (1 - confidence) / 2
    return np.quantile(values, [tail, 1 - tail], axis=0)


def sign_flipped_totals(values: np.ndarray, draws: int, seed: int) -> np.ndarray:
    """Sum values ``[units, columns]`` with the sign of each unit tossed, ``[draws, columns]``."""
    values = summable(values.astype(np.float64), len(values))
    generator = np.random.default_rng(seed)
    totals = []
    for start in range(0, draws, _BATCH):
        shape = (min(_BATCH, draws - start), len(values))
        signs = 2.0 * generator.integers(0, 2, shape, dtype=np.int8) - 1
        totals.append(signs @ values)
    return np.vstack(totals)


def holm(p: Sequence[float]) -> list[float]:
    """Correct p-values for their number (Holm 1979): of those below a level, all hold together.

    Returns:
        One corrected p-value each, in the same order.
    """
    order = np.argsort(p, kind="stable")
    scaled = np.minimum(1, np.asarray(p, float)[order] * np.arange(len(order), 0, -1))
    corrected = np.empty(len(order))
    corrected[order] = np.maximum.accumulate(scaled)
    return corrected.tolist()


def randomisation_test(
    statistics_a: np.ndarray,
    statistics_b: np.ndarray,
    score: Score,
    permutations: int,
    seed: int,
    noises: np.ndarray | float = 0.0,
) -> float:
    """Test whether two systems differ in a score of summed statistics, by swapping units.

    Approximate randomisation (Noreen 1989; Riezler and Maxwell 2005): under the null hypothesis
    each unit's outputs could as well have come from the other system. Two-sided; the observed
    labelling counts as one of the draws, which keeps p above zero (Phipson and Smyth 2010).

    Args:
        statistics_a: What system a contributes to the score on each unit ``[units, statistics]``.
        statistics_b: The same for system b, on the same units in the same order.
        score: Turns sums over units into scores.
        permutations: How many times to swap units at random.
        seed: Seed of the swaps.
        noises: What else moves the difference where there is none, ``[permutations]``
            (seed_noise.noise_draws).

    Returns:
        The p-value, in (0, 1].

    Raises:
        ValueError: The systems were not measured on the same units and statistics.
    """
    if statistics_a.shape != statistics_b.shape or statistics_a.ndim != 2:
        raise ValueError(
            "expected the same [units, statistics] of both systems, found "
            f"{statistics_a.shape} and {statistics_b.shape}"
        )
    moved = statistics_b.astype(np.float64) - statistics_a
    moved = moved[moved.any(axis=1)]
    moved = summable(moved, len(moved))
    totals = [
        statistics.sum(axis=0, dtype=np.float64) for statistics in (statistics_a, statistics_b)
    ]
    observed = np.subtract(*(score(total[None]) for total in totals)).item()
    generator = np.random.default_rng(seed)
    noises = np.broadcast_to(noises, permutations)
    extreme = 1
    for start in range(0, permutations, _BATCH):
        shape = (min(_BATCH, permutations - start), len(moved))
        swapped = generator.integers(0, 2, shape, dtype=np.int8).astype(np.float64) @ moved
        tossed = score(totals[0] + swapped) - score(totals[1] - swapped)
        tossed = tossed + noises[start : start + shape[0]]
        extreme += int(as_extreme(tossed, observed))
    return extreme / (permutations + 1)


def as_extreme(drawn: np.ndarray, observed: np.ndarray | float) -> np.ndarray:
    """Count the draws ``[draws, ...]`` at least as far from 0 as what was observed ``[...]``."""
    return (abs(drawn) >= abs(observed) * (1 - ROUNDING)).sum(axis=0)
