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

import numpy as np
import pandas as pd

from pipeline_lib.contract.problems import warn
from pipeline_lib.contract.tables import ANNOTATIONS
from pipeline_lib.corpora.columns import COLUMNS
from pipeline_lib.corpora.corpus import Corpus, assemble, caption_rows
from pipeline_lib.corpora.files import clean_column, note_lines, note_rows, read_table
from pipeline_lib.settings.strict import LANGUAGE_CODE

_SOURCE = "a caption of the same image as <language>/<annotation>/<position>, or nothing"


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
    table = table.assign(
        text=clean_column(table, path, problems),
        key=table["image"].str.replace(r"\.[^./]*$", "", regex=True),
    )
    photos = table[["split", "key"]].assign(
        image_id=dataset + ":" + table["key"], path=table["image"]
    )
    rows = caption_rows(
        photos,
        dataset,
        **{name: table[name] for name in ("language", "annotation", "position", "text")},
        source=_sources(table, dataset),
    )
    _note_bad_values(table, path, problems)
    _note_quotes(table, path, problems)
    _note_bad_images(table, folder, path, problems)
    _note_bad_references(table, rows, path, problems)
    _warn_of_repeated(table, path)
    rows, images = _from_originals(rows), photos.drop_duplicates("path")
    return assemble([rows], images, dataset, path, problems)


def _sources(table: pd.DataFrame, dataset: str) -> pd.Series:
    source = dataset + "/" + table["key"] + "/" + table["translation_of"]
    return source.where(table["translation_of"] != "", None)


def _from_originals(rows: pd.DataFrame) -> pd.DataFrame:
    """Let a translation of a translation name what that one was made of, as far back as it goes."""
    origin = rows["source_caption_id"]
    for _ in range(len(rows).bit_length()):  # each doubles the steps: circles end, too
        further = origin.map(dict(zip(rows["caption_id"], origin, strict=True)))
        if further.isna().all():
            break
        origin = further.fillna(origin)
    return rows.assign(source_caption_id=origin)


def _note_bad_values(table: pd.DataFrame, path: Path, problems: list[str]) -> None:
    position = table["position"]
    whole = position.str.fullmatch(r"0|[1-9]\d{0,4}")
    small = position.where(whole, "0").astype(int) <= np.iinfo(np.int16).max
    for column, valid, expected in (
        ("split", table["split"] != "", "the name of a split"),
        ("annotation", table["annotation"].isin(ANNOTATIONS), f"one of {', '.join(ANNOTATIONS)}"),
        ("position", whole & small, "a number from 0 to 32767 without leading zeros"),
    ):
        note_rows(problems, path, table[~valid], column, expected)
    _note_bad_languages(table, path, problems)


def _note_bad_languages(table: pd.DataFrame, path: Path, problems: list[str]) -> None:
    """Note each code once, with the one that it may stand for."""
    wrong = table[~table["language"].str.fullmatch(LANGUAGE_CODE).astype(bool)]
    for language, rows in wrong.groupby("language", sort=False):
        meant = re.match(f"{LANGUAGE_CODE}(?![a-z])", language.lower())
        problems.append(
            f"{path}:{rows['line'].iloc[0]}: expected a language code of two or three small "
            f"letters, found {language!r}"
            + (f" ({len(rows):,} times)" if len(rows) > 1 else "")
            + (f". Write {meant[0]}" if meant else "")
        )


def _warn_of_repeated(table: pd.DataFrame, path: Path) -> None:
    said_again = table[table.duplicated(["image", "language", "annotation", "text"])]
    if len(said_again):
        warn(
            f"{path}: {len(said_again):,} captions stand there twice, of the same photo, language "
            f"and kind (first: line {said_again['line'].iloc[0]}): each counts as a further "
            "caption. Leave them out if they are copies"
        )


def _note_quotes(table: pd.DataFrame, path: Path, problems: list[str]) -> None:
    """Note fields that a spreadsheet put into quotes, which between tabs are part of the text."""
    if table.empty:
        return
    quoted = table["text"].str.fullmatch(r'".+"')
    inner = table["text"].str[1:-1]
    escaped = quoted & inner.str.fullmatch(r'(?:[^"]|"")*') & inner.str.contains('"')
    if path.suffix.lower() == ".csv":
        note_rows(problems, path, table[escaped], "text", "a caption that is quoted once")
        return
    expected = "no quoting between tabs (save it without, or as .csv between commas)"
    note_rows(problems, path, table[escaped], "text", expected)
    if quoted.any() and not escaped.any():
        first = table[quoted].iloc[0]
        warn(
            f"{path}: {quoted.sum()} captions stand in quotes as a whole (first: line "
            f"{first['line']}), which stay part of them. If a spreadsheet added them, save the "
            "table without, or as .csv between commas"
        )


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
    images = [image.rpartition("/") for image in rows["image"]]
    alike = {within: _by_letters(folder / within) for within in {within for within, *_ in images}}
    hints = [_hint(name, alike[within].get(_letters(name))) for within, _, name in images]
    lines = zip(rows["line"], rows["image"], hints, strict=True)
    expected = f"expected a file below {folder}, found"
    note_lines(
        problems, path, [(line, f"{expected} {image!r}{hint}") for line, image, hint in lines]
    )


def _by_letters(folder: Path) -> dict[str, str]:
    """Return the names in a folder by their letters; none where it cannot be listed."""
    try:
        return {_letters(name): name for name in os.listdir(folder)}
    except (OSError, ValueError):  # no such folder, or NUL
        return {}


def _letters(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()


def _hint(name: str, other: str | None) -> str:
    """Return what distinguishes the name of a missing file from one that is there."""
    if other in (None, name):
        return ""
    if unicodedata.normalize("NFC", name) != unicodedata.normalize("NFC", other):
        return f"; the folder has {other!r}"
    form = "nfc" if unicodedata.is_normalized("NFC", name) else "nfd"
    return (
        "; the folder has the same letters in another Unicode form: rename it (convmv "
        f"-f utf-8 -t utf-8 --{form})"
    )


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


def _note_bad_references(
    table: pd.DataFrame, rows: pd.DataFrame, path: Path, problems: list[str]
) -> None:
    place = table[["image"]].assign(caption=rows["caption_id"])
    repeated = table.assign(caption=rows["caption_id"])[place.duplicated()]
    note_rows(problems, path, repeated, "caption", "each caption's place once")
    source = rows["source_caption_id"]
    formed = table["translation_of"].str.fullmatch(rf"{LANGUAGE_CODE}/\w+/\d+").astype(bool)
    unknown = ~formed | ~source.isin(rows["caption_id"]) | (source == rows["caption_id"])
    missing = source.notna() & unknown
    note_rows(problems, path, table[missing], "translation_of", _SOURCE)
    original = (table["annotation"] == "caption") & source.notna()
    nothing = "nothing, as annotation is caption (or translation in annotation)"
    note_rows(problems, path, table[original], "translation_of", nothing)
    circular = rows["caption_id"].isin(
        _in_circles(dict(zip(rows["caption_id"], source, strict=True)))
    )
    note_rows(problems, path, table[circular], "translation_of", "no circle of translations")
    alone = source.isna() & ~rows["caption_id"].isin(source)
    orphan = (table["annotation"] == "translation") & alone
    if orphan.any():
        warn(
            f"{path}: {orphan.sum()} translations do not say of what (first: line "
            f"{table[orphan]['line'].iloc[0]}): no translator learns from them, and they are no "
            "exact translation of any caption. Fill in translation_of, or keep the language that "
            "it named"
        )


def _in_circles(sources: dict[str, object]) -> set[str]:
    """Return the captions from which one comes back to them, from translation to source."""
    found, seen = set(), set()
    for caption in sources:
        way = []
        while caption in sources and caption not in seen:
            seen.add(caption)
            way.append(caption)
            caption = sources[caption]
        if caption in way:
            found.update(way[way.index(caption) :])
    return {name for name in found if sources[name] != name}  # those are noted above
