"""What a model of a study learnt from, by the study's settings: data sets, and files of others."""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from pipeline_lib.checks.data import world_of
from pipeline_lib.checks.shown import builds_upon, learnt_pair_sets, source_of, translations_of
from pipeline_lib.settings.loading import load_settings
from pipeline_lib.settings.recipes import Recipe
from pipeline_lib.settings.strict import SettingsError
from pipeline_lib.settings.study import PARAMS, Settings
from pipeline_lib.settings.text import VectorFiles


def sources_of(study: Path, name: str, pairs: str) -> list[str]:
    """Return the data sets, word vectors and lexicon that a recipe's models learnt from.

    Those count, too, that its teachers, the recipe it continues, and the translators of its
    captions learnt from; a translator of somebody else's is named itself.

    Args:
        study: Folder of the study.
        name: Of the recipe.
        pairs: The pair set that the model says.

    Returns:
        Names of data sets, and paths; empty if the study is not there, or is another one by now.
    """
    if not (settings := _settings(study)):
        return []
    recipes = {each: settings.recipe(each) for each in settings.recipes}
    if name not in recipes or recipes[name].pairs != pairs:
        return []
    learnt = (_of_recipe(settings, recipes[each]) for each in builds_upon(settings, recipes, name))
    return list(dict.fromkeys(chain.from_iterable(learnt)))


def readers_of(study: Path) -> dict[str, str]:
    """Return what reads each data set of a study, by its name; none if the study is not there."""
    datasets = settings.datasets if (settings := _settings(study)) else {}
    return {name: dataset.reader for name, dataset in datasets.items()}


def _settings(study: Path) -> Settings | None:
    """Return the settings of a study; none if it is not there, or cannot be read."""
    try:
        return load_settings(study / PARAMS)
    except SettingsError:
        return None


def _of_recipe(settings: Settings, recipe: Recipe) -> Iterator[str]:
    for pairs, _ in learnt_pair_sets(settings, recipe):
        yield from _behind(settings, pairs)
    vectors = settings.word_vectors.get(recipe.word_vectors)
    if isinstance(vectors, VectorFiles):
        yield from (f"{vectors.source}/{file}" for file in vectors.files.values())
    if recipe.lexicon in settings.lexicons:
        source = settings.lexicons[recipe.lexicon].source
        yield world_of(settings, source) or source


def _behind(settings: Settings, pairs: str) -> Iterator[str]:
    """Yield the data sets of one pair set, and those of the translators of its captions."""
    borrowed = settings.pseudopairs.get(pairs)
    sides = [borrowed.images_of.pairs, borrowed.captions_of.pairs] if borrowed else [pairs]
    yield from (source_of(settings, settings.pairs[each].dataset) for each in sides)
    for made in translations_of(settings, pairs):
        own = settings.translator_of(made)
        yield settings.translators[own].dataset if own else made.model
