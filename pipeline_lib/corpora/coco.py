"""COCO captions with Karpathy's splits, Japanese captions (STAIR or YJ) and Chinese (COCO-CN).

The raw folder holds, as far as the languages need them:

- ``dataset_coco.json``: English captions and splits (Karpathy and Fei-Fei 2015), always;
- ``stair_captions_v1.2_train.json`` and ``_val.json``: five Japanese captions of every image
  (Yoshikawa et al. 2017), or ``yjcaptions26k_clean.json``: of 26,500 training images of 2014
  (Miyazaki and Shimizu 2016), of which Karpathy's val and test images are none;
- ``imageid.human-written-caption.txt`` and ``imageid.manually-translated-caption.txt`` of COCO-CN
  (Li et al. 2019), version 201805, whose own splits nobody trains by.

The ways to split are unrelated: what one tests on, another may train on.
"""

from collections.abc import Mapping
from itertools import chain
from pathlib import Path

import numpy as np
import pandas as pd

from pipeline_lib.corpora.corpus import Corpus, assemble, caption_rows, language_problems
from pipeline_lib.corpora.files import clean_column, note_lines, note_rows, read_json, read_lines

LANGUAGES = ("en", "ja", "zh")

JAPANESE = {
    "none": (),
    "stair": ("stair_captions_v1.2_train.json", "stair_captions_v1.2_val.json"),
    "yj": ("yjcaptions26k_clean.json",),
}
"""Files of Japanese captions."""

CHINESE = {
    "imageid.human-written-caption.txt": "caption",
    "imageid.manually-translated-caption.txt": "translation",
}
"""Files of Chinese captions, with their kind. Which English caption a translation belongs to is
not published with them, so their source stays unknown."""

KARPATHY_SPLITS = {"train": "train", "restval": "train", "val": "val", "test": "test"}
"""Names of splits by Karpathy's. ``restval``, the validation images of 2014 that he left over, is
training data, as in Kádár et al. 2019, section 3.2."""

_CN_CAPTION = (
    r"COCO_(?:train|val)2014_0*(?P<key>\d+)#(?:[a-z]+#)?(?P<position>\d{1,4})\s+(?P<text>.*)"
)
_CN_CAPTION_FORM = "<image>#<number of at most 4 digits>, a blank or tab, and the caption"


def read_coco(
    raw: Path,
    dataset: str,
    *,
    languages: list[str],
    japanese: str,
    splits: str | Mapping[str, int],
) -> Corpus:
    """Read COCO captions in English, Japanese and Chinese.

    Args:
        raw: Folder that holds the files named above.
        dataset: Name of the data set.
        languages: Some of :data:`LANGUAGES`.
        japanese: Entry of :data:`JAPANESE`.
        splits: ``karpathy``: all images in his splits; or numbers of images ``val`` and ``test``
            to draw, with ``seed``, among those that have captions in all three languages (Kim et
            al. 2020), the rest being ``train``.

    Returns:
        The corpus; image paths are such as ``val2014/COCO_val2014_000000391895.jpg``.

    Raises:
        ContractError: Lists every problem with its file and line, or place in the JSON.
    """
    problems = list(language_problems(languages, LANGUAGES))
    photos, english = _karpathy(raw / "dataset_coco.json", problems)
    needed = LANGUAGES if isinstance(splits, Mapping) else languages
    tables = {"en": [english.assign(language="en", annotation="caption")]}
    if "ja" in needed:
        tables["ja"] = _japanese(raw, japanese, photos, problems)
    if "zh" in needed:
        tables["zh"] = _chinese(raw, photos, problems)
    if splits == "karpathy":
        chosen = photos
    else:
        everything = pd.concat(chain(*tables.values()))
        chosen = _shared_images_splits(photos, everything, splits, problems)
    captions = [
        _rows(table.merge(chosen, on="key"), dataset)
        for language in tables
        if language in languages
        for table in tables[language]
    ]
    return assemble(captions, chosen, dataset, raw, problems)


def _rows(table: pd.DataFrame, dataset: str) -> pd.DataFrame:
    columns = ("language", "annotation", "position", "text")
    return caption_rows(table, dataset, **{name: table[name] for name in columns})


def _karpathy(path: Path, problems: list[str]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return photos, and English captions as ``key``, ``position``, ``text``."""
    fields = {"cocoid": int, "filepath": str, "filename": str, "split": str, "sentences": list}
    entries = _entries(path, "images", fields, problems)
    key = entries["cocoid"].astype(str)
    photos = pd.DataFrame(
        {
            "key": key,
            "image_id": "coco:" + key,
            "split": entries["split"].map(KARPATHY_SPLITS),
            "path": entries["filepath"] + "/" + entries["filename"],
        }
    )
    unknown = entries[photos["split"].isna()]
    note_rows(problems, path, unknown, "split", f"one of {', '.join(KARPATHY_SPLITS)}")
    note_rows(problems, path, entries[key.duplicated()], "cocoid", "each image once")
    english = _sentences(entries.assign(key=key), path, problems)
    return photos.fillna({"split": ""}).drop_duplicates("key"), english


def _sentences(entries: pd.DataFrame, path: Path, problems: list[str]) -> pd.DataFrame:
    rows = [
        (key, position, sentence["raw"] if _has_fields(sentence, {"raw": str}) else None, line)
        for key, sentences, line in zip(
            entries["key"], entries["sentences"], entries["line"], strict=True
        )
        for position, sentence in enumerate(sentences)
    ]
    table = pd.DataFrame(rows, columns=["key", "position", "text", "line"])
    table["line"] = table["line"] + ".sentences[" + table["position"].astype(str) + "].raw"
    return _cleaned(table.fillna({"text": ""}), path, problems)


def _japanese(
    raw: Path, japanese: str, photos: pd.DataFrame, problems: list[str]
) -> list[pd.DataFrame]:
    if japanese == "none":
        problems.append("japanese: the language ja needs stair or yj, found none")
    return [
        _annotations(raw / name, photos, problems).assign(language="ja", annotation="caption")
        for name in JAPANESE[japanese]
    ]


def _annotations(path: Path, photos: pd.DataFrame, problems: list[str]) -> pd.DataFrame:
    """Return the captions of a file in COCO's own format, numbered by id within each image."""
    fields = {"id": int, "image_id": int, "caption": str}
    entries = _entries(path, "annotations", fields, problems)
    note_rows(problems, path, entries[entries["id"].duplicated()], "id", "each id once")
    table = entries.assign(key=entries["image_id"].astype(str), text=entries["caption"])
    table = table.sort_values("id", kind="stable")
    table["position"] = table.groupby("key").cumcount()
    _note_unknown_images(table, photos, path, problems)
    return _cleaned(table, path, problems)


def _chinese(raw: Path, photos: pd.DataFrame, problems: list[str]) -> list[pd.DataFrame]:
    tables = []
    for name, annotation in CHINESE.items():
        table = _cn_lines(raw / name, _CN_CAPTION, _CN_CAPTION_FORM, problems)
        _note_unknown_images(table, photos, raw / name, problems)
        repeated = table.duplicated(["key", "position"])
        note_rows(problems, raw / name, table[repeated], "content", "each number once per image")
        table = _cleaned(table, raw / name, problems)
        tables.append(table.assign(language="zh", annotation=annotation))
    return tables


def _shared_images_splits(
    photos: pd.DataFrame, captions: pd.DataFrame, sizes: Mapping[str, int], problems: list[str]
) -> pd.DataFrame:
    """Return all photos; those held out have captions, not only translations, in all languages."""
    written = captions[captions["annotation"] == "caption"]
    count = written.groupby("key")["language"].nunique()
    shared = np.sort(count.index[count == len(LANGUAGES)].to_numpy(str))
    val, test = sizes["val"], sizes["test"]
    if not problems and len(shared) < val + test:
        problems.append(
            f"splits: expected {val} + {test} images with captions in {', '.join(LANGUAGES)} to "
            f"draw, found {len(shared)}"
        )
    drawn = np.random.default_rng(sizes["seed"]).permutation(shared)
    split = dict.fromkeys(drawn[:val], "val") | dict.fromkeys(drawn[val : val + test], "test")
    return photos.assign(split=photos["key"].map(split).fillna("train"))


def _cn_lines(path: Path, pattern: str, form: str, problems: list[str]) -> pd.DataFrame:
    """Return what the named groups of ``pattern`` match on each ``line``, and its ``content``."""
    content = pd.Series(read_lines(path, problems), dtype="str").str.strip()
    table = content.str.extract(f"^{pattern}$").assign(
        content=content, line=range(1, len(content) + 1)
    )
    note_rows(problems, path, table[table["key"].isna()], "content", form)
    return table.dropna(subset=["key"]).reset_index(drop=True)


def _entries(
    path: Path, section: str, fields: dict[str, type], problems: list[str]
) -> pd.DataFrame:
    """Return the entries of one list of a JSON object, with their place as ``line``."""
    content = read_json(path, problems)
    entries = content.get(section) if isinstance(content, dict) else None
    if content is not None and not isinstance(entries, list):
        problems.append(f"{path}: expected an object with a list {section!r}, found none")
        entries = None
    placed = [
        (f"{section}[{number}]", entry if _has_fields(entry, fields) else None)
        for number, entry in enumerate(entries or [])
    ]
    form = "expected " + ", ".join(f"{name} ({kind.__name__})" for name, kind in fields.items())
    note_lines(problems, path, [(place, form) for place, entry in placed if entry is None])
    rows = [(*(entry[name] for name in fields), place) for place, entry in placed if entry]
    return pd.DataFrame(rows, columns=[*fields, "line"])


def _has_fields(entry: object, fields: dict[str, type]) -> bool:
    return isinstance(entry, dict) and all(
        isinstance(entry.get(name), kind) for name, kind in fields.items()
    )


def _cleaned(table: pd.DataFrame, path: Path, problems: list[str]) -> pd.DataFrame:
    text = clean_column(table, path, problems)
    return table.assign(text=text)[["key", "position", "text"]]


def _note_unknown_images(
    table: pd.DataFrame, photos: pd.DataFrame, path: Path, problems: list[str]
) -> None:
    unknown = table[~table["key"].isin(photos["key"]) & bool(len(photos))]
    note_rows(problems, path, unknown, "key", "the id of an image of dataset_coco.json")
