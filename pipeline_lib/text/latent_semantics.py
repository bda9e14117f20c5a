"""Word vectors from which captions of one photo have which words (Deerwester et al. 1990).

Each photo is one document: all that is said of it, in every language. Words of several languages
that are said of the same photos come out alike, without a lexicon.
"""

import math
from array import array
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

Where = array
"""Numbers of documents: one per occurrence of a term, in their order. Four bytes each."""

_ITERATIONS = 5

_TERMS = 1000
"""Terms whose vectors are made at once; their frequencies take some kilobytes each."""

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


def _by_language(pairs: pd.DataFrame) -> tuple[dict[str, dict[str, Where]], int]:
    """Return in which photos each word of each language stands, and how many photos there are."""
    documents, photos = pd.factorize(pairs["image_id"])
    found = {
        language: _occurrences(pairs["tokens"].iloc[rows], documents[rows])
        for language, rows in sorted(pairs.groupby("language").indices.items())
    }
    return found, len(photos)


def _frequent(found: Mapping[str, Mapping[str, Where]], least: int) -> list[Where]:
    """Return where each word of enough photos stands."""
    every = (where for words in found.values() for where in words.values())
    return [where for where in every if len(where) >= least and len({*where}) >= least]


def _occurrences(sentences: Iterable[list[str]], documents: np.ndarray) -> dict[str, Where]:
    """Return in which documents each word stands."""
    found: dict[str, Where] = {}
    for tokens, document in zip(sentences, documents.tolist(), strict=True):
        for token in tokens:
            found.setdefault(token, Where("i")).append(document)
    return found


def _pieces(words: Mapping[str, Where]) -> dict[str, Where]:
    """Return in which documents each piece stands that words share."""
    known = set(shared_pieces(words))
    found: dict[str, Where] = {}
    for word, where in words.items():
        for piece in cut(word, known):
            found.setdefault(piece, Where("i")).extend(where)
    return found


def _counted(where: Where) -> tuple[np.ndarray, np.ndarray]:
    """Return the documents, in the order of their first occurrence, and how often each occurs."""
    documents, first, counts = np.unique(where, return_index=True, return_counts=True)
    order = np.argsort(first)
    return documents[order], counts[order]


def _matrix(terms: list[Where], documents: int) -> "csr_matrix":
    """Return terms as rows of unit length ``[terms, documents]``, frequencies on a log scale."""
    sparse = import_on_common_kernel("scipy.sparse")
    standing, counts = zip(*map(_counted, terms), strict=True)
    columns, often = np.concatenate(standing).astype(np.int64), np.concatenate(counts)
    logs = [0.0, *(1 + math.log(count) for count in range(1, often.max() + 1))]
    weights = np.array(logs)[often]
    ends = np.cumsum([0, *map(len, standing)])
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


def _vectors(terms: Mapping[str, Where], space: np.ndarray) -> Words:
    """Return the terms that have a direction in the space, and their vectors."""
    ordered = sorted(terms)
    blocks = (ordered[start : start + _TERMS] for start in range(0, len(ordered), _TERMS))
    found = np.concatenate(
        [_matrix([terms[term] for term in block], len(space)) @ space for block in blocks]
    )
    # A word that lies in the space has numbers of unit variance, which learn at a usual rate.
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
