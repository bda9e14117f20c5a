"""What a recipe learns from, by way of other models, too, shows no photo that it is tested on."""

from collections.abc import Iterator, Mapping

import numpy as np

from pipeline_lib.checks.data import Data
from pipeline_lib.contract.tables import TRAIN, VAL
from pipeline_lib.corpora.selection import half_of
from pipeline_lib.settings.corpora import Annotation, PairSet
from pipeline_lib.settings.recipes import Recipe
from pipeline_lib.settings.study import PAIRS, Settings, entry_of


def leaks(
    settings: Settings, recipes: Mapping[str, Recipe], data: Mapping[str, Data]
) -> Iterator[str]:
    """Yield which photos a recipe is tested on that it, or a model that it builds upon, learns.

    Data sets share photos: what trains by one split may have seen photos that another tests on.
    Weights may be chosen by photos that are validated on, and by none that are tested on.
    """
    shown = _shown(settings, data)
    for name, recipe in recipes.items():
        if recipe.dataset not in data:
            continue
        own = data[recipe.dataset]
        forbidden = {TRAIN: own.outside(TRAIN), VAL: own.outside(TRAIN, VAL)}
        for teacher, said in _builds_upon(settings, recipes, name).items():
            for pairs, splits in _pair_sets(settings, recipes[teacher]):
                found = shown[pairs]
                shared = set().union(*(found[split] & forbidden[split] for split in splits))
                if shared:
                    yield (
                        f"recipes.{name}: {said} {pairs}, which shows {len(shared)} photos (first: "
                        f"{min(shared)}) that {recipe.dataset} validates or tests on. Name "
                        f"{recipe.dataset} in exclude_images of {pairs}, or pairs of its own split"
                    )


def _builds_upon(settings: Settings, recipes: Mapping[str, Recipe], name: str) -> dict[str, str]:
    """Return the recipe, and those whose models it learns by, with a clause that says how."""
    found, waiting = {name: "it learns from"}, [name]
    while waiting:
        recipe = recipes[waiting.pop()]
        ways = {recipe.initial: f"{recipe.initial}, whose weights it starts from, learnt from"}
        for pairs in settings.pair_sets(recipe.pairs):
            if pairs in settings.pseudopairs:
                teacher = settings.pseudopairs[pairs].teacher
                ways[teacher] = f"{teacher}, which chose the captions of {pairs}, learnt from"
        new = {other: said for other, said in ways.items() if other in recipes.keys() - found}
        found |= new
        waiting += new
    return found


def _pair_sets(settings: Settings, recipe: Recipe) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the pair sets that a recipe and its word vectors learn from, and which splits."""
    for pairs in settings.pair_sets(recipe.pairs):
        yield pairs, (TRAIN, VAL)
    vectors = settings.word_vectors.get(recipe.word_vectors)
    for pairs in settings.pair_sets(entry_of(vectors.source, PAIRS) if vectors else ""):
        yield pairs, (TRAIN,)


def _shown(settings: Settings, data: Mapping[str, Data]) -> dict[str, dict[str, set[str]]]:
    """Return the photos of each pair set by split, but for its ``plus``.

    Of pseudopairs, those of the captions that are lent, too.
    """
    selected = {name: _selected(settings, data, own) for name, own in settings.pairs.items()}
    borrowed = {
        name: {
            TRAIN: selected[own.images_of.pairs][TRAIN] | selected[own.captions_of.pairs][TRAIN],
            VAL: set(),
        }
        for name, own in settings.pseudopairs.items()
    }
    return selected | borrowed


def _selected(settings: Settings, data: Mapping[str, Data], chosen: PairSet) -> dict[str, set[str]]:
    """Return what corpora.selection.select takes, but for ``per_image``: the photos by split.

    None where data is unknown.
    """
    own, excluded = data.get(chosen.dataset), data.get(chosen.exclude_images)
    if own is None or (excluded is None and chosen.exclude_images in settings.datasets):
        return {TRAIN: set(), VAL: set()}
    left_out = excluded.outside() if excluded else set()
    train = _of_kinds(own, TRAIN, chosen.captions)
    if chosen.images != "all":
        every = set().union(*(ids for (split, *_), ids in own.captioned.items() if split == TRAIN))
        train &= {*half_of(np.array([*every], object), chosen.images, settings.selection_seed)}
    return {
        TRAIN: train - left_out,
        VAL: _of_kinds(own, VAL, chosen.validation_kinds) - left_out,
    }


def _of_kinds(data: Data, split: str, kinds: Mapping[str, list[Annotation]]) -> set[str]:
    asked = [(split, language, kind) for language, own in kinds.items() for kind in own]
    return set().union(*(data.captioned.get(kind, ()) for kind in asked))
