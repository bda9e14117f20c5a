"""What a model of a study learnt from, by the study's settings: data sets and files of vectors."""

from collections.abc import Iterator
from pathlib import Path

from pipeline_lib.checks.shown import source_of, translators_of
from pipeline_lib.settings.entries import PAIRS, entry_of
from pipeline_lib.settings.recipes import Recipe
from pipeline_lib.settings.strict import SettingsError
from pipeline_lib.settings.study import PARAMS, Settings, load_settings
from pipeline_lib.settings.text import VectorFiles


def sources_of(study: Path, name: str, pairs: str) -> list[str]:
    """Return the data sets, and the files of word vectors, that a recipe's models learnt from.

    Those count, too, that its teachers, the recipe it continues, and the translators of its
    captions learnt from.

    Args:
        study: Folder of the study.
        name: Of the recipe.
        pairs: The pair set that the model says.

    Returns:
        Names of data sets, and paths; empty if the study is not there, or is another one by now.
    """
    try:
        settings = load_settings(study / PARAMS)
    except SettingsError:
        return []
    if name not in settings.recipes or settings.recipe(name).pairs != pairs:
        return []
    return list(dict.fromkeys(_sources(settings, settings.recipe(name))))


def _sources(settings: Settings, recipe: Recipe) -> Iterator[str]:
    vectors = settings.word_vectors.get(recipe.word_vectors)
    read = recipe.pairs, entry_of(vectors.source, PAIRS) if vectors else ""
    for pairs in (each for name in read for each in settings.pair_sets(name)):
        yield from _behind(settings, pairs)
        if pairs in settings.pseudopairs:
            yield from _sources(settings, settings.recipe(settings.pseudopairs[pairs].teacher))
    if isinstance(vectors, VectorFiles):
        yield from (f"{vectors.source}/{file}" for file in vectors.files.values())
    if recipe.initial in settings.recipes:
        yield from _sources(settings, settings.recipe(recipe.initial))


def _behind(settings: Settings, pairs: str) -> Iterator[str]:
    """Yield the data sets of one pair set, and those of the translators of its captions."""
    borrowed = settings.pseudopairs.get(pairs)
    sides = [borrowed.images_of.pairs, borrowed.captions_of.pairs] if borrowed else [pairs]
    yield from (source_of(settings, settings.pairs[each].dataset) for each in sides)
    yield from (settings.translators[each].dataset for each in translators_of(settings, pairs))
