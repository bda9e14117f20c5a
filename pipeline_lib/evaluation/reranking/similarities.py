"""Features of n-best lists: a joint space's similarities (§5 of Calixto et al. 2017), length."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from pipeline_lib.contract.features import Features
from pipeline_lib.contract.problems import raise_problems
from pipeline_lib.evaluation.reranking.nbest import NBest
from pipeline_lib.models.joint_space import JointSpace


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
    translations = _embed(model, [text.split() for text in texts], target)[place]
    compared = {}
    if "sentence" in similarities:
        compared["sentence"] = _embed(model, rows["source_tokens"].tolist(), source)
    if "image" in similarities:
        images = pd.Index(features.image_ids).get_indexer(rows["image_id"])
        compared["image"] = model.embed_features(torch.from_numpy(features.vectors[images]))
    return np.column_stack(
        [
            _scores_of_lists(
                model, compared[name], translations, lists, turned and name == "sentence"
            )
            for name in similarities
        ]
    )


def with_images(lists: NBest, rows: pd.DataFrame, images: set[str]) -> tuple[NBest, pd.DataFrame]:
    """Return the lists of the sentences whose image is one of ``images``, and their rows."""
    kept = rows["image_id"].isin(images).to_numpy()
    chosen, number = kept[lists.sentence], np.cumsum(kept) - 1
    return NBest(
        sentence=number[lists.sentence[chosen]],
        text=[text for text, keep in zip(lists.text, chosen, strict=True) if keep],
        names=lists.names,
        features=lists.features[chosen],
        scores=lists.scores[chosen],
    ), rows[kept].reset_index(drop=True)


def check_lists(
    name: str, lists: dict[str, tuple[NBest, pd.DataFrame]], pairs: pd.DataFrame
) -> None:
    """Raise unless every split has sentences, a list each, and no image that the model learnt from.

    Weights are tuned on ``val``, where a model may have been validated too; ``test`` it never saw.

    Args:
        name: Entry of ``rerankings``, for the message.
        lists: Lists and rows of sentences by split, ``val`` or ``test``.
        pairs: Captions that the model was trained and validated on (contract.tables.PAIRS).

    Raises:
        ContractError: Lists every problem.
    """
    raise_problems(f"rerankings.{name}", _problems(lists, pairs))


def _problems(lists: dict[str, tuple[NBest, pd.DataFrame]], pairs: pd.DataFrame) -> Iterator[str]:
    seen = {"val": pairs.loc[pairs["split"] == "train", "image_id"], "test": pairs["image_id"]}
    for split, (found, rows) in lists.items():
        if not len(rows):
            yield (
                f"split {split}: expected sentences whose image has features, found none. Name "
                "the extractor of the translated images in features, or compare no images"
            )
        if len(np.unique(found.sentence)) != len(rows):
            yield (
                f"split {split}: expected a list for each of {len(rows):,} sentences, found "
                f"{len(np.unique(found.sentence)):,}. Run evaluate_translator again"
            )
        shared = sorted(set(seen[split]).intersection(rows["image_id"]))
        if shared:
            yield (
                f"split {split}: {len(shared):,} of the translated images are among those that "
                f"the recipe has seen in training (first: {', '.join(shared[:5])}). Name a recipe "
                "that has not"
            )


def _embed(model: JointSpace, sentences: list[list[str]], language: str) -> Tensor:
    ids, lengths = model.vocabulary.encode_all(sentences, language)
    return model.embed_tokens(
        *(torch.from_numpy(each.astype(np.int64)) for each in (ids, lengths)), language
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
