"""Flickr8k's photos and captions as a clone of Flickr8k-CN's repository has them.

English (Hodosh et al. 2013) and Chinese (Li et al. 2016) stand in text files whose lines are
``FILE#KIND#NUMBER TEXT``, the photos of each split in lists of names without their ending.
"""

from pathlib import Path

import pandas as pd

from pipeline_lib.corpora.columns import SPLITS
from pipeline_lib.corpora.files import is_there, note_lines, note_rows, read_lines

FOLDER = "flickr8kcn"
"""Name of the clone beside Multi30k's."""

ENGLISH = "flickr8kenc.caption.txt"

FILES = {
    "en": {ENGLISH: "caption"},
    "zh": {"flickr8kzhc.caption.txt": "caption", "flickr8kzhmtest.captions.txt": "translation"},
}
"""Files of captions and their kind, by language; translations keep the number of their source."""

_PHOTO = r"(?P<file>(?P<image_id>\d+)_[0-9a-f]+)"
_CAPTION = rf"^{_PHOTO}\.jpg#\w+#(?P<index>\d+)\s(?P<text>.*)$"

_NO_PHOTO = "2258277193_586949ec62.jpg.1#"
"""Begins the captions of a photo that Flickr8k does not hold."""


def is_clone(raw: Path) -> bool:
    """Return whether a folder of raw data has the clone, and no table of photos in our layout."""
    return (raw / FOLDER).is_dir() and not is_there(raw / "flickr8k" / "images.csv")


def caption_file(raw: Path, name: str) -> Path:
    """Return where a file of the clone lies."""
    return raw / FOLDER / "data" / name


def read_captions(path: Path, problems: list[str]) -> pd.DataFrame:
    """Return ``image_id``, ``index``, ``text``, ``line`` and ``file`` of each caption."""
    lines = pd.Series(read_lines(path, problems), dtype=str)
    lines = lines[~lines.str.startswith(_NO_PHOTO)].str.rstrip("\r")
    rows = lines.str.extract(_CAPTION).assign(line=lines.index + 1)
    other = rows["file"].isna()
    form = "expected FILE.jpg#KIND#NUMBER TEXT, found {!r}"
    found = zip(rows.loc[other, "line"], lines[other], strict=True)
    note_lines(problems, path, [(line, form.format(text[:100])) for line, text in found])
    return rows[~other].reset_index(drop=True)


def read_photos(raw: Path, captioned: list[pd.DataFrame], problems: list[str]) -> pd.DataFrame:
    """Return ``image_id``, ``file`` and ``split`` of each photo.

    Args:
        raw: Folder that holds the clone.
        captioned: Captions that were read: the photos in no list, which Flickr8k has in no split,
            are training photos.
        problems: Where what is wrong with the lists is noted.
    """
    listed = [_list(caption_file(raw, f"flickr8k{split}.txt"), split, problems) for split in SPLITS]
    photos = pd.concat(listed, ignore_index=True)
    again = photos[photos["image_id"].duplicated()]
    for path, rows in again.groupby("list"):
        note_rows(problems, Path(path), rows, "file", "each photo in one split, once")
    others = [table[["image_id", "file"]].assign(split="train") for table in captioned]
    return pd.concat([photos, *others]).drop_duplicates("image_id")[["image_id", "file", "split"]]


def _list(path: Path, split: str, problems: list[str]) -> pd.DataFrame:
    names = pd.Series(read_lines(path, problems), dtype=str).str.strip()
    rows = names.str.extract(f"^{_PHOTO}$").assign(split=split, list=str(path))
    rows = rows.assign(line=rows.index + 1, name=names)
    note_rows(
        problems, path, rows[rows["file"].isna()], "name", "a photo such as 10815824_2997e03d76"
    )
    return rows.dropna(subset="file")
