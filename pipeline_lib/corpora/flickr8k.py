"""Flickr8k's photos with captions of six languages, joined by photo id.

English (Hodosh et al. 2013) and Chinese (Li et al. 2016) are five captions per photo, Chinese of
the test photos also a human translation of each English one, Japanese a machine translation of
each. German captions and German, French and Czech translations are Multi30k's of the same photo.

The English text of the two data sets differs in tokenisation and spelling, so a Multi30k
translation's source is the photo's caption with the same letters and digits; where there is none
(125 of 7,473 photos, nearly all over the spelling of a word) the source stays unknown.
"""

from pathlib import Path

import pandas as pd

from pipeline_lib.corpora import multi30k
from pipeline_lib.corpora.corpus import (
    Corpus,
    assemble,
    caption_ids,
    caption_rows,
    language_problems,
)
from pipeline_lib.corpora.files import clean_column, note_rows, read_table
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


def read_flickr8k(raw: Path, dataset: str, *, languages: list[str], split_column: str) -> Corpus:
    """Read ``flickr8k/images.csv`` and ``flickr8k/captions``, with ``multi30k`` beside them.

    Args:
        raw: Folder that holds ``flickr8k`` and ``multi30k``.
        dataset: Name of the data set.
        languages: Some of en, zh, ja, de, fr, cs. Translations name their source if ``en`` is one.
        split_column: Entry of :data:`SPLITS`: whose split the photos follow.

    Returns:
        The corpus; image paths are relative to ``flickr8k/images``.

    Raises:
        ContractError: Lists every problem with its file and line.
    """
    problems = list(language_problems(languages, LANGUAGES))
    folder = raw / "flickr8k"
    photos = _photos(folder / "images.csv", split_column, problems)
    captions = [
        _captions(folder / "captions" / f"{name}.tsv", dataset, photos, language, kind, problems)
        for language in languages
        for name, kind in FILES.get(language, {}).items()
    ]
    if set(languages) & set(MULTI30K_LANGUAGES):
        captions += _multi30k(raw / "multi30k", dataset, languages, photos, captions, problems)
    if "en" not in languages:
        captions = [rows.assign(source_caption_id=None) for rows in captions]
    return assemble(captions, photos, dataset, raw, problems)


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


def _captions(
    path: Path,
    dataset: str,
    photos: pd.DataFrame,
    language: str,
    annotation: str,
    problems: list[str],
) -> pd.DataFrame:
    table = read_table(path, ("image_id", "index", "text"), "\t", problems)
    table["text"] = clean_column(table, path, problems)
    _note_bad_indices(table, path, problems)
    unknown = ~table["image_id"].isin(photos["key"]) & bool(len(photos))
    note_rows(problems, path, table[unknown], "image_id", "a photo of images.csv")
    rows = table.rename(columns={"image_id": "key"}).merge(photos, on="key")
    source = caption_ids(dataset, rows["key"], "en", "caption", rows["index"])
    return caption_rows(
        rows,
        dataset,
        language=language,
        annotation=annotation,
        position=rows["index"],
        text=rows["text"],
        source=None if annotation == "caption" else source,
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
    raw: Path,
    dataset: str,
    languages: list[str],
    photos: pd.DataFrame,
    own: list[pd.DataFrame],
    problems: list[str],
) -> list[pd.DataFrame]:
    """Return Multi30k's captions of the photos; ``own`` are those of Flickr8k, for the sources."""
    read = [language for language in languages if language in multi30k.LANGUAGES]
    blocks, _ = read_splits(raw, dataset, read, DESCRIBED_SPLITS, problems)
    if not blocks:
        return []
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
