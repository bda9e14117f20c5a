"""Word vectors of several languages in HDF5, one group per language, with their words."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import h5py
import numpy as np
import pandas as pd

from pipeline_lib.contract.hdf5 import numbers_of, reading_hdf5, text_of, writing_hdf5
from pipeline_lib.contract.problems import (
    duplicate_rows,
    empty_text,
    faulty,
    raise_problems,
)

WORD_VECTORS_VERSION = 1


@dataclass(frozen=True)
class WordVectors:
    """What words start from, each language in its own space or all in one.

    Attributes:
        by_language: Words and their vectors ``float32 [words, dim]``; one ``dim`` for all.
        image_ids: Images whose captions the vectors were learnt from; none if read from files.
        attributes: What made them: method, its settings, the library's version or files' sha256.
    """

    by_language: dict[str, tuple[list[str], np.ndarray]]
    image_ids: list[str]
    attributes: dict[str, object]


def write_word_vectors(vectors: WordVectors, path: Path) -> None:
    """Check word vectors and publish them as contiguous, uncompressed HDF5."""
    raise_problems(path, check_word_vectors(vectors))
    with writing_hdf5(path, WORD_VECTORS_VERSION, vectors.attributes) as file:
        _write_text(file, "image_id", vectors.image_ids)
        languages = file.create_group("languages")
        for language, (words, matrix) in sorted(vectors.by_language.items()):
            _write_text(languages, f"{language}/words", words)
            languages.create_dataset(
                f"{language}/vectors", data=matrix.astype(np.float32, copy=False)
            )


def read_word_vectors(path: Path) -> WordVectors:
    """Read and check word vectors, whole, into memory."""
    with reading_hdf5(path, WORD_VECTORS_VERSION) as (file, attributes):
        vectors = WordVectors(
            by_language={
                language: (text_of(group["words"]).tolist(), numbers_of(group["vectors"]))
                for language, group in file["languages"].items()
            },
            image_ids=text_of(file["image_id"]).tolist(),
            attributes=attributes,
        )
    raise_problems(path, check_word_vectors(vectors))
    return vectors


def empty_word_vectors() -> WordVectors:
    """Return vectors of no word: what ``word_vectors: random`` starts from."""
    return WordVectors({}, [], {})


def check_word_vectors(vectors: WordVectors) -> Iterator[str]:
    """Yield every way in which word vectors break the contract."""
    for language, (words, matrix) in sorted(vectors.by_language.items()):
        yield from (f"{language}: {problem}" for problem in _check_language(words, matrix))
    sizes = {
        language: matrix.shape[1]
        for language, (_, matrix) in sorted(vectors.by_language.items())
        if matrix.ndim == 2
    }
    if len(set(sizes.values())) > 1:
        yield f"expected vectors of one size in all languages, found {sizes}"


def check_unseen(vectors: WordVectors, image_ids: Iterable[str], held_out: str) -> Iterator[str]:
    """Yield one sentence if the vectors were learnt from captions of images that are held out.

    Args:
        vectors: Word vectors.
        image_ids: Images that nothing may learn from.
        held_out: What they are called, such as ``validation``.
    """
    seen = sorted(set(vectors.image_ids) & set(image_ids))
    if seen:
        yield (
            f"word vectors learnt from captions of {len(seen)} {held_out} images "
            f"(first: {seen[0]!r}). Train them on a pair set of the same split."
        )


def _check_language(words: list[str], matrix: np.ndarray) -> Iterator[str]:
    if matrix.ndim != 2 or len(words) != len(matrix):
        yield f"expected one row per word; found {len(words)} words, vectors of {matrix.shape}"
        return
    rows = pd.DataFrame({"word": words}, dtype=object)
    yield from duplicate_rows(rows, ["word"])
    yield from empty_text(rows, ["word"])
    yield from faulty(rows[~np.isfinite(matrix).all(axis=1)], "word", "have NaN or infinity")
    yield from faulty(rows[~matrix.any(axis=1)], "word", "are all zero")


def _write_text(group: h5py.Group, name: str, items: list[str]) -> None:
    group.create_dataset(name, data=[item.encode() for item in items], dtype=h5py.string_dtype())
