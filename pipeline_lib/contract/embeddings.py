"""Vectors of trained models for what they are evaluated on, in HDF5."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import h5py
import numpy as np
import pandas as pd

from pipeline_lib.contract.problems import ContractError, raise_problems
from pipeline_lib.publishing import publish

Labelled = tuple[np.ndarray, np.ndarray]
"""Unique labels ``[n]`` and a vector each, ``float32 [n, dim]``."""


@dataclass(frozen=True)
class Embeddings:
    """Vectors of one trained model (one seed).

    Attributes:
        image_ids: Images of the evaluated split ``[images]``.
        images: Their vectors ``[images, dim]``.
        caption_ids: Its captions in the model's languages ``[captions]``.
        captions: Their vectors ``[captions, dim]``.
        sentences: Sentences that are no captions, by language, and their vectors.
        words: Words of each language, and their vectors as the recurrent layer reads them.
    """

    image_ids: np.ndarray
    images: np.ndarray
    caption_ids: np.ndarray
    captions: np.ndarray
    sentences: Mapping[str, Labelled] = field(default_factory=dict)
    words: Mapping[str, Labelled] = field(default_factory=dict)

    def captions_of(self, caption_ids: Sequence[str]) -> np.ndarray:
        """Return the vectors of these captions, in this order ``[captions, dim]``."""
        return _vectors_of("captions", caption_ids, self.caption_ids, self.captions)

    def sentences_of(self, sentences: Sequence[str], language: str) -> np.ndarray:
        """Return the vectors of these sentences, in this order ``[sentences, dim]``."""
        return _vectors_of(f"{language} sentences", sentences, *self.sentences[language])


def write_embeddings(by_seed: dict[int, Embeddings], path: Path) -> None:
    """Publish the embeddings of one recipe, one group per seed."""
    with publish(path) as temporary, h5py.File(temporary, "w") as file:
        for seed, item in sorted(by_seed.items()):
            group = file.create_group(f"seed-{seed}")
            problems = [
                *_write(group, "images", (item.image_ids, item.images)),
                *_write(group, "captions", (item.caption_ids, item.captions)),
            ]
            for kind in ("sentences", "words"):
                languages = group.create_group(kind)
                for language, labelled in sorted(getattr(item, kind).items()):
                    problems += _write(languages, language, labelled)
            raise_problems(path, problems)


def read_embeddings(path: Path) -> dict[int, Embeddings]:
    """Read the embeddings of one recipe, by seed."""
    problems: list[str] = []

    def read(group: h5py.Group) -> Labelled:
        labelled = group["id"].asstr()[:].astype(object), group["vectors"][:]
        problems.extend(_problems(group.name, *labelled))
        return labelled

    with h5py.File(path, "r") as file:
        by_seed = {
            int(name.removeprefix("seed-")): Embeddings(
                *read(group["images"]),
                *read(group["captions"]),
                **{
                    kind: {language: read(part) for language, part in group[kind].items()}
                    for kind in ("sentences", "words")
                },
            )
            for name, group in file.items()
        }
    raise_problems(path, problems)
    return by_seed


def _write(group: h5py.Group, name: str, labelled: Labelled) -> Iterator[str]:
    """Write labels and vectors, and yield what is wrong with them."""
    labels, vectors = labelled
    part = group.create_group(name)
    encoded = [label.encode() for label in labels]
    part.create_dataset("id", data=encoded, dtype=h5py.string_dtype())
    part.create_dataset("vectors", data=vectors.astype(np.float32, copy=False))
    yield from _problems(part.name, labels, vectors)


def _problems(where: str, labels: np.ndarray, vectors: np.ndarray) -> Iterator[str]:
    if vectors.ndim != 2 or len(labels) != len(vectors):
        yield f"{where}: expected one row per id; found {len(labels)}, vectors {vectors.shape}"
    elif not np.isfinite(vectors).all():
        yield f"{where}: vectors contain NaN or infinity"
    repeated = pd.Index(labels).duplicated()
    if repeated.any():
        yield f"{where}: {repeated.sum()} ids are repeated (first: {labels[repeated][0]!r})"


def _vectors_of(
    kind: str, asked: Sequence[str], labels: np.ndarray, vectors: np.ndarray
) -> np.ndarray:
    rows = pd.Index(labels).get_indexer(asked)
    if (rows < 0).any():
        first = str(pd.Index(asked)[rows < 0][0])
        raise ContractError(
            f"{(rows < 0).sum()} {kind} have no vector (first: {first!r}): run the stage embed"
        )
    return vectors[rows]
