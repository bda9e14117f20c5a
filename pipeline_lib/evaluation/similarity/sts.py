"""Semantic textual similarity: how well cosines of sentence vectors follow human scores.

Scored sets are those of the SemEval tasks (Agirre et al. 2014; 2015), read by
corpora.scored_pairs.
"""

from collections.abc import Iterable

import numpy as np
import pandas as pd

from pipeline_lib.evaluation.similarity.correlation import CORRELATIONS, correlation_interval
from pipeline_lib.text.letters import letters

_DECIMALS = 12
"""Of cosines: beyond them is what the order of sums leaves."""


def cosines(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return the cosine of each row of ``first`` with the same row of ``second``.

    Args:
        first: Sentence vectors ``[pairs, dim]``.
        second: Sentence vectors ``[pairs, dim]``.

    Raises:
        ValueError: Shapes differ, or a vector has no direction.
    """
    first, second = (np.asarray(vectors, np.float64) for vectors in (first, second))
    norms = [np.linalg.norm(vectors, axis=-1) for vectors in (first, second)]
    if first.shape != second.shape or first.ndim != 2:
        raise ValueError(f"expected equal [pairs, dim], found {first.shape} and {second.shape}")
    if not all(np.isfinite(norm).all() and (norm > 0).all() for norm in norms):
        raise ValueError("expected vectors with a direction, found zero, NaN or infinity")
    # Of equal sentences the last bit would differ: they tie, and scores that do not vary are seen.
    return np.round((first * second).sum(axis=1) / (norms[0] * norms[1]), _DECIMALS)


def overlapping(pairs: pd.DataFrame, training_texts: Iterable[str]) -> np.ndarray:
    """Return which pairs have a sentence that is a training caption, boolean ``[pairs]``.

    Sentences are equal when their letters and digits are: case, spaces and punctuation differ
    between copies of one caption (``it's`` and ``its``, ``fire truck`` and ``firetruck``).
    """
    known = {letters(text) for text in training_texts}
    return np.array(
        [
            letters(first) in known or letters(second) in known
            for first, second in zip(pairs["first"], pairs["second"], strict=True)
        ],
        dtype=bool,
    )


def sts_scores(
    gold: np.ndarray,
    predicted: np.ndarray,
    overlap: np.ndarray,
    *,
    resamples: int,
    confidence: float,
    seed: int,
) -> dict[str, dict[str, object]]:
    """Correlate predicted with human similarities, with and without what training has seen.

    Args:
        gold: Human scores ``[pairs]``.
        predicted: Cosines ``[pairs]``.
        overlap: Whether a sentence of the pair is a training caption ``[pairs]``, boolean.
        resamples: Bootstrap draws of the pairs.
        confidence: Level of the intervals, such as 0.95.
        seed: Seed of the draws.

    Returns:
        For ``all``, ``without_overlap`` and ``overlap_only``: ``n_pairs`` and, where the scores
        vary, ``pearson`` and ``spearman``, each with ``..._interval``. JSON-serialisable.

    Raises:
        ValueError: Shapes differ or numbers are not finite.
    """
    if not gold.shape == predicted.shape == overlap.shape or gold.ndim != 1:
        raise ValueError(
            "expected one entry per pair everywhere, found shapes "
            f"{gold.shape}, {predicted.shape} and {overlap.shape}"
        )
    if not (np.isfinite(gold).all() and np.isfinite(predicted).all()):
        raise ValueError("expected finite scores and cosines, found NaN or infinity")
    subsets = {
        "all": np.ones(len(gold), bool),
        "without_overlap": ~overlap,
        "overlap_only": overlap,
    }
    return {
        name: _correlations(gold[kept], predicted[kept], resamples, confidence, seed)
        for name, kept in subsets.items()
    }


def _correlations(
    gold: np.ndarray, predicted: np.ndarray, resamples: int, confidence: float, seed: int
) -> dict[str, object]:
    found: dict[str, object] = {"n_pairs": len(gold)}
    if len(gold) and np.ptp(gold) and np.ptp(predicted):
        for name, (correlation, bootstrapped) in CORRELATIONS.items():
            found[name] = correlation(gold, predicted)
            draws = bootstrapped(gold, predicted, resamples, seed)
            found |= correlation_interval(name, draws, confidence)
    return found
