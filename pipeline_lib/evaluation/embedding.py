"""Vectors of one trained model for all that it is evaluated on, with their ids."""

from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from pipeline_lib.contract.embeddings import Embeddings
from pipeline_lib.contract.features import Features
from pipeline_lib.evaluation.sts import read_scored_pairs
from pipeline_lib.models.joint_space import JointSpace
from pipeline_lib.settings.evaluations import StsEvaluation
from pipeline_lib.settings.text import Tokenizer
from pipeline_lib.text.tokenizers import build_tokenizer
from pipeline_lib.training.corpus import feature_rows

Sentences = Mapping[str, list[str]]
"""Tokens of each sentence."""


def embed_evaluated(
    model: JointSpace,
    captions: pd.DataFrame,
    images: pd.DataFrame,
    features: Features,
    sentences: Mapping[str, Sentences],
) -> Embeddings:
    """Embed the images and captions of a split, other sentences, and all words of a model.

    Args:
        model: A trained model.
        captions: Captions of the split (contract.tables.CAPTIONS); other languages than the
            model's are left out.
        images: Images of the split (contract.tables.IMAGES).
        features: Features of at least these images.
        sentences: Other sentences by language of the model.

    Raises:
        ContractError: If an image has no features.
    """
    languages = model.recipe.languages
    rows = feature_rows(pd.Index(images["image_id"]), features)
    captions = captions[captions["language"].isin(languages)]
    by_language = [
        (group["caption_id"].to_numpy(), _embed(model, group["tokens"], str(language)))
        for language, group in captions.groupby("language", sort=True)
    ]
    return Embeddings(
        image_ids=images["image_id"].to_numpy(),
        images=model.embed_features(torch.from_numpy(features.vectors[rows])).numpy(),
        caption_ids=np.concatenate([ids for ids, _ in by_language]),
        captions=np.concatenate([vectors for _, vectors in by_language]),
        sentences={
            language: (np.array([*tokens], object), _embed(model, tokens.values(), language))
            for language, tokens in sentences.items()
        },
        words={language: model.embed_words(language) for language in languages},
    )


def scored_sentences(
    sts: StsEvaluation, tokenizers: Mapping[str, Tokenizer], languages: Iterable[str]
) -> dict[str, Sentences]:
    """Read the sentences of the scored sets in some languages, each sentence once, tokenised."""
    found: dict[str, dict[str, list[str]]] = {}
    for name, scored in sts.sets.items():
        if scored.language not in languages:
            continue
        tokenize = build_tokenizer(scored.language, **tokenizers[scored.language].model_dump())
        pairs = read_scored_pairs(Path(sts.source) / sts.sets[name].file)
        sentences = found.setdefault(scored.language, {})
        for text in pd.concat([pairs["first"], pairs["second"]]):
            sentences.setdefault(text, tokenize(text))
    return found


def _embed(model: JointSpace, sentences: Iterable[list[str]], language: str) -> np.ndarray:
    token_ids, lengths = model.vocabulary.encode_all(list(sentences), language)
    tensors = (torch.from_numpy(array.astype(np.int64)) for array in (token_ids, lengths))
    return model.embed_tokens(*tensors, language).numpy()
