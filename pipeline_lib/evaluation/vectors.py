"""Vectors of one trained model for what it is evaluated on, by what they are of."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from pipeline_lib.contract.problems import ContractError, raise_problems

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
        words: Words of each language, and their vectors as the sentence encoder reads them.

    Raises:
        ContractError: Labels are repeated, have no vector each, or a vector is not finite.
    """

    image_ids: np.ndarray
    images: np.ndarray
    caption_ids: np.ndarray
    captions: np.ndarray
    sentences: Mapping[str, Labelled] = field(default_factory=dict)
    words: Mapping[str, Labelled] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check them all."""
        parts = {
            "images": (self.image_ids, self.images),
            "captions": (self.caption_ids, self.captions),
            **{f"{language} sentences": part for language, part in self.sentences.items()},
            **{f"{language} words": part for language, part in self.words.items()},
        }
        found = [problem for name, part in parts.items() for problem in _problems(name, *part)]
        raise_problems("vectors", found)

    def captions_of(self, caption_ids: Sequence[str]) -> np.ndarray:
        """Return the vectors of these captions, in this order ``[captions, dim]``."""
        return _vectors_of("captions", caption_ids, self.caption_ids, self.captions)

    def sentences_of(self, sentences: Sequence[str], language: str) -> np.ndarray:
        """Return the vectors of these sentences, in this order ``[sentences, dim]``."""
        return _vectors_of(f"{language} sentences", sentences, *self.sentences[language])


def _problems(where: str, labels: np.ndarray, vectors: np.ndarray) -> Iterator[str]:
    if vectors.ndim != 2 or len(labels) != len(vectors):
        yield f"{where}: expected one row per label; found {len(labels)}, vectors {vectors.shape}"
    elif not np.isfinite(vectors).all():
        yield f"{where}: vectors contain NaN or infinity"
    repeated = pd.Index(labels).duplicated()
    if repeated.any():
        yield f"{where}: {repeated.sum()} labels are repeated (first: {labels[repeated][0]!r})"


def _vectors_of(
    kind: str, asked: Sequence[str], labels: np.ndarray, vectors: np.ndarray
) -> np.ndarray:
    rows = pd.Index(labels).get_indexer(asked)
    if (rows < 0).any():
        first = str(pd.Index(asked)[rows < 0][0])
        raise ContractError(f"{(rows < 0).sum()} {kind} have no vector (first: {first!r})")
    return vectors[rows]
