"""Which photos stand behind what a study learns from: pair sets, and the text of translators."""

from collections.abc import Iterator, Mapping

import numpy as np

from pipeline_lib.checks.data import Data
from pipeline_lib.contract.tables import TRAIN, VAL
from pipeline_lib.corpora.selection import half_of
from pipeline_lib.settings.corpora import Annotation, PairSet
from pipeline_lib.settings.entries import PAIRS, entry_of
from pipeline_lib.settings.recipes import Recipe
from pipeline_lib.settings.strict import NONE
from pipeline_lib.settings.study import Settings
from pipeline_lib.settings.synthesis import Translation, TranslatorRecipe

Photos = dict[str, set[str]]
"""Ids by split."""


def photos_of_rows(settings: Settings, data: Mapping[str, Data]) -> dict[str, Photos]:
    """Return the photos of each pair set's rows, but for those of its ``plus``."""
    selected = {name: _selected(settings, data, own) for name, own in settings.pairs.items()}
    captioned = {
        name: {TRAIN: selected[own.images_of.pairs][TRAIN], VAL: set()}
        for name, own in settings.pseudopairs.items()
    }
    return selected | captioned


def photos_shown(settings: Settings, rows: Mapping[str, Photos]) -> dict[str, Photos]:
    """Return the photos of each pair set; of pseudopairs, those of the lent captions, too.

    Args:
        settings: Of the study.
        rows: What :func:`photos_of_rows` returns.
    """
    borrowed = {
        name: {TRAIN: rows[name][TRAIN] | rows[own.captions_of.pairs][TRAIN], VAL: set()}
        for name, own in settings.pseudopairs.items()
    }
    return {**rows, **borrowed}


def translators_of(settings: Settings, pairs: str) -> Iterator[str]:
    """Yield the translators that wrote captions of a pair set, but for those of its ``plus``."""
    yield from filter(None, map(settings.translator_of, translations_of(settings, pairs)))


def translations_of(settings: Settings, pairs: str) -> Iterator[Translation]:
    """Yield the translations of a pair set, and of what they translate; none of its ``plus``."""
    if pairs in settings.pseudopairs:
        borrowed = settings.pseudopairs[pairs]
        for side in (borrowed.images_of, borrowed.captions_of):
            chosen = settings.pairs[side.pairs]
            asked = _machine_languages(chosen) & {side.language}
            yield from _translations_behind(settings, chosen.dataset, asked)
    else:
        chosen = settings.pairs[pairs]
        yield from _translations_behind(settings, chosen.dataset, _machine_languages(chosen))


def translator_photos(settings: Settings, data: Mapping[str, Data], name: str) -> Photos | None:
    """Return the photos that a translator learns, and is validated on; None if unknown."""
    chosen = settings.translators[name]
    own = data.get(chosen.dataset)
    if own is None or name not in own.parallel or not _excluded_sets(settings, chosen) <= {*data}:
        return None
    found = {split: own.parallel[name].get(split, set()) for split in (TRAIN, VAL)}
    excluded = data.get(chosen.exclude_images)
    hidden = excluded.outside(TRAIN) if excluded else set()
    if own.images is None and chosen.exclude_images == chosen.dataset:
        hidden = found[VAL]
    for pairs in settings.pair_sets(chosen.exclude_pairs):
        selected = _selected(settings, data, settings.pairs[pairs])
        hidden = hidden | selected[TRAIN] | selected[VAL]
    return {split: ids - hidden for split, ids in found.items()}


def builds_upon(settings: Settings, recipes: Mapping[str, Recipe], name: str) -> dict[str, str]:
    """Return the recipe, and those whose models it learns by, with a clause that says how."""
    found, waiting = {name: "it learns from"}, [name]
    while waiting:
        recipe = recipes[waiting.pop()]
        ways = {recipe.initial: f"{recipe.initial}, whose weights it starts from, learnt from"}
        for pairs, _ in learnt_pair_sets(settings, recipe):
            if pairs in settings.pseudopairs:
                teacher = settings.pseudopairs[pairs].teacher
                ways[teacher] = f"{teacher}, which chose the captions of {pairs}, learnt from"
        new = {other: said for other, said in ways.items() if other in recipes.keys() - found}
        found |= new
        waiting += new
    return found


def learnt_pair_sets(settings: Settings, recipe: Recipe) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the pair sets that a recipe and its word vectors learn from, and which splits."""
    for pairs in settings.pair_sets(recipe.pairs):
        yield pairs, (TRAIN, VAL)
    vectors = settings.word_vectors.get(recipe.word_vectors)
    for pairs in settings.pair_sets(entry_of(vectors.source, PAIRS) if vectors else ""):
        yield pairs, (TRAIN,)


def shared_photos(found: Photos, forbidden: Photos) -> set[str]:
    """Return the photos that were found in a split in which they are forbidden."""
    return set().union(*(ids & forbidden[split] for split, ids in found.items()))


def source_of(settings: Settings, dataset: str) -> str:
    """Return the data set that a translation, perhaps of a translation, adds to, or itself."""
    while dataset in settings.translations:
        dataset = settings.translations[dataset].dataset
    return dataset


def _excluded_sets(settings: Settings, chosen: TranslatorRecipe) -> set[str]:
    """Return the data sets that decide what a translator must not see."""
    sets = [settings.pairs[name] for name in settings.pair_sets(chosen.exclude_pairs)]
    named = {chosen.exclude_images, *(s.dataset for s in sets), *(s.exclude_images for s in sets)}
    return named - {NONE}


def _machine_languages(chosen: PairSet) -> set[str]:
    kinds = [*chosen.captions.items(), *chosen.validation_kinds.items()]
    return {language for language, own in kinds if "machine" in own}


def _translations_behind(
    settings: Settings, dataset: str, languages: set[str]
) -> Iterator[Translation]:
    """Yield the translations that gave a data set its machine captions in some languages."""
    while dataset in settings.translations:
        made = settings.translations[dataset]
        if made.target_language in languages:
            yield made
            if made.annotation == "machine":
                languages = languages | {made.source_language}
        dataset = made.dataset


def _selected(settings: Settings, data: Mapping[str, Data], chosen: PairSet) -> Photos:
    """Return what corpora.selection.select takes, but for ``per_image``: the photos by split.

    None where data is unknown.
    """
    own, excluded = data.get(chosen.dataset), data.get(chosen.exclude_images)
    if own is None or (excluded is None and chosen.exclude_images in settings.datasets):
        return {TRAIN: set(), VAL: set()}
    left_out = excluded.outside() if excluded else set()
    train = of_kinds(own, TRAIN, chosen.captions)
    if chosen.images != "all":
        every = set().union(*(ids for (split, *_), ids in own.captioned.items() if split == TRAIN))
        train &= {*half_of(np.array([*every], object), chosen.images, settings.selection_seed)}
    return {
        TRAIN: train - left_out,
        VAL: of_kinds(own, VAL, chosen.validation_kinds) - left_out,
    }


def of_kinds(data: Data, split: str, kinds: Mapping[str, list[Annotation]]) -> set[str]:
    """Return the photos of a split that have a caption of some kinds, by language."""
    asked = [(split, language, kind) for language, own in kinds.items() for kind in own]
    return set().union(*(data.captioned.get(kind, ()) for kind in asked))
