"""What each data set of a study holds, before a stage has run."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath
from typing import TypeVar

import pandas as pd

from pipeline_lib.contract.problems import ContractError
from pipeline_lib.contract.tables import TRAIN, VAL, images_outside
from pipeline_lib.corpora.corpus import Corpus
from pipeline_lib.corpora.parallel import parallel_text
from pipeline_lib.corpora.readers import read_corpus
from pipeline_lib.corpora.world.parallel import LANGUAGES as PARALLEL_LANGUAGES
from pipeline_lib.corpora.world.pictures import (
    CAPTION_LANGUAGES,
    CAPTIONS_PER_IMAGE,
    TRANSLATION_LANGUAGES,
)
from pipeline_lib.settings.corpora import BitextDataset, Dataset, World
from pipeline_lib.settings.study import Settings
from pipeline_lib.settings.synthesis import Translation

T = TypeVar("T")

Kind = tuple[str, str, str]
"""Split, language and annotation."""


@dataclass(frozen=True)
class Data:
    """What a data set holds.

    Attributes:
        captions: How many captions there are of each kind.
        captioned: Ids of the photos that have one of each kind; none where a stage draws them.
        photos: How many photos each split has.
        images: The table of photos; None where a stage draws them.
        parallel: By translator and split, ids of the photos behind its parallel text (one name for
            all of them where a stage draws them). Translators without text here are not in it.
    """

    captions: dict[Kind, int]
    captioned: dict[Kind, set[str]]
    photos: dict[str, int]
    images: pd.DataFrame | None
    parallel: dict[str, dict[str, set[str]]] = field(default_factory=dict)

    def languages(self, split: str) -> set[str]:
        """Return the languages that a split has captions in."""
        return {language for where, language, _ in self.captions if where == split}

    def outside(self, *splits: str) -> set[str]:
        """Return the ids of the photos outside some splits; none where a stage draws them."""
        if self.images is None:
            return set()
        return images_outside(self.images, *splits)

    @property
    def forbidden(self) -> dict[str, set[str]]:
        """Ids of the photos that what is tested here may not learn (train), or be validated on."""
        return {TRAIN: self.outside(TRAIN), VAL: self.outside(TRAIN, VAL)}

    def annotations(self, split: str, language: str) -> list[str]:
        """Return the kinds of captions that a split has in a language."""
        return sorted(a for s, name, a in self.captions if (s, name) == (split, language))


def no_such_kind(where: str, kind: str, split: str, dataset: str, there: list[str]) -> str:
    """Return the sentence that a data set has no captions of a kind."""
    found = ", ".join(there) or "no captions in that language"
    return f"{where}: {dataset} has none of the kind {kind} in the split {split}. It has {found}"


def one_photo(where: str, captions: str, split: str, dataset: str) -> str:
    """Return the sentence that captions which are ranked are of one photo."""
    return (
        f"{where}: expected {captions} of 2 photos or more in the split {split} of {dataset}, "
        "found one photo: alone it ranks first whatever was learnt."
    )


def known_data(
    settings: Settings, problems: list[str], missing: list[str], only: str | None = None
) -> dict[str, Data]:
    """Read data sets of a study, and count those that are translated from them.

    Args:
        settings: Of the study, whose folder is the current one.
        problems: Where it is noted what is wrong with a data set.
        missing: Where it is noted which are not there; what a stage draws is never missing.
        only: Name of the one to read; None for all.

    Returns:
        By name, those that could be read.
    """
    every, found = settings.datasets, {}
    asked = every if only is None else {only: every[only]}
    for name, dataset in asked.items():
        drawn = _drawn(settings.worlds, dataset)
        if drawn:
            found[name] = replace(drawn, parallel=_drawn_parallel(settings, name, drawn, problems))
            problems.extend(_not_drawn(name, dataset))
        elif not os.path.exists(dataset.raw):  # unlike Path's, of names that are too long as well
            missing.append(f"datasets.{name}.raw: {dataset.raw} is not there")
        else:
            options = dataset.model_dump(exclude={"reader", "raw"})
            try:
                corpus = read_corpus(dataset.reader, Path(dataset.raw), name, **options)
                parallel = _parallel(settings, name, corpus.captions, problems)
                found[name] = replace(_counted(corpus), parallel=parallel)
            except ContractError as error:
                problems.append(f"datasets.{name}: {error}")
    return _with_translations(settings, found)


def world_of(settings: Settings, path: PurePath | str) -> str | None:
    """Return the world in whose folder, which the stage ``world`` writes, a path lies."""
    inside = (each for each in settings.worlds if PurePath(path).is_relative_to(raw_folder(each)))
    return next(inside, None)


def raw_folder(world: str) -> PurePath:
    """Return the folder that the stage ``world`` writes."""
    return PurePath("data/raw") / world


def _drawn(worlds: dict[str, World], dataset: Dataset) -> Data | None:
    raw = PurePath(dataset.raw)
    for name, world in worlds.items():
        if raw == raw_folder(name):
            kinds = {(language, "caption"): CAPTIONS_PER_IMAGE for language in CAPTION_LANGUAGES}
            kinds |= {(language, "translation"): 1 for language in TRANSLATION_LANGUAGES}
            return _multiplied(world.images, kinds)
        if raw == raw_folder(name) / "parallel":
            kinds = {
                (language, "translation" if place else "caption"): 1
                for place, language in enumerate(getattr(dataset, "languages", ()))
                if language in PARALLEL_LANGUAGES
            }
            return _multiplied(world.parallel, kinds)
    return None


def _not_drawn(name: str, dataset: Dataset) -> Iterator[str]:
    """Yield which languages of parallel text a world has not."""
    asked = dataset.languages if isinstance(dataset, BitextDataset) else []
    if lacking := [language for language in asked if language not in PARALLEL_LANGUAGES]:
        yield (
            f"datasets.{name}.languages: {dataset.raw} has {', '.join(PARALLEL_LANGUAGES)}, found "
            f"{', '.join(lacking)}"
        )


def _multiplied(sizes: dict[str, int], kinds: dict[tuple[str, str], int]) -> Data:
    photos = {split: count for split, count in sizes.items() if count}
    captions = {(s, *kind): n * photos[s] for s in photos for kind, n in kinds.items()}
    return Data(captions, {}, photos, None)


def _counted(corpus: Corpus) -> Data:
    kinds = corpus.captions.groupby(["split", "language", "annotation"])["image_id"]
    captioned = {kind: set(ids) for kind, ids in kinds}
    photos = corpus.images["split"].value_counts().to_dict()
    return Data(kinds.size().to_dict(), captioned, photos, corpus.images)


def _parallel(
    settings: Settings, dataset: str, captions: pd.DataFrame, problems: list[str]
) -> dict[str, dict[str, set[str]]]:
    """Return the photos of the parallel text of each translator that learns from a data set."""
    found = {}
    languages = {*captions.loc[captions["split"] == TRAIN, "language"]}
    for name, chosen in settings.translators.items():
        asked = chosen.source_language, chosen.target_language
        if chosen.dataset != dataset or not languages >= {*asked}:
            continue
        try:
            text = parallel_text(captions, *asked)
        except ContractError as error:
            problems.append(f"translators.{name}: {error}")
        else:
            found[name] = {split: {*ids} for split, ids in text.groupby("split")["image_id"]}
    return found


def _drawn_parallel(
    settings: Settings, dataset: str, drawn: Data, problems: list[str]
) -> dict[str, dict[str, set[str]]]:
    """Return one photo for all of each split, for each translator that learns from a data set."""
    found = {}
    for name, chosen in settings.translators.items():
        asked = chosen.source_language, chosen.target_language
        if chosen.dataset != dataset or not drawn.languages(TRAIN) >= {*asked}:
            continue
        if any((TRAIN, language, "translation") in drawn.captions for language in asked):
            found[name] = {split: {f"{dataset}:{split}"} for split in drawn.photos}
        else:
            problems.append(
                f"translators.{name}: expected translations between {' and '.join(asked)}, "
                f"{dataset} has none. Name a data set that has them"
            )
    return found


def _with_translations(settings: Settings, found: Mapping[str, Data]) -> dict[str, Data]:
    """Return the data sets that were found, and the translated ones; one may add to another."""
    known, waiting = dict(found), dict(settings.translations)
    while ready := {n: chosen for n, chosen in waiting.items() if chosen.dataset in known}:
        for name, chosen in ready.items():
            data = known[chosen.dataset]
            captions = data.captions | _machine(data.captions, chosen)
            captioned = data.captioned | _machine(data.captioned, chosen)
            known[name] = Data(captions, captioned, data.photos, data.images)
            del waiting[name]
    return known


def _machine(found: dict[Kind, T], chosen: Translation) -> dict[Kind, T]:
    """Return what is found of the captions that are translated, as that of their translations."""
    return {
        (split, chosen.target_language, "machine"): value
        for (split, language, kind), value in found.items()
        if (language, kind) == (chosen.source_language, chosen.annotation)
    }
