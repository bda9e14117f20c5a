"""Features are there for every photo, and those that a model reads as one kind are of one kind."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from pipeline_lib.checks.known import Known
from pipeline_lib.contract.problems import ContractError
from pipeline_lib.images.given import given_dim, given_problems
from pipeline_lib.images.transforms import TRANSFORMS
from pipeline_lib.settings.images import Extractor, GivenFeatures, ImageFeatures
from pipeline_lib.settings.strict import NONE


def vectors_of(chosen: ImageFeatures) -> int:
    """Return how many vectors of a network an image's features hold side by side."""
    return TRANSFORMS[chosen.transform].vectors if isinstance(chosen, Extractor) else 1


def given_features(known: Known) -> Iterator[str]:
    """Yield why features that are given cannot be those of their data set's photos."""
    for name, chosen in known.settings.given_features.items():
        data, path = known.data.get(chosen.dataset), Path(chosen.images)
        if os.path.isfile(path):  # else it is missing
            images = data.images if data else None
            problems = given_problems(path, images)
            yield from (f"extractors.{name}.images: {problem}" for problem in problems)


def mixed_features(known: Known) -> Iterator[str]:
    """Yield where a model would read features of two extractors that cannot be compared.

    Their sizes may be equal, so that nothing but worse figures would show it.
    """
    settings, recipes = known.settings, known.recipes
    asked = {}
    for name, recipe in recipes.items():
        where = f"recipes.{name}"
        asked[f"{where}.more_features"] = (recipe.features, recipe.more_features, "")
        if recipe.initial in recipes:
            taught = recipes[recipe.initial].features
            said = f" of {recipe.initial}, which it continues"
            asked[f"{where}.features"] = (taught, recipe.features, said)
    for name, chosen in settings.rerankings.items():
        taught = recipes[chosen.recipe].features
        said = f" of {chosen.recipe}"
        asked[f"rerankings.{name}.features"] = (taught, chosen.features, said)
    for where, (first, second, said) in asked.items():
        if NONE not in (first, second):
            differing = _differing(settings.extractors[first], settings.extractors[second])
            if differing:
                yield (
                    f"{where}: expected features of one kind with {first}{said}, found {second} "
                    f"with {'; '.join(differing)}. Give both extractors the same settings"
                )


def _differing(ours: ImageFeatures, other: ImageFeatures) -> list[str]:
    """Return the settings by which the features of two extractors cannot be compared."""
    first, second = _kind(ours), _kind(other)
    return [
        f"{key} {second[key]}, not {first[key]}"
        for key in first
        if key in second and second[key] != first[key]
    ]


def _kind(chosen: ImageFeatures) -> dict[str, object]:
    """Return what decides the kind of features that an extractor makes."""
    if isinstance(chosen, GivenFeatures):
        found = {"backbone": chosen.backbone}
        with suppress(ContractError, OSError):  # the file is named elsewhere
            found["dim"] = given_dim(Path(chosen.images))
        return found
    keys = ["backbone", "weights", "transform", "resize", "crop", "layers"]
    if TRANSFORMS[chosen.transform].squashed:
        keys.remove("resize")  # a squashed photo has the size of the crop
    # A file of weights is named after its content, wherever it lies.
    return {key: getattr(chosen, key) for key in keys} | {"weights": Path(chosen.weights).name}
