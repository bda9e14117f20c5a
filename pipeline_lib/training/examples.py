"""Pairs and features as tensors on one device: a batch is then a selection of indices.

Ids stay outside the tensors: captions of 145,000 sentences of 40 words are 46 MB of int64.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from pipeline_lib.contract.features import Features
from pipeline_lib.contract.problems import ContractError
from pipeline_lib.settings.recipes import Recipe
from pipeline_lib.text.training_text import training_captions
from pipeline_lib.text.vocabulary import UNK, Vocabulary


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
class Examples:
    """What a model learns from, or is validated on.

    Attributes:
        features: Image features ``[images, feature_dim]``, float32 as they are read. Images
            that captions name beyond these have none.
        sentences: Captions of each (set, language).
        lexicon: Ids of translated words ``int64 [pairs, 2]`` for each language but the recipe's
            first, into which they are translated.
    """

    features: Tensor
    sentences: dict[tuple[str, str], Sentences]
    lexicon: Mapping[str, Tensor] = field(default_factory=dict)

    def to(self, device: torch.device, dtype: torch.dtype) -> "Examples":
        """Return the same on ``device``, with features of type ``dtype``."""
        moved = {key: value.to(device) for key, value in self.sentences.items()}
        return Examples(self.features.to(device, dtype), moved, self.lexicon)


def build_vocabulary(pairs: pd.DataFrame, recipe: Recipe) -> Vocabulary:
    """Build the vocabulary of the training captions; a caption in two sets counts once."""
    train = training_captions(pairs)
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


def build_examples(
    pairs: pd.DataFrame,
    split: str,
    features: Features,
    vocabulary: Vocabulary,
    recipe: Recipe,
    lexicon: pd.DataFrame | None = None,
) -> Examples:
    """Encode one split's captions and gather its images' features.

    Args:
        pairs: Captions to choose from (contract.tables.PAIRS).
        split: ``train`` or ``val``.
        features: Of at least these images.
        vocabulary: Encodes the captions.
        recipe: Names the languages and the lexicon's protocol.
        lexicon: Translations to learn from (contract.lexicons.LEXICON), if any.

    Raises:
        ContractError: If a language of the recipe has no caption, or an image no features, unless
            the recipe learns from its captions alone.
    """
    rows = pairs[(pairs["split"] == split) & pairs["language"].isin(recipe.languages)]
    _check_languages(rows, split, recipe)
    images = pd.Index(rows["image_id"].unique())
    seen = images
    if recipe.reads_text_alone:
        known = images.isin(features.image_ids)
        if split != "train":
            _check_seen(rows[rows["image_id"].isin(images[~known])], split)
        elif not known.any():  # captions that no photo would be compared with
            feature_rows(images, features)
        images, seen = images[known].append(images[~known]), images[known]
    vectors = features.vectors[feature_rows(seen, features)]
    sentences = {
        key: _encode(group, images, vocabulary, key[1])
        for key, group in rows.groupby(["set", "language"], sort=True)
    }
    words = {} if lexicon is None else encode_lexicon(lexicon, vocabulary, recipe)
    return Examples(torch.from_numpy(vectors), sentences, words)


def encode_lexicon(
    lexicon: pd.DataFrame, vocabulary: Vocabulary, recipe: Recipe
) -> dict[str, Tensor]:
    """Return ids of words and of their translations into the recipe's first language.

    Entries are read in both directions; those with a word out of vocabulary are left out.

    Returns:
        For each further language, ``int64 [entries, 2]``: its word, the first language's word.
    """
    if not recipe.learns_lexicon:
        return {}
    rows = lexicon[(lexicon["fold"] == "train") & (lexicon["protocol"] == recipe.lexicon_protocol)]
    pivot = recipe.languages[0]
    there = rows[["source_language", "source_word", "target_language", "target_word"]]
    back = there.set_axis(
        ["target_language", "target_word", "source_language", "source_word"], axis=1
    )
    both = pd.concat([there, back[there.columns]])
    both = both[both["target_language"] == pivot].drop_duplicates()
    encoded = {}
    for language in recipe.languages[1:]:
        entries = both[both["source_language"] == language]
        ids = [
            vocabulary.word_ids(entries["source_word"], language),
            vocabulary.word_ids(entries["target_word"], pivot),
        ]
        known = np.stack(ids, axis=1)
        encoded[language] = torch.from_numpy(known[(known != UNK).all(axis=1)])
    return encoded


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


def _check_seen(text_alone: pd.DataFrame, split: str) -> None:
    """Raise if there are captions of photos without features, which nothing can be scored by."""
    if len(text_alone):
        photos, sets = text_alone["image_id"].unique(), sorted(text_alone["set"].unique())
        raise ContractError(
            f"{split} captions: expected features of every photo, found {len(photos)} without "
            f"(first: {photos[0]!r}). Leave their captions out by "
            f"{', '.join(f'pairs.{name}.validation' for name in sets)}, or name the extractor of "
            "their data set in the recipe's features or more_features."
        )


def feature_rows(images: pd.Index, features: Features) -> np.ndarray:
    """Return the row of each image in the features ``[images]``.

    Raises:
        ContractError: If an image has none.
    """
    rows = pd.Index(features.image_ids).get_indexer(images)
    if (rows < 0).any():
        absent = images[rows < 0]
        raise ContractError(
            f"{len(absent)} images have no features (first: {absent[0]!r}). "
            "Name the extractor of their data set in the recipe's features or more_features."
        )
    return rows


def _encode(
    rows: pd.DataFrame, images: pd.Index, vocabulary: Vocabulary, language: str
) -> Sentences:
    token_ids, lengths = vocabulary.encode_all(list(rows["tokens"]), language)
    return Sentences(
        token_ids=torch.from_numpy(token_ids),
        lengths=torch.from_numpy(lengths),
        image_index=torch.from_numpy(images.get_indexer(rows["image_id"]).astype(np.int64)),
    )
