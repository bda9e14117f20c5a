"""Tables of captions, images and training pairs, in parquet."""

import unicodedata
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pyarrow as pa

from pipeline_lib.contract.parquet import read_table, write_table
from pipeline_lib.contract.problems import (
    duplicate_rows,
    empty_text,
    faulty,
    raise_problems,
)

ANNOTATIONS = ("caption", "translation", "machine")
"""Kinds of text: written for the image, translated from a caption by people, or by a machine."""

TRAIN, VAL = "train", "val"
"""Splits that are learnt from, and that weights are chosen by; all others are tested on."""

_TEXT = pa.string()
_CAPTION_FIELDS = [
    pa.field("caption_id", _TEXT, nullable=False),
    pa.field("image_id", _TEXT, nullable=False),
    pa.field("dataset", _TEXT, nullable=False),
    pa.field("split", _TEXT, nullable=False),
    pa.field("language", _TEXT, nullable=False),
    pa.field("annotation", _TEXT, nullable=False),
    pa.field("position", pa.int16(), nullable=False),
    pa.field("text", _TEXT, nullable=False),
    pa.field("tokens", pa.list_(_TEXT), nullable=False),
    pa.field("source_caption_id", _TEXT, nullable=True),
]
CAPTIONS = pa.schema(_CAPTION_FIELDS)
"""One sentence about one image.

``source_caption_id`` names the caption that it translates; of a translation of another one, the
caption that both go back to, so that all that say the same name the same.
"""

IMAGES = pa.schema(
    [
        pa.field("image_id", _TEXT, nullable=False),
        pa.field("dataset", _TEXT, nullable=False),
        pa.field("split", _TEXT, nullable=False),
        pa.field("path", _TEXT, nullable=False),
    ]
)
"""One image. ``path`` is relative to the folder of images that the extractor names."""

PAIRS = pa.schema(
    [
        *_CAPTION_FIELDS,
        pa.field("set", _TEXT, nullable=False),
        pa.field("seed", pa.int64(), nullable=True),
    ]
)
"""Captions that a recipe trains and validates on; ``set`` names the pair set that added the row.

``seed`` is that of the one model that learns it, where each seed has a teacher of its own; a row
without one is for all.
"""


_PAIRS_KEY = ["set", "caption_id", "seed"]


def write_captions(captions: pd.DataFrame, path: Path) -> None:
    """Check a captions table (schema :data:`CAPTIONS`) and publish it, sorted by ``caption_id``."""
    write_table(captions, CAPTIONS, "caption_id", check_captions, path)


def read_captions(path: Path) -> pd.DataFrame:
    """Read and check a captions table; ``tokens`` holds one list of strings per row."""
    return read_table(path, CAPTIONS, check_captions)


def write_images(images: pd.DataFrame, path: Path) -> None:
    """Check an images table (schema :data:`IMAGES`) and publish it, sorted by ``image_id``."""
    write_table(images, IMAGES, "image_id", check_images, path)


def read_images(path: Path) -> pd.DataFrame:
    """Read and check an images table."""
    return read_table(path, IMAGES, check_images)


def images_outside(images: pd.DataFrame, *splits: str) -> set[str]:
    """Return the ids of an images table that are in none of some splits."""
    return set(images.loc[~images["split"].isin(splits), "image_id"])


def write_pairs(pairs: pd.DataFrame, path: Path) -> None:
    """Check a pairs table (schema :data:`PAIRS`); publish it, sorted by set, caption and seed."""
    write_table(pairs, PAIRS, _PAIRS_KEY, check_pairs, path)


def read_pairs(path: Path) -> pd.DataFrame:
    """Read and check a pairs table."""
    return read_table(path, PAIRS, check_pairs)


def pairs_of_seed(pairs: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Return the rows that the model of a seed learns from: its own, and those of all seeds."""
    return pairs[pairs["seed"].isna() | (pairs["seed"] == seed)]


def empty_pairs() -> pd.DataFrame:
    """Return a pairs table without rows: what ``plus: none`` adds."""
    return PAIRS.empty_table().to_pandas()


def meanings(captions: pd.DataFrame) -> pd.Series:
    """Return what each caption means: the one that it translates, its own id where it does not."""
    return captions["source_caption_id"].fillna(captions["caption_id"])


def check_captions(captions: pd.DataFrame) -> Iterator[str]:
    """Yield every way in which a captions table breaks the contract."""
    yield from duplicate_rows(captions, ["caption_id"])
    yield from _caption_rows(captions)


def check_pairs(pairs: pd.DataFrame) -> Iterator[str]:
    """Yield every way in which a pairs table breaks the contract."""
    yield from duplicate_rows(pairs, _PAIRS_KEY)
    yield from _caption_rows(pairs)


def check_images(images: pd.DataFrame) -> Iterator[str]:
    """Yield every way in which an images table breaks the contract."""
    yield from duplicate_rows(images, ["image_id"])
    yield from empty_text(images, ["image_id", "dataset", "split", "path"])
    absolute = images["path"].str.startswith("/")
    yield from faulty(
        images[absolute], "image_id", "have an absolute path; expected a relative one"
    )
    outside = images["path"].str.contains(r"(?:^|/)\.\.(?:/|$)")
    yield from faulty(images[outside], "image_id", "have a path with .., which leaves the folder")


def check_captions_have_images(captions: pd.DataFrame, images: pd.DataFrame) -> None:
    """Raise :class:`ContractError` unless each caption's image is there with the same split."""
    split = captions["image_id"].map(images.set_index("image_id")["split"])
    problems = [
        *faulty(captions[split.isna()], "caption_id", "name an image that the images table lacks"),
        *faulty(
            captions[split.notna() & (split != captions["split"])],
            "caption_id",
            "have another split than their image",
        ),
    ]
    raise_problems("captions and images", problems)


def _caption_rows(captions: pd.DataFrame) -> Iterator[str]:
    yield from empty_text(captions, ["caption_id", "image_id", "dataset", "split", "language"])
    unknown = ~captions["annotation"].isin(ANNOTATIONS)
    yield from faulty(captions[unknown], "caption_id", f"have an annotation not in {ANNOTATIONS}")
    denormal = ~captions["text"].map(lambda text: unicodedata.is_normalized("NFC", text))
    yield from faulty(captions[denormal], "caption_id", "are not in Unicode normal form NFC")
    empty = captions["tokens"].map(len) == 0
    yield from faulty(captions[empty], "caption_id", "have no token")
