"""Vectors of one trained model for all that it is evaluated on, with their ids."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
import torch

from pipeline_lib.contract.features import Features
from pipeline_lib.evaluation.vectors import Embeddings
from pipeline_lib.models.joint_space import JointSpace
from pipeline_lib.settings.evaluations import StsEvaluation
from pipeline_lib.settings.text import Tokenizer
from pipeline_lib.text.tokenizers import build_tokenizer
from pipeline_lib.training.examples import feature_rows

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
    languages = model.architecture.languages
    rows = feature_rows(pd.Index(images["image_id"]), features)
    captions = captions[captions["language"].isin(languages)]
    by_language = [
        (
            group["caption_id"].to_numpy(),
            model.embed_sentences([*group["tokens"]], str(language)).numpy(),
        )
        for language, group in captions.groupby("language", sort=True)
    ]
    return Embeddings(
        image_ids=images["image_id"].to_numpy(),
        images=model.embed_features(torch.from_numpy(features.vectors[rows])).numpy(),
        caption_ids=np.concatenate([ids for ids, _ in by_language]),
        captions=np.concatenate([vectors for _, vectors in by_language]),
        sentences={
            language: (
                np.array([*tokens], object),
                model.embed_sentences([*tokens.values()], language).numpy(),
            )
            for language, tokens in sentences.items()
        },
        words={language: model.embed_words(language) for language in languages},
    )


def scored_sentences(
    scored: Mapping[str, pd.DataFrame], sts: StsEvaluation, tokenizers: Mapping[str, Tokenizer]
) -> dict[str, Sentences]:
    """Return the sentences of scored sets by language, each sentence once, tokenised.

    Args:
        scored: Pairs of each set (corpora.scored_pairs), by name.
        sts: Names the languages of the sets.
        tokenizers: Of these languages.
    """
    found: dict[str, dict[str, list[str]]] = {}
    for name, pairs in scored.items():
        language = sts.sets[name].language
        tokenize = build_tokenizer(language, **tokenizers[language].model_dump())
        sentences = found.setdefault(language, {})
        for text in pd.concat([pairs["first"], pairs["second"]]):
            sentences.setdefault(text, tokenize(text))
    return found
