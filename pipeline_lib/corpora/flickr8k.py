"""Flickr8k's photos with captions of six languages, joined by photo id.

English (Hodosh et al. 2013) and Chinese (Li et al. 2016) are five captions per photo, Chinese of
the test photos also a human translation of each English one, Japanese a machine translation of
each. German captions and German, French and Czech translations are Multi30k's of the same photo.
Photos and captions lie in tables of our own layout, or in a clone of Flickr8k-CN's repository.

The English text of the two data sets differs in tokenisation and spelling, so a Multi30k
translation's source is the photo's caption with the same letters and digits; where there is none
(125 of 7,473 photos, nearly all over the spelling of a word) the source stays unknown.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from pipeline_lib.corpora import flickr8k_cn, multi30k
from pipeline_lib.corpora.corpus import (
    Corpus,
    assemble,
    caption_ids,
    caption_rows,
    language_problems,
)
from pipeline_lib.corpora.files import clean_column, is_there, note_rows, read_table
from pipeline_lib.corpora.multi30k import DESCRIBED_SPLITS, read_splits
from pipeline_lib.text.letters import letters

CAPTIONS_PER_PHOTO = 5

FILES = {
    "en": {"en.human": "caption"},
    "zh": {"zh.human": "caption", "zh.human_translation": "translation"},
    "ja": {"ja.machine_translation": "machine"},
}
"""Files of captions and their kind, by language; translations keep the number of their source."""

MULTI30K_LANGUAGES = ("de", "fr", "cs")

LANGUAGES = (*FILES, *MULTI30K_LANGUAGES)

SPLITS = {
    "flickr8k_split": {"train": "train", "val": "val", "test": "test", "": "train"},
    "multi30k_split": {"train": "train", "val": "val", "test_2016_flickr": "test"},
}
"""Names of splits by column of images.csv. Photos that Flickr8k has in no split are training
photos. The two columns split the same photos differently: never mix them."""


def languages_there(raw: Path) -> list[str]:
    """Return :data:`LANGUAGES`, without Japanese where there is none: nobody distributes it."""
    ours = [raw / "flickr8k" / "captions" / f"{name}.tsv" for name in FILES["ja"]]
    without = [] if all(map(is_there, ours)) else ["ja"]
    return [language for language in LANGUAGES if language not in without]


def read_flickr8k(raw: Path, dataset: str, *, languages: list[str], split_column: str) -> Corpus:
    """Read ``flickr8k/images.csv`` and ``flickr8k/captions``, with ``multi30k`` beside them.

    Without that table, ``flickr8kcn`` is read, a clone of Flickr8k-CN's repository. Its photos are
    those that Multi30k has, too, wherever Multi30k is needed; Japanese stays in
    ``flickr8k/captions``.

    Args:
        raw: Folder that holds ``flickr8k`` (or ``flickr8kcn``) and ``multi30k``.
        dataset: Name of the data set.
        languages: Some of en, zh, ja, de, fr, cs. Translations name their source if ``en`` is one.
        split_column: Entry of :data:`SPLITS`: whose split the photos follow.

    Returns:
        The corpus; image paths are relative to the folder of the photos: ``flickr8k/images``, or
        wherever Flickr8k's own are.

    Raises:
        ContractError: Lists every problem with its file and line.
    """
    problems = list(language_problems(languages, LANGUAGES))
    cloned = flickr8k_cn.is_clone(raw)
    from_multi30k = {*languages} & {*MULTI30K_LANGUAGES}
    blocks, listed = [], None
    if from_multi30k or (cloned and split_column == "multi30k_split"):
        read = [language for language in languages if language in multi30k.LANGUAGES]
        blocks, listed = read_splits(raw / "multi30k", dataset, read, DESCRIBED_SPLITS, problems)
    files = [*_files(raw, languages, cloned, problems)]
    if cloned:
        photos, place = _photos_of_clone(raw, split_column, files, listed, problems), "Flickr8k-CN"
    else:
        photos = _photos(raw / "flickr8k" / "images.csv", split_column, problems)
        place = "images.csv"
    captions = [_captions(file, dataset, photos, place, problems) for file in files]
    photos = photos.dropna(subset="split")
    if from_multi30k and blocks:
        captions += _multi30k(blocks, photos, captions)
    if "en" not in languages:
        captions = [rows.assign(source_caption_id=None) for rows in captions]
    return assemble(captions, photos, dataset, raw, problems)


@dataclass(frozen=True)
class _File:
    """A file of captions.

    Attributes:
        path: Where it lies.
        language: Of its captions.
        annotation: Their kind.
        rows: ``image_id``, ``index``, ``text`` and ``line`` of each.
    """

    path: Path
    language: str
    annotation: str
    rows: pd.DataFrame


def _files(raw: Path, languages: list[str], cloned: bool, problems: list[str]) -> Iterator[_File]:
    columns = ("image_id", "index", "text")
    for language in languages:
        if cloned and language in flickr8k_cn.FILES:
            for name, annotation in flickr8k_cn.FILES[language].items():
                path = flickr8k_cn.caption_file(raw, name)
                rows = flickr8k_cn.read_captions(path, problems)
                yield _File(path, language, annotation, rows)
        else:
            for name, annotation in FILES.get(language, {}).items():
                path = raw / "flickr8k" / "captions" / f"{name}.tsv"
                rows = read_table(path, columns, "\t", problems)
                yield _File(path, language, annotation, rows)


def _photos(path: Path, split_column: str, problems: list[str]) -> pd.DataFrame:
    names = SPLITS[split_column]
    table = read_table(path, ("image_id", "file", split_column), ",", problems)
    photos = pd.DataFrame(
        {
            "image_id": "flickr:" + table["image_id"],
            "key": table["image_id"],
            "split": table[split_column].map(names),
            "path": table["file"].str.removeprefix("images/"),
        }
    )
    unknown = photos["split"].isna()
    known = "one of " + ", ".join(repr(name) for name in names)
    note_rows(problems, path, table[unknown], split_column, known)
    note_rows(problems, path, table[table["image_id"].duplicated()], "image_id", "each photo once")
    return photos.fillna({"split": ""}).drop_duplicates("key")


def _photos_of_clone(
    raw: Path,
    split_column: str,
    files: list[_File],
    listed: pd.DataFrame | None,
    problems: list[str],
) -> pd.DataFrame:
    """Return the photos of the clone; those that are not in ``listed``, if given, have no split."""
    captioned = [file.rows for file in files if file.language in flickr8k_cn.FILES]
    if not captioned:  # the photos are the same whatever the languages
        english = flickr8k_cn.caption_file(raw, flickr8k_cn.ENGLISH)
        captioned = [flickr8k_cn.read_captions(english, problems)]
    table = flickr8k_cn.read_photos(raw, captioned, problems)
    photos = pd.DataFrame(
        {
            "image_id": "flickr:" + table["image_id"],
            "key": table["image_id"],
            "split": table["split"],
            "path": table["file"] + ".jpg",
        }
    )
    if listed is not None:
        splits = photos["image_id"].map(listed.set_index("image_id")["split"])
        own = photos["split"].where(splits.notna())
        photos["split"] = splits if split_column == "multi30k_split" else own
    return photos


def _captions(
    file: _File, dataset: str, photos: pd.DataFrame, photos_of: str, problems: list[str]
) -> pd.DataFrame:
    table = file.rows.assign(text=clean_column(file.rows, file.path, problems))
    left_out = photos["split"].isna()
    unknown = ~table["image_id"].isin(photos["key"]) & bool(len(photos))
    note_rows(problems, file.path, table[unknown], "image_id", f"a photo of {photos_of}")
    table = table[~table["image_id"].isin(photos.loc[left_out, "key"])]
    _note_bad_indices(table, file.path, problems)
    rows = table.rename(columns={"image_id": "key"}).merge(photos, on="key")
    source = caption_ids(dataset, rows["key"], "en", "caption", rows["index"])
    return caption_rows(
        rows,
        dataset,
        language=file.language,
        annotation=file.annotation,
        position=rows["index"],
        text=rows["text"],
        source=None if file.annotation == "caption" else source,
    )


def _note_bad_indices(table: pd.DataFrame, path: Path, problems: list[str]) -> None:
    numbers = [str(number) for number in range(CAPTIONS_PER_PHOTO)]
    wrong = ~table["index"].isin(numbers)
    note_rows(problems, path, table[wrong], "index", f"a number from 0 to {numbers[-1]}")
    repeated = table.duplicated(["image_id", "index"])
    note_rows(problems, path, table[repeated], "index", "each number once per photo")
    photo = table.groupby("image_id", sort=False).agg(
        line=("line", "first"), count=("line", "size")
    )
    fewer = photo[photo["count"] < CAPTIONS_PER_PHOTO]
    note_rows(problems, path, fewer, "count", f"{CAPTIONS_PER_PHOTO} captions of the photo")


def _multi30k(
    blocks: list[pd.DataFrame], photos: pd.DataFrame, own: list[pd.DataFrame]
) -> list[pd.DataFrame]:
    """Return Multi30k's captions of the photos; ``own`` are those of Flickr8k, for the sources."""
    rows = pd.concat(blocks).drop_duplicates("caption_id")  # of repeated images, which are noted
    rows = rows[rows["image_id"].isin(photos["image_id"])]
    split = rows["image_id"].map(photos.set_index("image_id")["split"])
    translated = rows["source_caption_id"].map(rows.set_index("caption_id")["text"])
    source = _same_letters(rows["image_id"], translated, pd.concat([*own, rows.iloc[:0]]))
    return [rows.assign(split=split, source_caption_id=source)[rows["language"] != "en"]]


def _same_letters(images: pd.Series, texts: pd.Series, captions: pd.DataFrame) -> pd.Series:
    """Return the id of the image's English caption with the same letters, where there is one."""
    english = captions[captions["language"] == "en"].sort_values("caption_id")
    english = english.assign(letters=english["text"].map(letters))
    ids = english.drop_duplicates(["image_id", "letters"]).set_index(["image_id", "letters"])
    folded = texts.map(letters, na_action="ignore")
    found = ids["caption_id"].reindex(pd.MultiIndex.from_arrays([images, folded]))
    return found.set_axis(images.index)
