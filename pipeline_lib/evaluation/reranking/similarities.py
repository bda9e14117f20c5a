"""Features of n-best lists: a joint space's similarities (§5 of Calixto et al. 2017), length."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from pipeline_lib.contract.features import Features
from pipeline_lib.evaluation.reranking.nbest import NBest
from pipeline_lib.models.joint_space import JointSpace
from pipeline_lib.training.examples import feature_rows


def with_own_features(lists: NBest) -> NBest:
    """Return n-best lists with all features that take no model.

    These are the translator's ``score``, by which it ranks itself, the features of its lists and
    the ``length`` in tokens: an n-best list holds shorter and longer translations, and what a
    weight of the length alone brings is no merit of a similarity.
    """
    lengths = np.array([len(text.split()) for text in lists.text], np.float64)
    return replace(
        lists,
        names=("score", *lists.names, "length"),
        features=np.column_stack([lists.scores, lists.features, lengths]),
    )


def list_similarities(
    lists: NBest,
    rows: pd.DataFrame,
    model: JointSpace,
    languages: tuple[str, str],
    features: Features,
    similarities: Sequence[str],
    turned: bool,
) -> np.ndarray:
    """Return how alike each translation is to what it is of, ``[hypotheses, similarities]``.

    Args:
        lists: Translations as tokens; list n is of row n of ``rows``.
        rows: ``image_id`` and ``source_tokens`` of each sentence.
        model: A trained model of the languages that are compared.
        languages: Of the sources and of the translations.
        features: Features of the images, if they are compared.
        similarities: ``sentence``: of source and translation, s_s; ``image``: of the source's
            image and translation, s_i.
        turned: Whether the translation is the first of two sentences (Recipe.compares_turned).
    """
    source, target = languages
    # Lists repeat translations of one another seldom, but a list's own may be equal as tokens.
    texts, place = np.unique(np.array(lists.text, object).astype(str), return_inverse=True)
    translations = model.embed_sentences([text.split() for text in texts], target)[place]
    compared = {}
    if "sentence" in similarities:
        compared["sentence"] = model.embed_sentences([*rows["source_tokens"]], source)
    if "image" in similarities:
        images = feature_rows(pd.Index(rows["image_id"]), features)
        compared["image"] = model.embed_features(torch.from_numpy(features.vectors[images]))
    return np.column_stack(
        [
            _scores_of_lists(
                model, compared[name], translations, lists, turned and name == "sentence"
            )
            for name in similarities
        ]
    )


def _scores_of_lists(
    model: JointSpace, of_sentences: Tensor, translations: Tensor, lists: NBest, turned: bool
) -> np.ndarray:
    """Return the similarity of each translation to what its list is of ``[hypotheses]``."""
    _, starts = np.unique(lists.sentence, return_index=True)
    each = translations.tensor_split(starts[1:].tolist())
    rows = [
        model.scores(own, vector[None])[:, 0] if turned else model.scores(vector[None], own)[0]
        for vector, own in zip(of_sentences, each, strict=True)
    ]
    return torch.cat(rows).double().numpy()
