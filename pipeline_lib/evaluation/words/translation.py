"""Precision of word translation, the measure of how well two word spaces are aligned."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from pipeline_lib.contract.problems import raise_problems
from pipeline_lib.contract.recalls import CUTOFFS, recalls
from pipeline_lib.evaluation.retrieval.recalls import recall_bounds
from pipeline_lib.evaluation.words.ranks import (
    CORRECTIONS,
    gold_pairs,
    unit_rows,
    word_translation_ranks,
)


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
    gold = gold_pairs(source[0], target[0], lexicon)
    raise_problems("word translation", _problems(source, target, gold, csls_neighbours))
    vectors = [unit_rows(side[1]) for side in (source, target)]
    coverage = 100 * len(np.unique(gold[:, 0])) / len({word for word, _ in lexicon})

    def scores(ranks: np.ndarray) -> dict[str, object]:
        each = np.arange(len(ranks))
        bounds = recall_bounds(ranks, each, resamples=resamples, confidence=confidence, seed=seed)
        return {
            **{f"p{k}": value for k, value in zip(CUTOFFS, recalls(ranks), strict=True)},
            **{f"p{k}_interval": bound for k, bound in zip(CUTOFFS, bounds, strict=True)},
            "n_queries": len(ranks),
            "n_candidates": len(target[0]),
            "coverage": coverage,
        }

    return {
        name: scores(word_translation_ranks(*vectors, gold, correct(*vectors, csls_neighbours)))
        for name, correct in CORRECTIONS.items()
    }


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
