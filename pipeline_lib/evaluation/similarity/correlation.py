"""Correlation of two samples, and how sure it is: Pearson's and Spearman's, drawn again at once."""

import numpy as np

from pipeline_lib.evaluation.significance import (
    bootstrap_counts,
    bootstrap_interval,
    bootstrap_totals,
)

_ROUNDING = 1e-12
"""Largest variance of a standardised or ranked sample that is taken for rounding error."""


def pearson(gold: np.ndarray, predicted: np.ndarray) -> float:
    """Return Pearson's correlation of two samples ``[pairs]``; 0 where one does not vary."""
    return correlation_of_totals(moments(gold, predicted).sum(axis=0)[None]).item()


def spearman(gold: np.ndarray, predicted: np.ndarray) -> float:
    """Return Spearman's correlation of two samples ``[pairs]``: Pearson's of their mid-ranks."""
    return _rank_correlation(gold, predicted, np.ones((1, len(gold)))).item()


def bootstrapped_pearson(
    gold: np.ndarray, predicted: np.ndarray, resamples: int, seed: int
) -> np.ndarray:
    """Return Pearson's correlation in each draw of the pairs ``[resamples]``.

    It is NaN where the pairs that were drawn do not vary.
    """
    totals = bootstrap_totals(moments(gold, predicted), resamples, seed)
    return correlation_of_totals(totals, unvaried=np.nan)


def bootstrapped_spearman(
    gold: np.ndarray, predicted: np.ndarray, resamples: int, seed: int
) -> np.ndarray:
    """Return Spearman's correlation in each draw of the pairs ``[resamples]``, ranked anew.

    It is NaN where the pairs that were drawn do not vary.
    """
    draws = bootstrap_counts(len(gold), resamples, seed)
    parts = [_rank_correlation(gold, predicted, counts, unvaried=np.nan) for counts in draws]
    return np.concatenate(parts)


def correlation_interval(name: str, draws: np.ndarray, confidence: float) -> dict[str, list[float]]:
    """Return ``{name_interval: [low, high]}`` of the draws in which pairs vary.

    There is none where they do not in more draws than an interval leaves out.
    """
    varied = draws[~np.isnan(draws)]
    if len(varied) < confidence * len(draws):
        return {}
    return {f"{name}_interval": bootstrap_interval(varied, confidence).tolist()}


CORRELATIONS = {
    "pearson": (pearson, bootstrapped_pearson),
    "spearman": (spearman, bootstrapped_spearman),
}
"""A correlation and its bootstrapped draws, by name."""


def moments(gold: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    """Return what each pair adds to a correlation ``[pairs, 6]``: 1, x, y, xx, yy, xy.

    Both samples are standardised first. That leaves the correlation as it is, keeps the sums
    accurate, and makes two systems' similarities exchangeable in a randomisation test.
    """
    x, y = (_standardised(np.asarray(sample, np.float64)) for sample in (gold, predicted))
    return np.stack([np.ones_like(x), x, y, x * x, y * y, x * y], axis=1)


def correlation_of_totals(totals: np.ndarray, unvaried: float = 0.0) -> np.ndarray:
    """Return Pearson's correlation of summed :func:`moments` ``[..., 6] -> [...]``.

    Where a sample does not vary it is what ``unvaried`` says.
    """
    means = totals / totals[..., :1]
    _, x, y, xx, yy, xy = np.moveaxis(means, -1, 0)
    return _divided(xy - x * y, xx - x * x, yy - y * y, unvaried=unvaried)


def _rank_correlation(
    gold: np.ndarray, predicted: np.ndarray, counts: np.ndarray, unvaried: float = 0.0
) -> np.ndarray:
    """Return Spearman's correlation of pairs that occur ``counts [draws, pairs]`` times."""
    total = counts.sum(axis=1, keepdims=True)
    x, y = (_mid_ranks(sample, counts) - (total + 1) / 2 for sample in (gold, predicted))
    means = ((counts * a * b).mean(axis=1) for a, b in ((x, y), (x, x), (y, y)))
    return _divided(*means, unvaried=unvaried)


def _mid_ranks(sample: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Rank repeated values; equal ones share the mean of their ranks ``[draws, pairs]``."""
    values, index = np.unique(sample, return_inverse=True)
    order = np.argsort(index, kind="stable")
    starts = np.searchsorted(index[order], np.arange(len(values)))
    size = np.add.reduceat(counts[:, order], starts, axis=1)
    return (np.cumsum(size, axis=1) - size + (size + 1) / 2)[:, index]


def _divided(covariance: np.ndarray, *variances: np.ndarray, unvaried: float) -> np.ndarray:
    """Divide a covariance by two standard deviations."""
    deviations = np.prod([np.sqrt(np.maximum(variance, 0)) for variance in variances], axis=0)
    varies = np.minimum(*variances) > _ROUNDING
    return np.divide(covariance, deviations, out=np.full_like(deviations, unvaried), where=varies)


def _standardised(sample: np.ndarray) -> np.ndarray:
    spread = sample.std()
    return (sample - sample.mean()) / (spread if spread else 1)
