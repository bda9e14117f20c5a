"""Word vectors from which captions of one photo have which words (Deerwester et al. 1990).

Each photo is one document: all that is said of it, in every language. Words of several languages
that are said of the same photos come out alike, without a lexicon.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from pipeline_lib.contract.problems import raise_problems
from pipeline_lib.settings.text import LatentSemanticVectors
from pipeline_lib.text.common_kernel import import_on_common_kernel
from pipeline_lib.text.pieces import cut, shared_pieces
from pipeline_lib.text.word_vectors import Words

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

_ITERATIONS = 5

_DECIMALS = 6
"""Vectors are rounded, so that no CPU's last bit is left in them."""


def latent_semantic_vectors(
    pairs: pd.DataFrame, options: LatentSemanticVectors
) -> dict[str, Words]:
    """Return vectors of the words of training captions, and of their pieces.

    Args:
        pairs: Training captions (contract.tables.PAIRS), each once.
        options: The size of a vector, and which words count.

    Returns:
        By language, words and pieces in alphabetical order with vectors ``float32 [words, dim]``.
        Those whose photos hold no frequent word may have none.

    Raises:
        ContractError: If there are fewer frequent words, or photos, than a vector has numbers.
    """
    found, photos = _by_language(pairs)
    frequent = _frequent(found, options.min_count)
    raise_problems("latent semantics", _too_few(len(frequent), photos, options))
    space = _space(_matrix(frequent, photos), options.dim)
    return {language: _vectors(words | _pieces(words), space) for language, words in found.items()}


def largest_dim(pairs: pd.DataFrame, min_count: int) -> int:
    """Return the most numbers that a vector of :func:`latent_semantic_vectors` may have.

    Args:
        pairs: Training captions, with ``image_id``, ``language`` and ``tokens``.
        min_count: Words of fewer photos do not count.
    """
    found, photos = _by_language(pairs)
    return min(len(_frequent(found, min_count)), photos)


def _by_language(pairs: pd.DataFrame) -> tuple[dict[str, dict[str, Counter[int]]], int]:
    """Return in which photos each word of each language stands, and how many photos there are."""
    documents, photos = pd.factorize(pairs["image_id"])
    found = {
        language: _occurrences(pairs["tokens"].iloc[rows], documents[rows])
        for language, rows in sorted(pairs.groupby("language").indices.items())
    }
    return found, len(photos)


def _frequent(found: Mapping[str, Mapping[str, Counter[int]]], least: int) -> list[Counter[int]]:
    """Return where each word of enough photos stands."""
    return [where for words in found.values() for where in words.values() if len(where) >= least]


def _occurrences(sentences: Iterable[list[str]], documents: np.ndarray) -> dict[str, Counter[int]]:
    """Return how often each word stands in each document."""
    found: dict[str, Counter[int]] = {}
    for tokens, document in zip(sentences, documents.tolist(), strict=True):
        for token in tokens:
            found.setdefault(token, Counter())[document] += 1
    return found


def _pieces(words: Mapping[str, Counter[int]]) -> dict[str, Counter[int]]:
    """Return how often each piece that words share stands in each document."""
    known = set(shared_pieces(words))
    found: dict[str, Counter[int]] = {}
    for word, where in words.items():
        for piece in cut(word, known):
            found.setdefault(piece, Counter()).update(where)
    return found


def _matrix(terms: list[Counter[int]], documents: int) -> "csr_matrix":
    """Return terms as rows of unit length ``[terms, documents]``, frequencies on a log scale."""
    sparse = import_on_common_kernel("scipy.sparse")
    columns = np.fromiter((d for term in terms for d in term), np.int64)
    logs = {count: 1 + math.log(count) for count in {n for term in terms for n in term.values()}}
    weights = np.fromiter((logs[n] for term in terms for n in term.values()), np.float64)
    ends = np.cumsum([0, *map(len, terms)])
    squares = np.add.reduceat(weights * weights, ends[:-1])
    weights /= np.repeat(np.sqrt(squares), np.diff(ends))
    return sparse.csr_matrix((weights, columns, ends), shape=(len(terms), documents))


def _space(matrix: "csr_matrix", dim: int) -> np.ndarray:
    """Return the space of the first right singular vectors ``[documents, dim]``.

    By subspace iteration from a random start (algorithm 4.4 of Halko et al. 2011). Which basis of
    the space it is does not matter: vectors of words are turned alike.
    """
    qr = import_on_common_kernel("scipy.linalg").qr
    found = np.random.default_rng(0).standard_normal((matrix.shape[1], dim))
    for _ in range(_ITERATIONS):
        found = qr(matrix.T @ (matrix @ found), mode="economic")[0]
    return found


def _vectors(terms: Mapping[str, Counter[int]], space: np.ndarray) -> Words:
    """Return the terms that have a direction in the space, and their vectors."""
    ordered = sorted(terms)
    # A word that lies in the space has numbers of unit variance, which learn at a usual rate.
    found = _matrix([terms[term] for term in ordered], len(space)) @ space
    found = np.round(found * math.sqrt(space.shape[1]), _DECIMALS).astype(np.float32)
    rows = np.flatnonzero(found.any(axis=1))
    return [ordered[row] for row in rows], found[rows]


def _too_few(terms: int, photos: int, options: LatentSemanticVectors) -> Iterator[str]:
    for name, found in (("words of enough photos", terms), ("photos", photos)):
        if found < options.dim:
            yield (
                f"expected at least {options.dim} {name}, as many as dim, found {found}: "
                "lower dim, or add captions"
            )
