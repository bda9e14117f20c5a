"""Ranks of words' translations among all words of the other language.

Protocol of Conneau et al. (2018): each source word of a lexicon queries all target words; it
counts once, however many translations it has, and is right when one of them is among the first k.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from pipeline_lib.compute.exact import dot_products, lengths, ordered_sum

_CHUNK = 1024
"""Words that are scored against all words of the other language at a time."""

Correct = Callable[[np.ndarray, np.ndarray, int], np.ndarray]
"""What is taken off twice the cosine of each target word: ``[source], [target], k -> [target]``."""


def word_translation_ranks(
    source: np.ndarray, target: np.ndarray, gold: np.ndarray, correction: np.ndarray
) -> np.ndarray:
    """Rank the best translation of each source word among all target words that are none.

    Args:
        source: Unit vectors ``[source words, dim]``.
        target: Unit vectors ``[target words, dim]``.
        gold: Right pairs (row of ``source``, row of ``target``), unique ``[pairs, 2]``.
        correction: Taken off twice the cosine of each target word ``[target words]``.

    Returns:
        One rank per source word that ``gold`` names, in the order of the rows ``[queries]``; 1 is
        best, and ties count against the word.
    """
    words, query = np.unique(gold[:, 0], return_inverse=True)
    found = np.empty(len(words), np.int64)
    for rows in _chunks(len(words)):
        scores = 2 * dot_products(source[words[rows]], target) - correction
        inside = (query >= rows.start) & (query < rows.stop)
        right = query[inside] - rows.start, gold[inside, 1]
        best = np.full(len(scores), -np.inf, scores.dtype)
        np.maximum.at(best, right[0], scores[right])
        scores[right] = -np.inf
        found[rows] = 1 + (scores >= best[:, None]).sum(axis=1)
    return found


def neighbourhood_density(vectors: np.ndarray, others: np.ndarray, neighbours: int) -> np.ndarray:
    """Return the mean cosine of each word with its nearest words of the other language.

    It is ``r(y)`` of CSLS, cross-domain similarity local scaling (Conneau et al. 2018):
    ``CSLS(x, y) = 2 cos(x, y) - r(x) - r(y)``.

    Args:
        vectors: Unit vectors ``[words, dim]``.
        others: Unit vectors ``[other words, dim]``.
        neighbours: How many of them are near; all, if there are fewer.

    Returns:
        ``float64 [words]``; the same on every machine.
    """
    nearest = min(neighbours, len(others))
    density = np.empty(len(vectors))
    for rows in _chunks(len(vectors)):
        cosines = dot_products(vectors[rows], others)
        highest = np.sort(np.partition(cosines, -nearest, axis=1)[:, -nearest:], axis=1)
        density[rows] = ordered_sum(highest.T) / nearest
    return density


def _no_correction(source: np.ndarray, target: np.ndarray, neighbours: int) -> np.ndarray:
    return np.zeros(len(target))


def _csls_correction(source: np.ndarray, target: np.ndarray, neighbours: int) -> np.ndarray:
    # r(x) of the query is the same for all its candidates, so it changes no rank.
    return neighbourhood_density(target, source, neighbours)


CORRECTIONS: dict[str, Correct] = {
    "nearest_neighbour": _no_correction,
    "csls": _csls_correction,
}
"""How target words are scored, by name."""


def gold_pairs(
    source: Sequence[str], target: Sequence[str], lexicon: Iterable[tuple[str, str]]
) -> np.ndarray:
    """Return the lexicon's pairs as rows of both sides, sorted and unique ``[pairs, 2]``.

    Args:
        source: Words, unique.
        target: Words, unique.
        lexicon: Pairs (source word, target word); those with an unknown word are left out.
    """
    rows = [{word: row for row, word in enumerate(words)} for words in (source, target)]
    pairs = [(rows[0][a], rows[1][b]) for a, b in set(lexicon) if a in rows[0] and b in rows[1]]
    return np.array(sorted(pairs), np.int64).reshape(-1, 2)


def unit_rows(vectors: np.ndarray) -> np.ndarray:
    """Return the rows at length 1, in their type; the same on every machine."""
    return (vectors / lengths(vectors)[:, None]).astype(vectors.dtype)


def _chunks(length: int) -> Iterator[slice]:
    for start in range(0, length, _CHUNK):
        yield slice(start, min(start + _CHUNK, length))
