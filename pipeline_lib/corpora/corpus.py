"""What every reader builds: a corpus of captions and images, checked as a whole."""

import difflib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from pipeline_lib.contract.problems import raise_problems
from pipeline_lib.contract.tables import CAPTIONS, IMAGES, check_images
from pipeline_lib.corpora.columns import SPLITS

CAPTION_COLUMNS = [name for name in CAPTIONS.names if name != "tokens"]
"""Columns of a corpus' captions: the contract's, before tokenisation."""


@dataclass(frozen=True)
class Corpus:
    """Captions and images of one data set, before tokenisation.

    Attributes:
        captions: Columns :data:`CAPTION_COLUMNS`; each caption's image is in ``images``.
        images: Columns of ``contract.IMAGES``; each image has one caption or more.
    """

    captions: pd.DataFrame
    images: pd.DataFrame


def caption_rows(
    photos: pd.DataFrame,
    dataset: str,
    *,
    language: str | pd.Series,
    annotation: str | pd.Series,
    position: int | pd.Series,
    text: list[str] | pd.Series,
    source: pd.Series | None = None,
) -> pd.DataFrame:
    """Return one captions row per row of ``photos``; series belong to its index.

    Args:
        photos: ``image_id``, ``split`` and ``key`` (what names the image in a caption id) of
            each caption's image ``[captions]``.
        dataset: Name of the data set.
        language: Language of all captions, or of each.
        annotation: Entry of ``contract.ANNOTATIONS``, for all or for each.
        position: Number of the caption among those of its image, language and annotation.
        text: Cleaned sentences ``[captions]``.
        source: Ids of the captions that they translate ``[captions]``, missing where unknown.
    """
    rows = photos[["image_id", "split", "key"]].assign(
        dataset=dataset,
        language=language,
        annotation=annotation,
        position=position,
        text=text,
        source_caption_id=source,
    )
    rows["caption_id"] = caption_ids(
        dataset, rows["key"], rows["language"], rows["annotation"], rows["position"]
    )
    return rows[CAPTION_COLUMNS]


def caption_ids(
    dataset: str,
    key: pd.Series,
    language: str | pd.Series,
    annotation: str | pd.Series,
    position: pd.Series | np.ndarray,
) -> pd.Series:
    """Return caption ids ``<dataset>/<key>/<language>/<annotation>/<position>``."""
    position = pd.Series(position, index=key.index).astype(str)
    return dataset + "/" + key + "/" + language + "/" + annotation + "/" + position


def assemble(
    captions: list[pd.DataFrame], images: pd.DataFrame, dataset: str, raw: Path, problems: list[str]
) -> Corpus:
    """Check and return a corpus; images without a caption are left out.

    Args:
        captions: Blocks of :func:`caption_rows`.
        images: ``image_id``, ``split`` and ``path`` of every photo.
        dataset: Name of the data set.
        raw: Folder that was read, for the error message.
        problems: What the reader has noted so far.

    Raises:
        ContractError: Lists the noted problems; where there is none, what is wrong with the
            whole, which on a broken corpus would only echo them.
    """
    raise_problems(raw, problems)
    rows = pd.concat(captions) if captions else pd.DataFrame(columns=CAPTION_COLUMNS)
    captioned = images["image_id"].isin(rows["image_id"].unique())
    photos = images[captioned].assign(dataset=dataset)[IMAGES.names].reset_index(drop=True)
    raise_problems(raw, [*_inconsistencies(rows), *check_images(photos)])
    types = {"position": np.int16, "source_caption_id": "str"}
    return Corpus(rows.reset_index(drop=True).astype(types), photos)


def language_problems(languages: list[str], known: Iterable[str]) -> Iterator[str]:
    """Yield what is wrong with a list of languages to read."""
    known = list(known)
    if not languages or len(set(languages)) != len(languages):
        yield f"languages: expected one or more different ones, found {languages}"
    for language in languages:
        if language not in known:
            yield f"languages: expected some of {', '.join(known)}; found {language}"


_OTHER_NAMES = {
    "dev": "val",
    "valid": "val",
    "validation": "val",
    "eval": "test",
    "heldout": "test",
}


def intended_split(name: str) -> str | None:
    """Return which of :data:`SPLITS` a name of a split may stand for, or None."""
    name = name.strip().lower()
    close = difflib.get_close_matches(name, SPLITS, n=1, cutoff=0.7)
    return _OTHER_NAMES.get(name) or next(iter(close), None)


def split_hint(names: Iterable[str]) -> str:
    """Return for which splits some other names may stand, as the end of a sentence."""
    meant = {name: intended_split(name) for name in sorted({*names} - {*SPLITS})}
    asked = [f"{split!r} for {name!r}" for name, split in meant.items() if split]
    return f". Did you mean {' and '.join(asked)}?" if asked else "."


def _inconsistencies(rows: pd.DataFrame) -> Iterator[str]:
    if rows.empty:
        yield "expected captions, found none in the languages and splits asked for"
    for name in rows["caption_id"][rows["caption_id"].duplicated()].unique():
        yield f"caption {name} exists more than once"
    sources = rows["source_caption_id"].dropna().unique()
    for name in sorted(set(sources) - set(rows["caption_id"])):
        yield f"caption {name} does not exist, yet another one translates it"
