"""Word translation by nearest neighbours, the measure of how well two word spaces are aligned.

Protocol of Conneau et al. (2018): each source word of a lexicon queries all target words; it
counts once, however many translations it has, and is right when one of them is among the first k.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from pipeline_lib.contract.problems import raise_problems
from pipeline_lib.evaluation.ranking import dot_products
from pipeline_lib.evaluation.retrieval import CUTOFFS, bootstrapped_recalls, recalls
from pipeline_lib.evaluation.significance import bootstrap_interval

_CHUNK = 1024
"""Words that are scored against all words of the other language at a time."""

Correct = Callable[[np.ndarray, np.ndarray, int], np.ndarray]
"""What is taken off twice the cosine of each target word: ``[source], [target], k -> [target]``."""


def translation_precision(
    source: tuple[Sequence[str], np.ndarray],
    target: tuple[Sequence[str], np.ndarray],
    lexicon: Iterable[tuple[str, str]],
    *,
    csls_neighbours: int,
    resamples: int,
    confidence: float,
    seed: int,
) -> dict[str, dict[str, object]]:
    """Measure how precisely source words find their translations.

    Args:
        source: Words, unique, and their vectors ``[words, dim]``.
        target: Words, unique, and their vectors ``[words, dim]``.
        lexicon: Pairs (source word, target word); pairs with a word that has no vector are left
            out, and ``coverage`` says how many source words remain.
        csls_neighbours: Neighbours of a word that tell how dense its surroundings are.
        resamples: Bootstrap draws of the source words.
        confidence: Level of the intervals, such as 0.95.
        seed: Seed of the draws.

    Returns:
        For ``nearest_neighbour`` and ``csls``: ``p1``, ``p5``, ``p10`` in per cent, each with
        ``..._interval``, ``n_queries``, ``n_candidates`` and ``coverage`` in per cent.

    Raises:
        ContractError: Words and vectors disagree, or no pair of the lexicon can be tested; every
            problem is listed.
    """
    lexicon = set(lexicon)
    gold = _gold(source[0], target[0], lexicon)
    raise_problems("word translation", _problems(source, target, gold, csls_neighbours))
    vectors = [_unit(side[1]) for side in (source, target)]
    coverage = 100 * len(np.unique(gold[:, 0])) / len({word for word, _ in lexicon})

    def scores(ranks: np.ndarray) -> dict[str, object]:
        draws = bootstrapped_recalls(ranks, np.arange(len(ranks)), resamples, seed)
        bounds = bootstrap_interval(draws, confidence).T.tolist()
        return {
            **{f"p{k}": value for k, value in zip(CUTOFFS, recalls(ranks), strict=True)},
            **{f"p{k}_interval": bound for k, bound in zip(CUTOFFS, bounds, strict=True)},
            "n_queries": len(ranks),
            "n_candidates": len(target[0]),
            "coverage": coverage,
        }

    return {
        name: scores(translation_ranks(*vectors, gold, correct(*vectors, csls_neighbours)))
        for name, correct in CORRECTIONS.items()
    }


def translation_ranks(
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
    """
    nearest = min(neighbours, len(others))
    density = np.empty(len(vectors), vectors.dtype)
    for rows in _chunks(len(vectors)):
        cosines = dot_products(vectors[rows], others)
        density[rows] = np.partition(cosines, -nearest, axis=1)[:, -nearest:].mean(axis=1)
    return density


def _no_correction(source: np.ndarray, target: np.ndarray, neighbours: int) -> np.ndarray:
    return np.zeros(len(target), target.dtype)


def _csls_correction(source: np.ndarray, target: np.ndarray, neighbours: int) -> np.ndarray:
    # r(x) of the query is the same for all its candidates, so it changes no rank.
    return neighbourhood_density(target, source, neighbours)


CORRECTIONS: dict[str, Correct] = {
    "nearest_neighbour": _no_correction,
    "csls": _csls_correction,
}
"""How target words are scored, by name."""


def _gold(
    source: Sequence[str], target: Sequence[str], lexicon: set[tuple[str, str]]
) -> np.ndarray:
    rows = [{word: row for row, word in enumerate(words)} for words in (source, target)]
    pairs = [(rows[0][a], rows[1][b]) for a, b in lexicon if a in rows[0] and b in rows[1]]
    return np.array(sorted(pairs), np.int64).reshape(-1, 2)


def _problems(
    source: tuple[Sequence[str], np.ndarray],
    target: tuple[Sequence[str], np.ndarray],
    gold: np.ndarray,
    neighbours: int,
) -> Iterator[str]:
    for name, (words, vectors) in (("source", source), ("target", target)):
        if vectors.ndim != 2 or len(words) != len(vectors):
            yield f"expected one {name} vector per word, found {vectors.shape} for {len(words)}"
        elif not np.isfinite(vectors).all() or not vectors.any(axis=1).all():
            yield f"expected {name} vectors with a direction, found zero, NaN or infinity"
        if len(set(words)) < len(words):
            yield f"expected unique {name} words, found {len(words)}, {len(set(words))} distinct"
    if source[1].shape[1:] != target[1].shape[1:]:
        yield f"expected vectors of one size, found {source[1].shape} and {target[1].shape}"
    if neighbours < 1:
        yield f"expected at least one neighbour for CSLS, found {neighbours}"
    if not len(gold):
        yield "no pair of the lexicon has vectors on both sides: check its languages and case"


def _unit(vectors: np.ndarray) -> np.ndarray:
    vectors = vectors.astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def _chunks(length: int) -> Iterator[slice]:
    for start in range(0, length, _CHUNK):
        yield slice(start, min(start + _CHUNK, length))
