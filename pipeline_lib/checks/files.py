"""Files that a study names: whether they are there, and whether stages could read them."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from pipeline_lib.checks.data import world_of
from pipeline_lib.checks.known import Known
from pipeline_lib.checks.photos import missing_photos
from pipeline_lib.contract.problems import ContractError
from pipeline_lib.contract.published import PUBLISHED, read_published
from pipeline_lib.corpora.scored_pairs import read_scored_pairs
from pipeline_lib.settings.study import Settings

NO_FACTS = Path("data/facts/none.jsonl")
"""Facts of what nobody knows the truth of; a stage writes the file."""


def named_files(settings: Settings) -> Iterator[tuple[str, Path]]:
    """Yield the raw files that a study names, but for captions and photos, each with its key."""
    for name, given in settings.given_features.items():
        yield f"extractors.{name}.images", Path(given.images)
    for name, extractor in settings.networks.items():
        if not extractor.weights_are_named:
            yield f"extractors.{name}.weights", Path(extractor.weights)
    for name, lexicon in settings.lexicons.items():
        for fold in ("train", "test"):
            for file in getattr(lexicon, fold):
                yield f"lexicons.{name}.{fold}", Path(lexicon.source) / file
    for name, vectors in settings.word_vectors.items():
        for language, file in getattr(vectors, "files", {}).items():
            yield f"word_vectors.{name}.files.{language}", Path(vectors.source) / file
    yield from _facts(settings)
    yield from _scored(settings)


def missing_files(known: Known) -> Iterator[str]:
    """Yield what is not there of photos, of other raw files, and of what DVC's graph names."""
    settings = known.settings
    for name, extractor in settings.networks.items():
        own, folder = known.data.get(extractor.dataset), Path(extractor.images)
        where = f"extractors.{name}.images"
        if world_of(settings, folder):
            continue
        if not os.path.isdir(folder):  # unlike Path's, of names that are too long as well
            yield f"{where}: expected a folder of photos, {folder} is not there"
        elif own and own.images is not None:
            yield from (f"{where}: {lost}" for lost in missing_photos(own.images, folder))
    for key, path in named_files(settings):
        if not world_of(settings, path) and not os.path.isfile(path):
            yield f"{key}: {path} is not there"
    source = settings.evaluations.sts.source
    if not world_of(settings, source) and not os.path.exists(source):
        yield f"evaluations.sts.source: {source} is not there"
    if not PUBLISHED.is_file():
        yield f"{PUBLISHED}: expected the figures that papers print, found no file"


def folder_problems(known: Known) -> Iterator[str]:
    """Yield folders that hold all that stages write: DVC's graph cannot depend on one."""
    settings = known.settings
    named = {f"datasets.{name}.raw": own.raw for name, own in settings.datasets.items()}
    named |= {f"extractors.{name}.images": own.images for name, own in settings.extractors.items()}
    named["evaluations.sts.source"] = settings.evaluations.sts.source
    for key, folder in named.items():
        path = Path(os.path.abspath(folder))  # links are followed by neither DVC nor this
        if any(Path(written).absolute().is_relative_to(path) for written in ("data", "metrics")):
            yield (
                f"{key}: expected a folder without what stages write, such as one in data/raw, "
                f"found {folder}. Move the files into a folder of their own"
            )


def file_problems(known: Known) -> Iterator[str]:
    """Yield what the last stages could not read: sentences with scores, and printed figures."""
    for key, path in _scored(known.settings):
        yield from (f"{key}: {problem}" for problem in _unread(path, read_scored_pairs))
    yield from _unread(PUBLISHED, read_published)


def _unread(path: Path, read: Callable[[Path], object]) -> Iterator[str]:
    """Yield why a file that is there cannot be read, if it cannot."""
    if os.path.isfile(path):
        try:
            read(path)
        except ContractError as error:
            yield str(error)


def _scored(settings: Settings) -> Iterator[tuple[str, Path]]:
    chosen = settings.evaluations.sts
    for name, each in chosen.sets.items():
        yield f"evaluations.sts.sets.{name}", Path(chosen.source) / each.file


def _facts(settings: Settings) -> Iterator[tuple[str, Path]]:
    for name, borrowed in settings.pseudopairs.items():
        for key in ("images_of", "captions_of"):
            file = Path(getattr(borrowed, key).facts)
            if file != NO_FACTS:
                yield f"pseudopairs.{name}.{key}.facts", file
