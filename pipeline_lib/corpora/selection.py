"""Which captions a recipe may learn from: languages, kinds, how many per image, which images.

Every choice is made by the hash of an id under a seed, so it depends on nothing else: not on the
order of the rows, on the other languages of a call, or on the machine.
"""

import hashlib
from collections.abc import Collection, Iterator
from typing import Literal

import numpy as np
import pandas as pd

from pipeline_lib.contract.problems import raise_problems


def select(
    captions: pd.DataFrame,
    *,
    kinds: dict[str, list[str]],
    per_image: int | Literal["all"],
    images: str,
    excluded: Collection[str],
    validation: dict[str, list[str]],
    seed: int,
) -> pd.DataFrame:
    """Return the training captions asked for, and all validation captions of some kinds.

    Args:
        captions: Captions table of one whole data set, whose images the halves divide.
        kinds: Kinds of training captions to take, by language.
        per_image: At most so many training captions of each image in each language, drawn
            uniformly among its captions of those kinds; or ``all``.
        images: ``all``, or ``first_half`` or ``second_half`` of the training images: two disjoint
            halves, the same in every language. (Kádár et al. 2018 drew them anew for each
            language, so that their disjoint halves shared half of the images.)
        excluded: Images that are left out, of each half, too.
        validation: Kinds of validation captions, of which all are taken, by language.
        seed: Seed of both choices.

    Returns:
        Rows of ``captions`` in their order; splits other than train and val are left out.

    Raises:
        ContractError: Lists the languages and kinds that have no training caption.
    """
    asked = _asked(kinds)
    training = captions.loc[captions["split"] == "train", "image_id"].unique().to_numpy(object)
    of_half = half_of(training, images, seed)
    captions = captions[~captions["image_id"].isin(excluded)]
    wanted = captions[_kind(captions).isin(asked)]
    train = wanted["split"] == "train"
    raise_problems("selection of training captions", _absent(wanted[train], asked))
    chosen = wanted["image_id"].isin(of_half)
    drawn = wanted.index[train & chosen & _is_drawn(wanted, per_image, seed)]
    val = (captions["split"] == "val") & _kind(captions).isin(_asked(validation))
    return captions[captions.index.isin(drawn) | val]


def _asked(kinds: dict[str, list[str]]) -> list[str]:
    return [f"{language}/{kind}" for language in kinds for kind in kinds[language]]


def _kind(captions: pd.DataFrame) -> pd.Series:
    return captions["language"] + "/" + captions["annotation"]


def _absent(train: pd.DataFrame, asked: list[str]) -> Iterator[str]:
    present = set(_kind(train).unique())
    for kind in asked:
        if kind not in present:
            yield f"expected captions {kind} in the split train, found none"


def shuffled(ids: np.ndarray, seed: int) -> np.ndarray:
    """Return ids in the order of their hashes: the first of them are a sample."""
    return ids[np.argsort(_hashes(ids, seed))]


def share_of(ids: np.ndarray, share: float, seed: int) -> np.ndarray:
    """Return a share of ids, drawn by their hashes: a larger share holds each smaller one."""
    return shuffled(ids, seed)[: share_size(share, len(ids))]


def share_size(share: float, count: int) -> int:
    """Return how many of ``count`` ids :func:`share_of` returns."""
    return round(share * count)


def half_of(ids: np.ndarray, images: str, seed: int) -> np.ndarray:
    """Return the training images that :func:`select` takes ``images`` of, in no order."""
    drawn, middle = shuffled(ids, seed), len(ids) // 2
    return {"all": ids, "first_half": drawn[:middle], "second_half": drawn[middle:]}[images]


def _is_drawn(captions: pd.DataFrame, per_image: int | Literal["all"], seed: int) -> np.ndarray:
    if per_image == "all":
        return np.ones(len(captions), bool)
    group = [captions["image_id"].array, captions["language"].array]
    hashes = pd.Series(_hashes(captions["caption_id"], seed))
    return (hashes.groupby(group).rank(method="first") <= per_image).to_numpy()


def _hashes(ids: pd.Series | np.ndarray, seed: int) -> np.ndarray:
    digests = (
        hashlib.sha256(f"{seed} {name}".encode()).digest() for name in np.asarray(ids, object)
    )
    return np.array([int.from_bytes(digest[:8], "big") for digest in digests], dtype=np.uint64)
