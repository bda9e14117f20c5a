"""What a recipe learns from, by way of other models, too, shows no photo that it is tested on."""

from collections.abc import Iterator, Mapping

from pipeline_lib.checks.data import Data
from pipeline_lib.settings.recipes import Recipe
from pipeline_lib.settings.study import Settings


def leaks(
    settings: Settings, recipes: Mapping[str, Recipe], data: Mapping[str, Data]
) -> Iterator[str]:
    """Yield which photos a recipe is tested on that it, or a model that it builds upon, learns.

    Data sets share photos: what trains by one split may have seen photos that another tests on.
    """
    for name, recipe in recipes.items():
        tested = data[recipe.dataset].evaluated() if recipe.dataset in data else set()
        for teacher, said in _builds_upon(settings, recipes, name).items() if tested else ():
            for pairs in settings.pair_sets(recipes[teacher].pairs):
                shared = tested & _learnt(settings, data, pairs)
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


def _learnt(settings: Settings, data: Mapping[str, Data], pairs: str) -> set[str]:
    """Return the photos that a pair set shows, but for its ``plus``; none where data is unknown."""
    borrowed = settings.pseudopairs.get(pairs)
    chosen = settings.pairs[borrowed.images_of.pairs if borrowed else pairs]
    languages = [borrowed.images_of.language] if borrowed else chosen.captions
    own, excluded = data.get(chosen.dataset), data.get(chosen.exclude_images)
    if own is None or (excluded is None and chosen.exclude_images in settings.datasets):
        return set()
    kinds = [(language, kind) for language in languages for kind in chosen.captions[language]]
    shown = set().union(*(own.captioned.get(("train", *kind), ()) for kind in kinds))
    return shown - (excluded.identified() if excluded else set())
