"""The layouts in which a user has captions and photos, each with what makes raw data of them."""

import csv
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from tqdm import tqdm

from pipeline_lib.contract.problems import raise_problems
from pipeline_lib.contract.tables import ANNOTATIONS
from pipeline_lib.corpora.added import added_languages
from pipeline_lib.corpora.columns import SPLITS
from pipeline_lib.corpora.corpus import Corpus, language_problems, split_hint
from pipeline_lib.corpora.own_captions import of_languages
from pipeline_lib.corpora.own_table import DEFAULTS, complete_table
from pipeline_lib.corpora.readers import languages_there, read_corpus
from pipeline_lib.corpora.table import is_file, is_inside, table_corpus
from pipeline_lib.images.decoding import ImageError, decode
from pipeline_lib.images.given import given_problems, number_problems
from pipeline_lib.settings.strict import LANGUAGE_CODE


@dataclass(frozen=True)
class Source:
    """What the user names.

    Attributes:
        name: Of the study.
        captions: File or folder.
        images: Folder of the photos, or file of their features.
        given: Whether it is that file.
        languages: To take; all if there is none.
    """

    name: str
    captions: Path
    images: Path
    given: bool
    languages: tuple[str, ...]

    @property
    def link(self) -> str:
        """Name of the link to the photos, or to their features, beside the study's captions."""
        return "features.h5" if self.given else "images"


@dataclass(frozen=True)
class Found:
    """What was found there.

    Attributes:
        dataset: Entry of ``datasets``.
        corpus: Its captions and images.
    """

    dataset: dict[str, object]
    corpus: Corpus

    @property
    def summary(self) -> str:
        """How many captions of which language and kind each split has."""
        counts = self.corpus.captions.pivot_table(
            index=["language", "annotation"], columns="split", aggfunc="size", fill_value=0
        )
        return f"{len(self.corpus.images):,} photos; captions:\n{counts.to_string()}"


Door = Callable[[Source, Path], Found]
"""Reads what the user named, checks it, and writes or links it into the folder of raw data."""


def _table(source: Source, raw: Path) -> Found:
    """Write the user's table, completed, beside a link to the photos."""
    problems: list[str] = []
    table = complete_table(source.captions, problems)
    whole = not problems  # of a table whose lines are left out, what it lacks is not known
    drawn = table["split"].equals(DEFAULTS["split"](table))
    if source.languages:
        problems += language_problems([*source.languages], table["language"].unique())
        table = of_languages(table, source.languages)
    problems += _gaps(table, _DRAWN if drawn else _NAMED) if whole else ()
    problems += _bad_images(table["image"].drop_duplicates(), source)
    folder = None if source.given else source.images
    corpus = table_corpus(table, source.captions, folder, source.name, problems)
    home = raw / source.name
    home.mkdir(parents=True)
    form = {"sep": "\t", "index": False, "quoting": csv.QUOTE_NONE}
    table.drop(columns="line").to_csv(home / "captions.tsv", **form)
    (home / source.link).symlink_to(source.images)
    return Found({"reader": "table", "raw": f"data/raw/{source.name}"}, corpus)


def _corpus(reader: str, **options: object) -> Door:
    def door(source: Source, raw: Path) -> Found:
        """Link a corpus in its publishers' layout, and its photos."""
        published = languages_there(reader, source.captions, **options)
        asked = source.languages or [*published, *added_languages(source.captions)]
        chosen = {"languages": [*dict.fromkeys(asked)], **options}
        corpus = read_corpus(reader, source.captions, source.name, **chosen)
        found = [
            *_gaps(corpus.captions, _OF_CORPUS),
            *_bad_images(corpus.images["path"], source),
        ]
        raise_problems(source.captions, found)
        home = raw / source.name
        home.mkdir(parents=True)
        (home / "corpus").symlink_to(source.captions)
        (home / source.link).symlink_to(source.images)
        return Found({"reader": reader, "raw": f"data/raw/{source.name}/corpus", **chosen}, corpus)

    return door


DOORS: dict[str, Door] = {
    "table": _table,
    "multi30k": _corpus("multi30k", splits=[*SPLITS], validation_images="all"),
    "flickr8k": _corpus("flickr8k", split_column="flickr8k_split"),
    "coco": _corpus("coco", japanese="stair", splits="karpathy"),
}
"""From the name of a layout to what reads it."""


_NAMED = (
    "Name the splits so, or leave the column split out: it is then drawn, a tenth of the photos "
    "each for val and test"
)
_DRAWN = (
    "Of few photos the draw, a tenth each for val and test, may take none: add photos, or name "
    "each photo's split in the column split"
)
_OF_CORPUS = "Complete the corpus, or choose other languages with --language"


def _gaps(captions: pd.DataFrame, remedy: str) -> Iterator[str]:
    """Yield the splits of too few photos, with a remedy, and the languages without a test."""
    photo = "image" if "image" in captions else "image_id"
    photos = captions.drop_duplicates(photo)["split"].value_counts()
    there = set(photos.index)
    for split in SPLITS:
        if there and split not in there:
            yield (
                f"split: expected photos of train, val and test, found none of {split} among "
                f"{', '.join(sorted(there))}{split_hint(there)} {remedy}"
            )
        elif there and photos[split] < 2:  # a caption is told from another's
            yield f"split: expected 2 photos or more of {split}, found {photos[split]}. {remedy}"
    codes = captions["language"].str.fullmatch(LANGUAGE_CODE)  # what is none has been named
    for language, own in captions[codes].groupby("language"):
        kind = tested_kind(own)
        if there.issuperset(SPLITS) and kind is None:
            counts = own.groupby(["annotation", "split"]).size()
            found = ", ".join(f"{count} {' of '.join(key)}" for key, count in counts.items())
            yield (
                f"language {language}: expected captions of one kind in train, val and test, found "
                f"{found}. Add some, or choose the other languages with --language"
            )
        ranked = own[own["annotation"] == kind].groupby("split")[photo].nunique()
        for split in ("val", "test"):
            if ranked.get(split) == 1 < photos[split]:
                yield (
                    f"language {language}: expected {kind}s of 2 photos or more in {split}, found "
                    "one photo: alone it ranks first whatever was learnt. Add some, or choose the "
                    "other languages with --language"
                )


def _bad_images(paths: pd.Series, source: Source) -> Iterator[str]:
    """Yield the photos that are there and cannot be decoded, or why features are not of them."""
    if source.given:
        images = pd.DataFrame({"path": paths})
        problems = [*given_problems(source.images, images)]
        yield from problems or number_problems(source.images, images)
    else:
        yield from _bad_photos(paths, source.images)


def _bad_photos(paths: Iterable[str], folder: Path) -> Iterator[str]:
    """Yield the photos that are there and cannot be decoded."""
    for path in tqdm(paths, "photos", leave=False, disable=None):
        try:
            if is_inside(path) and is_file(folder / path):
                decode(folder / path)
        except ImageError as error:
            yield f"{folder / path}: {error}. Mend the photo, or leave its captions out"


def tested_kind(captions: pd.DataFrame) -> str | None:
    """Return the first kind of caption that all splits have; None if there is none."""
    splits = captions.groupby("annotation")["split"].agg(set)
    return next((kind for kind in ANNOTATIONS if splits.get(kind, set()).issuperset(SPLITS)), None)
