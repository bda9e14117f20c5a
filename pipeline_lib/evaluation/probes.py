"""Probes of a trained space: hubs among its vectors, and recall by kind of caption."""

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from pipeline_lib.compute.exact import dot_products
from pipeline_lib.evaluation.retrieval.recalls import direction_scores, recall_bounds

_CHUNK = 1024
"""Queries that are scored against all candidates at a time."""


def hub_counts(queries: np.ndarray, candidates: np.ndarray | None, neighbours: int) -> np.ndarray:
    """Count how many queries have each candidate among their nearest: ``N_k``.

    Args:
        queries: Vectors ``[queries, dim]``; nearness is their dot product.
        candidates: Vectors ``[candidates, dim]``, or None for the queries themselves, of which
            none is its own neighbour.
        neighbours: How many candidates are near a query, k; of equally near ones the first.

    Returns:
        Counts ``int64 [candidates]``; their sum is k times the number of queries.

    Raises:
        ValueError: There are not more candidates than neighbours.
    """
    pool = queries if candidates is None else candidates
    if not 0 < neighbours < len(pool):
        raise ValueError(f"expected 1 to {len(pool) - 1} neighbours, found {neighbours}")
    counts = np.zeros(len(pool), np.int64)
    for start in range(0, len(queries), _CHUNK):
        scores = dot_products(queries[start : start + _CHUNK], pool)
        if candidates is None:
            itself = np.arange(len(scores))
            scores[itself, start + itself] = -np.inf
        counts += highest(scores, neighbours).sum(axis=0)
    return counts


def hubness(
    queries: np.ndarray, candidates: np.ndarray | None, neighbours: int
) -> dict[str, object]:
    """Describe the distribution of :func:`hub_counts`, whose arguments it takes.

    Returns:
        ``skewness`` of N_k (Radovanović et al. 2010; 0 without hubs), ``largest`` N_k, ``unseen``,
        the share in per cent of candidates near to no query, ``neighbours``, ``n_queries`` and
        ``n_candidates``. JSON-serialisable.
    """
    counts = hub_counts(queries, candidates, neighbours)
    return {
        "skewness": skewness(counts),
        "largest": int(counts.max()),
        "unseen": 100 * float((counts == 0).mean()),
        "neighbours": neighbours,
        "n_queries": len(queries),
        "n_candidates": len(counts),
    }


def highest(scores: np.ndarray, count: int) -> np.ndarray:
    """Return which scores are the highest of their row, of equal ones the first."""
    last = np.partition(scores, -count, axis=1)[:, -count, None]
    above, equal = scores > last, scores == last
    left = count - above.sum(axis=1, keepdims=True)
    return above | (equal & (np.cumsum(equal, axis=1) <= left))


def skewness(sample: np.ndarray) -> float:
    """Return the third standardised moment of a sample ``[n]``; 0 where it does not vary."""
    centred = sample - sample.mean()
    spread = centred.std()
    if not spread:
        return 0.0
    # Products, as powers other than 2 may differ by CPU in the last bit.
    return float((centred * centred * centred).mean() / (spread * spread * spread))


def rarest_word_counts(tokens: Sequence[Sequence[str]], training: Counter[str]) -> np.ndarray:
    """Return how often training saw the rarest word of each sentence, integers ``[sentences]``.

    Args:
        tokens: Tokens of each sentence, at least one.
        training: How often each token occurs in the training captions of the language.
    """
    return np.array([min(training[word] for word in words) for words in tokens], np.int64)


def recalls_by_bin(
    ranks: np.ndarray,
    values: np.ndarray,
    edges: Sequence[int],
    query_image: np.ndarray,
    n_candidates: int,
    *,
    resamples: int,
    confidence: float,
    seed: int,
) -> dict[str, dict[str, object]]:
    """Summarise the ranks of the queries in each bin of a value, such as their length.

    Args:
        ranks: One rank per query ``[queries]``.
        values: Integers from 0 ``[queries]``.
        edges: First value of each bin but the lowest, ascending.
        query_image: Image of each query ``[queries]``.
        n_candidates: Size of the pool that was ranked.
        resamples: Bootstrap draws of the images.
        confidence: Level of the intervals, such as 0.95.
        seed: Seed of the draws.

    Returns:
        By bin, ``"0-9"``, ``"10-19"``, ``"20-"``: see :func:`recalls.direction_scores`. Bins
        without a query are left out.

    Raises:
        ValueError: The arguments are not of equal length, or the edges not ascending.
    """
    if not len(ranks) == len(values) == len(query_image):
        raise ValueError(
            "expected one entry per query everywhere, found "
            f"{len(ranks)}, {len(values)} and {len(query_image)}"
        )
    if list(edges) != sorted(set(edges)):
        raise ValueError(f"expected ascending edges, found {list(edges)}")
    bins = np.digitize(values, edges)
    found = {}
    for number, label in enumerate(_labels(edges)):
        inside = bins == number
        if inside.any():
            bounds = recall_bounds(
                ranks[inside],
                query_image[inside],
                resamples=resamples,
                confidence=confidence,
                seed=seed,
            )
            found[label] = direction_scores(ranks[inside], bounds, n_candidates)
    return found


def _labels(edges: Sequence[int]) -> Iterator[str]:
    """Yield the first and last value of each bin; the highest is open."""
    first = ["0", *map(str, edges)]
    last = [*(str(edge - 1) for edge in edges), ""]
    for low, high in zip(first, last, strict=True):
        yield low if low == high else f"{low}-{high}"
