"""Bring your own captions: one table of captions beside a folder of images.

``<raw>/captions.tsv`` is UTF-8, tab separated, without quoting, with the columns of
``columns.COLUMNS``. ``image`` is a file below ``<raw>/images``, if that folder is there;
``annotation`` is an entry of ``contract.ANNOTATIONS``; ``position`` numbers the captions of one
image, language and annotation; ``translation_of`` is ``<language>/<annotation>/<position>`` of the
caption of the same image that this one translates, or empty. Splits are free: training needs
``train`` and ``val``, evaluation the split that it names.
"""

import os
import re
import unicodedata
from pathlib import Path, PurePosixPath

import pandas as pd

from pipeline_lib.corpora.columns import COLUMNS
from pipeline_lib.corpora.corpus import Corpus, assemble
from pipeline_lib.corpora.files import note_lines, note_rows, read_table
from pipeline_lib.corpora.own_captions import own_caption_rows


def read_captions_table(raw: Path, dataset: str) -> Corpus:
    """Read ``captions.tsv`` and the names of the images that it speaks of.

    Raises:
        ContractError: Lists every line that cannot be used, and why.
    """
    problems: list[str] = []
    path = raw / "captions.tsv"
    table = read_table(path, COLUMNS, "\t", problems)
    photos = raw / "images"
    return table_corpus(table, path, photos if photos.is_dir() else None, dataset, problems)


def table_corpus(
    table: pd.DataFrame, path: Path, folder: Path | None, dataset: str, problems: list[str]
) -> Corpus:
    """Return the corpus of a table that has been read.

    Args:
        table: Columns :data:`COLUMNS` as strings, and ``line``, where each row stands.
        path: File that it was read from, which problems name.
        folder: Of the images; None if they are not at hand: extractors say what they need.
        dataset: Name of the data set.
        problems: What has been noted so far.

    Raises:
        ContractError: Lists every problem.
    """
    table = table.assign(key=table["image"].str.replace(r"\.[^./]*$", "", regex=True))
    photos = table[["split", "key"]].assign(
        image_id=dataset + ":" + table["key"], path=table["image"]
    )
    note_rows(problems, path, table[table["split"] == ""], "split", "the name of a split")
    rows = own_caption_rows(table, photos, dataset, path, problems)
    _note_bad_images(table, folder, path, problems)
    return assemble([rows], photos.drop_duplicates("path"), dataset, path, problems)


def _note_bad_images(
    table: pd.DataFrame, folder: Path | None, path: Path, problems: list[str]
) -> None:
    named = table.drop_duplicates("image")
    if folder is None:
        note_rows(problems, path, named[named["image"] == ""], "image", "the name of a photo")
    else:
        there = named["image"].map(lambda image: image != "" and is_file(folder / image))
        _note_missing(named[~there.astype(bool)], folder, path, problems)
    outside = named["image"].map(lambda image: image != "" and not is_inside(image))
    inside = "a path inside the folder of photos: relative, without .., as short as it can be"
    note_rows(problems, path, named[outside.astype(bool)], "image", inside)
    first = named.drop_duplicates("key").set_index("key")["image"]
    twins = named[named["key"].duplicated()]
    lines = zip(twins["line"], twins["image"], twins["key"].map(first), strict=True)
    found = [
        (line, f"expected a name that differs from {other} in more than its suffix, found {name}. "
         "Rename one of the two photos")
        for line, name, other in lines
    ]  # fmt: skip
    note_lines(problems, path, found)
    split = table.groupby("image")["split"].transform("first")
    note_rows(problems, path, table[table["split"] != split], "split", "one split per image")


def _note_missing(rows: pd.DataFrame, folder: Path, path: Path, problems: list[str]) -> None:
    """Note images that are not there, with the files whose names only look like theirs."""
    names = _Names(folder)
    hints = [names.hint(image) for image in rows["image"]]
    lines = zip(rows["line"], rows["image"], hints, strict=True)
    expected = f"expected a file below {folder}, found"
    note_lines(
        problems, path, [(line, f"{expected} {image!r}{hint}") for line, image, hint in lines]
    )


class _Names:
    """Names of the files below a folder, among which one is looked for that a name may mean."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._listed: dict[str, tuple[dict[str, str], dict[str, str]]] = {}

    def hint(self, image: str) -> str:
        """Return what distinguishes the name of a missing file from one that is there."""
        within, _, name = image.rpartition("/")
        other = self._alike(within)[0].get(_letters(name))
        if other == name:
            return ""
        if other is None:
            meant = self._meant(image)
            return f"; the folder has {meant!r}" if meant else ""
        if unicodedata.normalize("NFC", name) != unicodedata.normalize("NFC", other):
            return f"; the folder has {other!r}"
        form = "nfc" if unicodedata.is_normalized("NFC", name) else "nfd"
        return (
            "; the folder has the same letters in another Unicode form: rename it (convmv "
            f"-f utf-8 -t utf-8 --{form})"
        )

    def _meant(self, image: str) -> str:
        """Return the file that a path means which has no suffix, other separators, or folders."""
        parts = [part for part in re.split(r"[/\\]", image) if part]
        if ".." in parts or "\0" in image:
            return ""
        for first in range(len(parts)):
            within, name = "/".join(parts[first:-1]), _letters(parts[-1])
            alike, stems = self._alike(within)
            if found := alike.get(name) or stems.get(name):
                return f"{within}/{found}".lstrip("/")
        return ""

    def _alike(self, within: str) -> tuple[dict[str, str], dict[str, str]]:
        """Return the names in a folder by their letters, whole and without suffix."""
        if within not in self._listed:
            try:
                names = os.listdir(self._folder / within)
            except (OSError, ValueError):  # no such folder, or NUL
                names = []
            stems = {_letters(PurePosixPath(name).stem): name for name in sorted(names)}
            self._listed[within] = {_letters(name): name for name in names}, stems
        return self._listed[within]


def _letters(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()


def is_file(path: Path) -> bool:
    """Return whether a path leads to a file; false where no file can have that name."""
    try:
        return path.is_file()
    except OSError:  # a name that is too long, or a link to itself
        return False


def is_inside(image: str) -> bool:
    """Return whether a path names a file below a folder, in the one way that there is."""
    path = PurePosixPath(image)
    return not path.is_absolute() and ".." not in path.parts and str(path) == image
