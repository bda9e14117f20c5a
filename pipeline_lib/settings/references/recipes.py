"""What a recipe is, what it names, and the recipe that it continues."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial

from pydantic import ValidationError

from pipeline_lib.settings.messages import readable
from pipeline_lib.settings.recipes import (
    Recipe,
    contradictions,
    part_of,
    recipe_keys,
)
from pipeline_lib.settings.strict import NONE, RANDOM, SettingsError, unknown, unknown_keys
from pipeline_lib.settings.study import Settings

VOCABULARY_KEYS = ("vocabulary", "min_count", "markers", "oov", "max_tokens")
"""Settings of a recipe that its vocabulary keeps."""

INPUTS: dict[str, Callable[[Settings], Iterable[str]]] = {
    "dataset": lambda settings: settings.caption_tables,
    "pairs": lambda settings: [*settings.pairs, *settings.pseudopairs],
    "features": lambda settings: settings.extractors,
    "more_features": lambda settings: [NONE, *settings.extractors],
    "initial": lambda settings: [NONE, *settings.recipes],
    "word_vectors": lambda settings: [RANDOM, *settings.word_vectors],
    "lexicon": lambda settings: [NONE, *settings.lexicons],
}
"""Settings of a recipe that dvc.yaml reads, too, and what each may name."""

LAYER_KEYS = (
    "text_encoder", "image_head", "word_dim", "embed_dim", "universal_dim", "orthogonal_map",
    "recurrent", "recurrent_sharing", "hidden_dim", "projection",
    "image_hidden_dims", "image_hidden_dim", "image_crops",
)  # fmt: skip
"""Settings of a recipe that say which layers it has, and how large they are."""


def departure_references(settings: Settings) -> Iterator[str]:
    """Yield which keys of ``departures`` no recipe has."""
    known = recipe_keys()
    yield from unknown_keys("departures", settings.departures, known | {*settings.papers})
    for paper in settings.papers:
        where, own = f"departures.{paper}", settings.departures.get(paper, {})
        if isinstance(own, dict):
            yield from unknown_keys(where, own, known)
        else:
            yield f"{where}: expected keys of recipes, found {own!r}"


def recipe_references(settings: Settings) -> Iterator[str]:
    """Yield what is wrong with each recipe, by itself and beside what it names."""
    for name in settings.recipes:
        yield from [*form_problems(settings, name)] or _name_problems(settings, name)


def _name_problems(settings: Settings, name: str) -> Iterator[str]:
    where, recipe = f"recipes.{name}", settings.recipe(name)
    for key, known in INPUTS.items():
        yield from unknown(f"{where}.{key}", [getattr(recipe, key)], known(settings))
    yield from unknown(f"{where}.languages", recipe.languages, settings.pools)
    yield from (f"{where}.{problem}" for problem in contradictions(recipe))
    yield from _word_problems(settings, where, recipe)
    yield from _unread(where, recipe)
    borrowed = settings.pseudopairs.get(recipe.pairs)
    if borrowed and not {*recipe.seeds} <= {*borrowed.seeds}:
        yield (
            f"{where}.seeds: {recipe.pairs} has a teacher for each of {borrowed.seeds}, "
            f"found {recipe.seeds}"
        )
    yield from _continuation_problems(settings, where, recipe)
    if recipe.batch_size == 1:
        yield f"{where}.batch_size: expected 2 or more: one has no wrong candidate to beat"


def form_problems(settings: Settings, name: str) -> Iterator[str]:
    """Yield what is wrong with the keys and values of a recipe, whatever others hold."""
    where, row = f"recipes.{name}", settings.recipes[name]
    if "paper" not in row:
        yield f"{where}.paper: missing. Legal names: {', '.join(sorted(settings.papers))}"
        return
    if str(row["paper"]) not in settings.papers:
        yield from unknown(f"{where}.paper", [str(row["paper"])], settings.papers)
        return
    try:
        form, values = settings.merged(row)
        for key in INPUTS:
            if key in values and key not in row:
                yield f"{where}.{key}: missing; dvc.yaml reads it there. Move it from departures"
        form.model_validate(values)
    except SettingsError as error:
        # The form is chosen by its parts: what there is no part of is all that the error says.
        part = re.match(r"no (\w+) is called", str(error))
        yield (
            f"{settings.place_of(name, part[1])}.{part[1]}: {error}"
            if part
            else f"{where}: {error}"
        )
    except ValidationError as error:
        for problem in readable(error, form, "", partial(part_of, values=values)):
            yield f"{settings.place_of(name, re.split('[.:]', problem)[0])}.{problem}"


def _word_problems(settings: Settings, where: str, recipe: Recipe) -> Iterator[str]:
    """Sizes of words, and languages of a lexicon, that are not the recipe's."""
    size = getattr(settings.word_vectors.get(recipe.word_vectors), "dim", recipe.word_dim)
    if recipe.word_dim != size:
        yield (
            f"{where}.word_dim: expected {size}, as {recipe.word_vectors} has, "
            f"found {recipe.word_dim}"
        )
    lexicon = settings.lexicons.get(recipe.lexicon)
    if lexicon and recipe.fits_maps and {*lexicon.languages} != {*recipe.languages}:
        yield (
            f"{where}.lexicon: {recipe.lexicon} translates {' and '.join(lexicon.languages)}, "
            f"the recipe has {', '.join(recipe.languages)}"
        )


def _unread(where: str, recipe: Recipe) -> Iterator[str]:
    """Yield the inputs that training would not read."""
    if recipe.lexicon != NONE and not recipe.learns_lexicon:
        yield (
            f"{where}.lexicon: expected {NONE}, as the objective {recipe.objective} reads none, "
            f"found {recipe.lexicon}"
        )
    if recipe.initial != NONE and recipe.word_vectors != RANDOM:
        yield (
            f"{where}.word_vectors: expected {RANDOM}, as words start from {recipe.initial}, "
            f"found {recipe.word_vectors}"
        )


def _continuation_problems(settings: Settings, where: str, recipe: Recipe) -> Iterator[str]:
    """A continued recipe has the vocabulary and the layers of the one that it continues."""
    before = settings.merged_recipes.get(recipe.initial, {})
    own = recipe.model_dump()
    keys = [key for key in (*VOCABULARY_KEYS, *LAYER_KEYS) if key in before and key in own]
    differing = [key for key in keys if before[key] != own[key]]
    if before and not _same_tables(before, own):
        differing.append("languages")
    for key in differing:
        yield (
            f"{where}.{key}: {recipe.initial}, which it continues, has {before[key]!r}; "
            f"found {own[key]!r}"
        )


def _same_tables(before: Mapping[str, object], own: Mapping[str, object]) -> bool:
    """Return whether the languages of a recipe find the layers of the one that it continues.

    Args:
        before: Values of the recipe that is continued.
        own: Values of the recipe that continues it.
    """
    if own.get("orthogonal_map"):
        # The words of the first language are not mapped.
        return (before["languages"][0], {*before["languages"]}) == (
            own["languages"][0],
            {*own["languages"]},
        )
    shared = ("vocabulary", "recurrent_sharing", "projection")
    of_each = any(own.get(key) == "per_language" for key in shared)
    if of_each or own.get("universal_dim", NONE) != NONE:
        return {*before["languages"]} == {*own["languages"]}
    return {*before["languages"]} >= {*own["languages"]}
