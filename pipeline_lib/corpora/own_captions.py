"""Captions that a user writes, of photos of the user's own or of a published data set's."""

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from pipeline_lib.contract.problems import warn
from pipeline_lib.contract.tables import ANNOTATIONS
from pipeline_lib.corpora.corpus import caption_rows
from pipeline_lib.corpora.files import clean_column, note_rows
from pipeline_lib.settings.strict import LANGUAGE_CODE

_SOURCE = "a caption of the same image as <language>/<annotation>/<position>, or nothing"

_NO_OTHERS = pd.Series(dtype=object)


def own_caption_rows(
    table: pd.DataFrame,
    photos: pd.DataFrame,
    dataset: str,
    path: Path,
    problems: list[str],
    others: pd.Series = _NO_OTHERS,
) -> pd.DataFrame:
    """Return the captions of a table as :func:`~pipeline_lib.corpora.corpus.caption_rows` does.

    A translation of a translation names what that one was made of, as far back as it goes.

    Args:
        table: Columns ``image``, ``language``, ``annotation``, ``position``, ``text`` and
            ``translation_of`` as strings, and ``line``, where each row stands.
        photos: ``image_id``, ``split`` and ``key`` of each row's photo.
        dataset: Name of the data set.
        path: File that the table was read from, which problems name.
        problems: Where it is noted what is wrong with a row.
        others: What other captions of these photos translate, by caption id; missing where nothing.
    """
    table = table.assign(text=clean_column(table, path, problems))
    rows = caption_rows(
        photos,
        dataset,
        **{name: table[name] for name in ("language", "annotation", "position", "text")},
        source=_sources(table, photos["key"], dataset),
    )
    _note_bad_values(table, path, problems)
    _note_quotes(table, path, problems)
    _note_bad_references(table, rows, {*others.index}, path, problems)
    _warn_of_repeated(table, path)
    return _from_originals(rows, others)


def note_bad_languages(table: pd.DataFrame, path: Path, problems: list[str]) -> None:
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


def of_languages(
    table: pd.DataFrame, languages: Sequence[str], others: Sequence[str] = ()
) -> pd.DataFrame:
    """Return the rows of some languages, as translations of each other alone.

    Where a translation was made by way of a language that is left out, it names what that one
    translated.

    Args:
        table: As for :func:`own_caption_rows`.
        languages: Those that are kept.
        others: Languages of captions beside the table, left out unless they are kept.
    """
    left_out = {*table["language"], *others} - {*languages}
    source = table["translation_of"]
    caption = table["image"].str.cat(table[["language", "annotation", "position"]], sep="/")
    for _ in range(len(table).bit_length()):  # each doubles the steps: circles end, too
        passed = _language(source).isin(left_out)
        if not passed.any():
            break
        behind = dict(zip(caption, source, strict=True))
        source = source.mask(passed, (table["image"] + "/" + source).map(behind).fillna(""))
    table = table.assign(translation_of=source.mask(_language(source).isin(left_out), ""))
    return table[table["language"].isin(languages)].reset_index(drop=True)


def _language(caption: pd.Series) -> pd.Series:
    return caption.str.split("/", n=1).str[0]


def _sources(table: pd.DataFrame, key: pd.Series, dataset: str) -> pd.Series:
    source = dataset + "/" + key + "/" + table["translation_of"]
    return source.where(table["translation_of"] != "", None)


def _from_originals(rows: pd.DataFrame, others: pd.Series) -> pd.DataFrame:
    """Let a translation of a translation name what that one was made of, as far back as it goes."""
    origin, of_others = rows["source_caption_id"], others.to_dict()
    for _ in range(len(rows).bit_length()):  # each doubles the steps: circles end, too
        further = origin.map(of_others | dict(zip(rows["caption_id"], origin, strict=True)))
        if further.isna().all():
            break
        origin = further.fillna(origin)
    return rows.assign(source_caption_id=origin)


def _note_bad_values(table: pd.DataFrame, path: Path, problems: list[str]) -> None:
    position = table["position"]
    whole = position.str.fullmatch(r"0|[1-9][0-9]{0,4}")
    small = position.where(whole, "0").astype(int) <= np.iinfo(np.int16).max
    for column, valid, expected in (
        ("annotation", table["annotation"].isin(ANNOTATIONS), f"one of {', '.join(ANNOTATIONS)}"),
        ("position", whole & small, "a number from 0 to 32767 without leading zeros"),
    ):
        note_rows(problems, path, table[~valid], column, expected)
    note_bad_languages(table, path, problems)


def _warn_of_repeated(table: pd.DataFrame, path: Path) -> None:
    kind = ["image", "language", "annotation"]
    again = table.duplicated([*kind, "text"]) & ~table.duplicated([*kind, "position"])
    said_again = table[again]
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
    whole = quoted & ~inner.str.contains('"')
    if whole.any() and not escaped.any():
        first = table[whole].iloc[0]
        warn(
            f"{path}: {whole.sum()} captions stand in quotes as a whole (first: line "
            f"{first['line']}), which stay part of them. If a spreadsheet added them, save the "
            "table without, or as .csv between commas"
        )


def _note_bad_references(
    table: pd.DataFrame, rows: pd.DataFrame, others: set[str], path: Path, problems: list[str]
) -> None:
    place = table[["image"]].assign(caption=rows["caption_id"])
    repeated = table.assign(caption=rows["caption_id"])[place.duplicated()]
    note_rows(problems, path, repeated, "caption", "each caption's place once")
    source = rows["source_caption_id"]
    formed = table["translation_of"].str.fullmatch(rf"{LANGUAGE_CODE}/\w+/\d+").astype(bool)
    there = source.isin({*rows["caption_id"], *others})
    unknown = ~formed | ~there | (source == rows["caption_id"])
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
