"""Pairs and features as tensors on one device: a batch is then a selection of indices.

Ids stay outside the tensors: captions of 145,000 sentences of 40 words are 23 MB of int32.
"""

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from pipeline_lib.contract import ContractError, Features
from pipeline_lib.settings import Recipe
from pipeline_lib.text.vocabulary import Vocabulary


@dataclass(frozen=True)
class Sentences:
    """Encoded captions of one language.

    Attributes:
        token_ids: ``int64 [captions, steps]``, zero-padded; on the training device.
        lengths: ``int64 [captions]``; on the CPU, where batches are planned.
        image_index: Row of each caption's image in the features ``[captions]``; on the device.
    """

    token_ids: Tensor
    lengths: Tensor
    image_index: Tensor

    def __len__(self) -> int:
        return len(self.lengths)

    def to(self, device: torch.device) -> "Sentences":
        """Return the same sentences on ``device``."""
        return replace(
            self, token_ids=self.token_ids.to(device), image_index=self.image_index.to(device)
        )


@dataclass(frozen=True)
class Corpus:
    """What a model learns from, or is validated on.

    Attributes:
        features: Image features ``float32 [images, feature_dim]``.
        sentences: Captions of each (set, language).
    """

    features: Tensor
    sentences: dict[tuple[str, str], Sentences]

    def to(self, device: torch.device) -> "Corpus":
        """Return the same corpus on ``device``."""
        moved = {key: value.to(device) for key, value in self.sentences.items()}
        return Corpus(self.features.to(device), moved)


def build_vocabulary(pairs: pd.DataFrame, recipe: Recipe) -> Vocabulary:
    """Build the vocabulary of the training captions; a caption in two sets counts once."""
    train = pairs[pairs["split"] == "train"].drop_duplicates("caption_id")
    tokens = {
        language: train.loc[train["language"] == language, "tokens"]
        for language in recipe.languages
    }
    return Vocabulary.build(
        tokens,
        pooled=recipe.vocabulary == "pooled",
        min_count=recipe.min_count,
        markers=recipe.markers,
        oov=recipe.oov,
        max_tokens=recipe.max_tokens,
    )


def build_corpus(
    pairs: pd.DataFrame, split: str, features: Features, vocabulary: Vocabulary, recipe: Recipe
) -> Corpus:
    """Encode one split's captions and gather its images' features.

    Raises:
        ContractError: If a language of the recipe has no caption, or an image no features.
    """
    rows = pairs[(pairs["split"] == split) & pairs["language"].isin(recipe.languages)]
    _check_languages(rows, split, recipe)
    images = pd.Index(rows["image_id"].unique())
    vectors = features.vectors[_feature_rows(images, features)]
    sentences = {
        key: _encode(group, images, vocabulary, key[1])
        for key, group in rows.groupby(["set", "language"], sort=True)
    }
    return Corpus(torch.from_numpy(vectors), sentences)


def join_features(first: Features, second: Features) -> Features:
    """Join the features of two data sets; images that both have are taken from the first."""
    if not len(second.image_ids):
        return first
    if first.vectors.shape[1] != second.vectors.shape[1]:
        raise ContractError(
            f"features and more_features: expected one size, found {first.vectors.shape[1]} and "
            f"{second.vectors.shape[1]}. Use one backbone for both data sets."
        )
    new = ~np.isin(second.image_ids.astype(str), first.image_ids.astype(str))
    return Features(
        np.concatenate([first.image_ids, second.image_ids[new]]),
        np.concatenate([first.vectors, second.vectors[new]]),
        first.attributes,
    )


def _check_languages(rows: pd.DataFrame, split: str, recipe: Recipe) -> None:
    missing = sorted(set(recipe.languages) - set(rows["language"]))
    if missing:
        raise ContractError(
            f"pairs.{recipe.pairs}: no {split} caption in {', '.join(missing)}, which the recipe "
            "learns. Add the language to the pair set or take it out of the recipe."
        )


def _feature_rows(images: pd.Index, features: Features) -> np.ndarray:
    rows = pd.Index(features.image_ids).get_indexer(images)
    if (rows < 0).any():
        absent = images[rows < 0]
        raise ContractError(
            f"{len(absent)} images have captions but no features (first: {absent[0]!r}). "
            "Name the extractor of their data set in the recipe's features or more_features."
        )
    return rows


def _encode(
    rows: pd.DataFrame, images: pd.Index, vocabulary: Vocabulary, language: str
) -> Sentences:
    token_ids, lengths = vocabulary.encode_all(list(rows["tokens"]), language)
    return Sentences(
        token_ids=torch.from_numpy(token_ids.astype(np.int64)),
        lengths=torch.from_numpy(lengths.astype(np.int64)),
        image_index=torch.from_numpy(images.get_indexer(rows["image_id"]).astype(np.int64)),
    )
