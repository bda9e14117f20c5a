"""Multi30k (Elliott et al. 2016, 2017; Barrault et al. 2018) in its repository's own layout.

Task 2 has five independent descriptions per image in English and German, task 1 translations of
one English sentence per image. Outside the later test sets that sentence is one of the image's
five descriptions, so that it adds no row of its own: it is what the translations name as their
source. The English descriptions of an image are sorted by length, position 0 being the longest;
the German ones are not, and those of position 0 are the shortest on average.

Task 2's ``test_2017_images.txt`` is never read: it repeats the 2018 list and has no descriptions.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from pipeline_lib.corpora.corpus import (
    Corpus,
    assemble,
    caption_ids,
    caption_rows,
    language_problems,
)
from pipeline_lib.corpora.files import note_lines, note_rows, read_lines, read_sentences

LANGUAGES = ("en", "de", "fr", "cs")
DESCRIBED = ("en", "de")
"""Languages of task 2."""

_FLICKR = r"(?P<flickr>\d+)(?:_[0-9a-f]+)?\.jpg"
_COCO = r"COCO_(?:train|val)2014_0*(?P<coco>\d+)\.jpg#\d+"


@dataclass(frozen=True)
class Split:
    """One split of the repository.

    Attributes:
        name: Name that the tables use.
        task1: Name of its image list and of its translations.
        task2: Name of its descriptions, or None where it has none.
        translations: Languages that it is translated into.
    """

    name: str
    task1: str
    task2: str | None
    translations: tuple[str, ...]


DESCRIBED_SPLITS = (
    Split("train", "train", "train", ("de", "fr", "cs")),
    Split("val", "val", "val", ("de", "fr", "cs")),
    Split("test", "test_2016_flickr", "test_2016", ("de", "fr", "cs")),
)
"""The splits that have both tasks."""

SPLITS = (
    *DESCRIBED_SPLITS,
    Split("test_2017_flickr", "test_2017_flickr", None, ("de", "fr")),
    Split("test_2017_mscoco", "test_2017_mscoco", None, ("de", "fr")),
    Split("test_2018_flickr", "test_2018_flickr", None, ("de", "fr", "cs")),
)


def read_multi30k(
    raw: Path,
    dataset: str,
    *,
    languages: list[str],
    splits: list[str],
    validation_images: int | str = "all",
) -> Corpus:
    """Read a clone of the Multi30k repository; its text files may be gzipped or not.

    Args:
        raw: The clone: the folder that holds ``data/task1`` and ``data/task2``.
        dataset: Name of the data set.
        languages: Some of :data:`LANGUAGES`. Translations name their source if ``en`` is one.
        splits: Names of the :data:`SPLITS` to read: those whose images are there.
        validation_images: ``all``, or how many of the first images of ``val`` remain in it; the
            others become ``test``.

    Raises:
        ContractError: Lists every missing, unequally long or ill-encoded file, every line of an
            image list that is no image or listed twice, every sentence of task 1 that is none of
            its image's descriptions, and a validation split that cannot be divided.
    """
    problems = list(language_problems(languages, LANGUAGES))
    chosen = tuple(split for split in SPLITS if split.name in splits)
    captions, photos = read_splits(raw, dataset, languages, chosen, problems)
    if validation_images != "all":
        validation = photos.loc[photos["split"] == "val", "image_id"]
        problems += _division_problems(validation, validation_images, splits)
        moved = validation.iloc[validation_images:]
        captions = [_moved_to_test(block, moved) for block in captions]
        photos = _moved_to_test(photos, moved)
    return assemble(captions, photos, dataset, raw, problems)


def read_splits(
    raw: Path, dataset: str, languages: list[str], splits: tuple[Split, ...], problems: list[str]
) -> tuple[list[pd.DataFrame], pd.DataFrame]:
    """Read captions and photos of some splits, noting ``problems``.

    Returns:
        Blocks of ``corpus.caption_rows``; ``image_id``, ``key``, ``split``, ``path`` of all photos.
    """
    read = [
        split for split in splits if split.task2 or {"en", *split.translations} & set(languages)
    ]
    if not read:
        problems.append(
            f"splits: expected one with {' or '.join(languages)}, found "
            f"{', '.join(split.name for split in splits)} without. Name other splits or languages"
        )
        return [], pd.DataFrame(columns=["image_id", "key", "split", "path"])
    photos = [_photos(raw, split, problems) for split in read]
    captions = [
        block
        for split, images in zip(read, photos, strict=True)
        for block in _captions(raw / "data", dataset, split, images, languages, problems)
    ]
    everything = pd.concat(photos)
    repeated = everything["image_id"].duplicated() & (everything["image_id"] != "")
    for path, again in everything[repeated].groupby("list"):
        note_rows(problems, Path(path), again, "image_id", "each image in one split, once")
    return captions, everything.drop_duplicates("image_id")


def _division_problems(
    validation: pd.Series, validation_images: int, splits: list[str]
) -> Iterator[str]:
    if "val" not in splits or "test" in splits:
        yield f"splits: expected val, whose last images become test, and no test; found {splits}"
    elif len(validation) and validation_images >= len(validation):
        yield f"validation_images: expected all or less than {len(validation)}, val's number"


def _moved_to_test(rows: pd.DataFrame, images: pd.Series) -> pd.DataFrame:
    return rows.assign(split=rows["split"].mask(rows["image_id"].isin(images), "test"))


def _photos(raw: Path, split: Split, problems: list[str]) -> pd.DataFrame:
    path = raw / "data" / "task1" / "image_splits" / f"{split.task1}.txt"
    names = pd.Series(read_lines(path, problems), dtype=str).str.strip()
    if split.task2:
        _note_other_order(raw, split, names, path, problems)
    number = names.str.extract(f"^(?:{_FLICKR}|{_COCO})$")
    photos = pd.DataFrame(
        {
            "image_id": ("flickr:" + number["flickr"]).fillna("coco:" + number["coco"]),
            "key": number["flickr"].fillna(number["coco"]),
            "split": split.name,
            "path": names.str.replace("#.*", "", regex=True),
            "list": str(path),
            "line": range(1, len(names) + 1),
        }
    )
    unnamed = photos["key"].isna()
    note_rows(problems, path, photos[unnamed], "path", "an image such as 1000092795.jpg")
    return photos.fillna({"image_id": "", "key": ""})


def _note_other_order(
    raw: Path, split: Split, names: pd.Series, path: Path, problems: list[str]
) -> None:
    other = raw / "data" / "task2" / "image_splits" / f"{split.task2}_images.txt"
    listed = [name.strip() for name in read_lines(other, problems)]
    if listed and len(names) and listed != list(names):
        problems.append(f"{other}: expected the images of {path} in the same order, found others")


def _captions(
    data: Path,
    dataset: str,
    split: Split,
    photos: pd.DataFrame,
    languages: list[str],
    problems: list[str],
) -> list[pd.DataFrame]:
    """Return the blocks of captions of one split: descriptions, then translations."""

    def rows(texts: list[str], **columns: object) -> list[pd.DataFrame]:
        return [caption_rows(photos, dataset, text=texts, **columns)] if texts else []

    described = {
        language: _descriptions(data, split, language, photos, problems) for language in languages
    }
    blocks = [
        block
        for language, by_position in described.items()
        for position, texts in enumerate(by_position)
        for block in rows(texts, language=language, annotation="caption", position=position)
    ]
    sources = _sources(data, dataset, split, described.get("en", []), photos, problems)
    for language in (name for name in split.translations if name in languages):
        texts = _sentences(data / "task1" / "raw" / f"{split.task1}.{language}", photos, problems)
        blocks += rows(
            texts, language=language, annotation="translation", position=0, source=sources
        )
    return blocks


def _descriptions(
    data: Path, split: Split, language: str, photos: pd.DataFrame, problems: list[str]
) -> list[list[str]]:
    """Return the sentences written for the images of a split ``[positions][images]``."""
    if split.task2 and language in DESCRIBED:
        folder = data / "task2" / "raw"
        paths = [folder / f"{split.task2}.{number}.{language}" for number in range(1, 6)]
    elif not split.task2 and language == "en":
        paths = [data / "task1" / "raw" / f"{split.task1}.en"]
    else:
        paths = []
    return [_sentences(path, photos, problems) for path in paths]


def _sources(
    data: Path,
    dataset: str,
    split: Split,
    english: list[list[str]],
    photos: pd.DataFrame,
    problems: list[str],
) -> pd.Series | None:
    """Return the id of the English description that was translated, per image."""
    if not english or not all(english):
        return None
    path = data / "task1" / "raw" / f"{split.task1}.en"
    translated = _sentences(path, photos, problems)
    if not translated:
        return None
    same = np.array(english, dtype=object) == np.array(translated, dtype=object)
    note_lines(
        problems,
        path,
        [
            (row + 1, f"expected one of the image's descriptions, found {translated[row]!r}")
            for row in np.flatnonzero(~same.any(axis=0))
        ],
    )
    return caption_ids(dataset, photos["key"], "en", "caption", same.argmax(axis=0))


def _sentences(path: Path, photos: pd.DataFrame, problems: list[str]) -> list[str]:
    sentences = read_sentences(path, problems)
    if len(sentences) == len(photos):
        return sentences
    if sentences and len(photos):
        problems.append(
            f"{path}: expected {len(photos)} lines, one per image of {photos['list'].iloc[0]}, "
            f"found {len(sentences)}"
        )
    return []
