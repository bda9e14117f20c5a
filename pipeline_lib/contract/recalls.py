"""Recalls at the field's cut-offs, and what a blind guess would give."""

from collections.abc import Iterable
from math import comb, sqrt

import numpy as np

CUTOFFS = (1, 5, 10)
"""R@k of every table is for these k."""

PERFECT_RECALL_SUM = 200 * len(CUTOFFS)
"""Of R@k (%) in both directions."""

CHANCE_DEVIATIONS = 3
"""Standard deviations of chance that a sum of recalls is to exceed it by."""


def recalls(ranks: np.ndarray) -> list[float]:
    """Return the share of ranks ``[queries]`` within each of :data:`CUTOFFS`, in per cent."""
    return [100 * float((ranks <= k).mean()) for k in CUTOFFS]


def chance_recall_sums(pools: Iterable[tuple[int, int]]) -> tuple[float, float]:
    """Add up the sums of recalls (%) of random ranks in several pools, and their deviations.

    Args:
        pools: Images and captions of each.
    """
    chances, deviations = zip(*(chance_recall_sum(*pool) for pool in pools), strict=True)
    return sum(chances), sum(deviations)


def chance_recall_sum(images: int, captions: int) -> tuple[float, float]:
    """Return the sum of six recalls (%) of random ranks, and a bound on its standard deviation.

    Args:
        images: In the pool.
        captions: Of all of them, of each equally many.
    """
    right = max(1, round(captions / images))
    shares = [min(k / images, 1) for k in CUTOFFS]
    shares += [1 - comb(captions - right, k) / max(1, comb(captions, k)) for k in CUTOFFS]
    # As if one caption's rank decided those of its image's others: the deviation is no larger.
    deviations = (sqrt(share * (1 - share) / images) for share in shares)
    return 100 * sum(shares), 100 * sum(deviations)
