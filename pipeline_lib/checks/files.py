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
from pipeline_lib.text.word_vectors import vec_dim

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
    for name, language, path in _vector_files(settings):
        yield f"word_vectors.{name}.files.{language}", path
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
    yield from _missing_but_photos(settings)
    if not PUBLISHED.is_file():
        yield f"{PUBLISHED}: expected the figures that papers print, found no file"


def _missing_but_photos(settings: Settings) -> Iterator[str]:
    for key, path in named_files(settings):
        if not world_of(settings, path) and not os.path.isfile(path):
            yield f"{key}: {path} is not there"
    for name, made in settings.translations.items():
        if not settings.translator_of(made) and not os.path.exists(made.model):
            yield f"translations.{name}.model: {made.model} is not there"
    source = settings.evaluations.sts.source
    if not world_of(settings, source) and not os.path.exists(source):
        yield f"evaluations.sts.source: {source} is not there"


def unseen_changes(known: Known) -> Iterator[str]:
    """Yield folders of photos with links to further folders, which DVC does not follow."""
    for name, extractor in known.settings.networks.items():
        walk = os.walk(extractor.images)
        folders = [os.path.join(root, folder) for root, within, _ in walk for folder in within]
        if links := [folder for folder in folders if os.path.islink(folder)]:
            yield (
                f"extractors.{name}.images: DVC does not see what lies behind links to folders "
                f"(first: {min(links)}): after a change there, run dvc repro --force "
                f"features@{name}, or make the whole folder one link"
            )


def folder_problems(known: Known) -> Iterator[str]:
    """Yield folders that DVC's graph cannot depend on: they hold what it writes, or cannot read."""
    settings = known.settings
    named = {f"datasets.{name}.raw": own.raw for name, own in settings.datasets.items()}
    named |= {f"extractors.{name}.images": own.images for name, own in settings.extractors.items()}
    named["evaluations.sts.source"] = settings.evaluations.sts.source
    seen = set()
    for key, folder in named.items():
        path = Path(os.path.abspath(folder))  # links are followed by neither DVC nor this
        if any(Path(written).absolute().is_relative_to(path) for written in ("data", "metrics")):
            yield (
                f"{key}: expected a folder without what stages write, such as one in data/raw, "
                f"found {folder}. Move the files into a folder of their own"
            )
        elif path not in seen:
            seen.add(path)
            yield from (f"{key}: {problem}" for problem in _unreadable(folder))


def _unreadable(folder: str) -> Iterator[str]:
    """Yield at what DVC would stop, which reads all files of a folder, whatever they are."""
    files = [os.path.join(root, name) for root, _, names in os.walk(folder) for name in names]
    if lost := [path for path in files if not os.access(path, os.R_OK)]:
        first = min(lost)
        found = "a link that leads nowhere" if os.path.islink(first) else "one without permission"
        yield (
            f"expected files that can be read, found {len(lost):,} that cannot (first: {first}, "
            f"{found}). DVC reads all files of the folder: remove it, or mend it"
        )
    if ignoring := [path for path in files if os.path.basename(path) == ".dvcignore"]:
        yield f"expected none of DVC's own files, found {min(ignoring)}. Move it out of the folder"


def file_problems(known: Known) -> Iterator[str]:
    """Yield what late stages could not read: scored sentences, word vectors, printed figures."""
    for key, path in _scored(known.settings):
        yield from (f"{key}: {problem}" for problem in _unread(path, read_scored_pairs))
    yield from _vector_problems(known)
    yield from _unread(PUBLISHED, read_published)


def _vector_problems(known: Known) -> Iterator[str]:
    """Yield files of word vectors of another form, or size, by their first lines."""
    for name, language, path in _vector_files(known.settings):
        if os.path.isfile(path):
            try:
                yield from _words_of_another_size(known, name, language, vec_dim(path))
            except ContractError as error:
                yield f"word_vectors.{name}.files.{language}: {error}"


def _words_of_another_size(known: Known, vectors: str, language: str, dim: int) -> Iterator[str]:
    """Yield recipes whose words of a language have another size than the vectors in a file."""
    for name, recipe in known.recipes.items():
        reads = recipe.word_vectors == vectors and language in recipe.languages
        if reads and recipe.word_dim != dim:
            yield (
                f"recipes.{name}.word_dim: expected {dim}, as {vectors} has in {language}, found "
                f"{recipe.word_dim}"
            )


def _unread(path: Path, read: Callable[[Path], object]) -> Iterator[str]:
    """Yield why a file that is there cannot be read, if it cannot."""
    if os.path.isfile(path):
        try:
            read(path)
        except ContractError as error:
            yield str(error)


def _vector_files(settings: Settings) -> Iterator[tuple[str, str, Path]]:
    """Yield the files of word vectors, each with its entry and language."""
    for name, vectors in settings.word_vectors.items():
        for language, file in getattr(vectors, "files", {}).items():
            yield name, language, Path(vectors.source) / file


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
