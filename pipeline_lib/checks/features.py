"""Features that a model reads as one kind are of one kind, though two extractors make them."""

from collections.abc import Iterator
from pathlib import Path

from pipeline_lib.checks.known import Known
from pipeline_lib.images.transforms import TRANSFORMS
from pipeline_lib.settings.images import Extractor
from pipeline_lib.settings.strict import NONE


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


def _differing(ours: Extractor, other: Extractor) -> list[str]:
    """Return the settings by which the features of two extractors cannot be compared."""
    keys = ["backbone", "weights", "transform", "resize", "crop", "layers"]
    if any(TRANSFORMS[each.transform].squashed for each in (ours, other)):
        keys.remove("resize")  # a squashed photo has the size of the crop
    # A file of weights is named after its content, wherever it lies.
    values = [
        {key: getattr(each, key) for key in keys} | {"weights": Path(each.weights).name}
        for each in (ours, other)
    ]
    return [
        f"{key} {values[1][key]}, not {values[0][key]}"
        for key in keys
        if values[0][key] != values[1][key]
    ]
