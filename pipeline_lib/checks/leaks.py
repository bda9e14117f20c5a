"""What a recipe learns from, by way of other models, too, shows no photo that it is tested on."""

from collections.abc import Iterator
from itertools import permutations

from pipeline_lib.checks.known import Known
from pipeline_lib.checks.shown import (
    Photos,
    builds_upon,
    learnt_pair_sets,
    shared_photos,
    source_of,
    translators_of,
)
from pipeline_lib.contract.tables import TRAIN, VAL


def leaks(known: Known) -> Iterator[str]:
    """Yield which photos a recipe is tested on that it, or a model that it builds upon, learns.

    Data sets share photos: what trains by one split may have seen photos that another tests on.
    Weights may be chosen by photos that are validated on, and by none that are tested on.
    """
    settings, recipes = known.settings, known.recipes
    for name, recipe in recipes.items():
        own = known.data.get(recipe.dataset)
        forbidden = own.forbidden if own else {}
        for teacher, said in builds_upon(settings, recipes, name).items() if own else ():
            for pairs, splits in learnt_pair_sets(settings, recipes[teacher]):
                where, dataset = f"recipes.{name}: {said} {pairs}", recipe.dataset
                found = {split: known.shown[pairs][split] for split in splits}
                if shared := shared_photos(found, forbidden):
                    yield (
                        f"{where}, which shows {len(shared)} photos (first: {min(shared)}) that "
                        f"{dataset} validates or tests on. Name {dataset} in exclude_images of "
                        f"{pairs}, or pairs of its own split"
                    )
                yield from _of_translators(known, where, pairs, dataset, forbidden)
        yield from _in_two_splits(known, name, forbidden.get(TRAIN, set()))


def _of_translators(
    known: Known, where: str, pairs: str, dataset: str, forbidden: Photos
) -> Iterator[str]:
    """Yield which photos the translators of a pair set's captions learnt.

    Args:
        known: What is known of the study.
        where: What begins a sentence.
        pairs: The pair set.
        dataset: That the recipe is validated and tested on.
        forbidden: Photos of the data set that may not be learnt, or validated on.
    """
    settings = known.settings
    source, own = source_of(settings, dataset), settings.pairs.get(pairs)
    if own and source_of(settings, own.dataset) == source:
        return  # checks/translated.py compares the translator with what it translates.
    for translator in dict.fromkeys(translators_of(settings, pairs)):
        if shared := shared_photos(known.taught[translator] or {}, forbidden):
            yield (
                f"{where}, translated by {translator}, which learnt {len(shared)} photos (first: "
                f"{min(shared)}) that {source} validates or tests on. Name {source} in "
                f"exclude_images of {translator}"
            )


def _in_two_splits(known: Known, name: str, named: set[str]) -> Iterator[str]:
    """Yield which photos one set of a recipe trains on and another validates on.

    Args:
        known: What is known of the study.
        name: Of the recipe.
        named: Photos whose training is named already.
    """
    for learnt, validated in permutations(known.settings.pair_sets(known.recipes[name].pairs), 2):
        shared = known.rows[learnt][TRAIN] & known.rows[validated][VAL] - named
        if shared:
            yield (
                f"recipes.{name}.pairs: {learnt} trains on {len(shared)} photos (first: "
                f"{min(shared)}) that {validated} validates on. Name sets of one split, or the "
                f"data set of {validated} in exclude_images of {learnt}"
            )
