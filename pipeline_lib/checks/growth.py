"""Runs on fewer photos or languages."""

from collections.abc import Iterator

from pipeline_lib.checks.known import Known
from pipeline_lib.checks.shown import of_kinds
from pipeline_lib.contract.tables import TRAIN
from pipeline_lib.settings.recipes import Recipe


def growth_problems(known: Known) -> Iterator[str]:
    """Yield runs on so few photos or languages that word vectors have more numbers than photos."""
    for name, chosen in known.settings.growth.items():
        dim = known.settings.word_vectors[chosen.word_vectors].dim
        photos = _training_photo_count(known, known.recipes[name])
        for share in chosen.photos if photos else ():
            if (left := round(share * photos)) < dim:
                yield (
                    f"growth.{name}.photos: expected {dim} photos or more, as many as "
                    f"{chosen.word_vectors} has numbers, found {left}, {share} of {photos}. "
                    "Make the share larger"
                )
        yield from _growth_in_languages(known, name, dim)


def _growth_in_languages(known: Known, name: str, dim: int) -> Iterator[str]:
    """Yield the first languages of a recipe that too few training photos have captions in."""
    recipe, learnt = known.recipes[name], set()
    sets = [known.settings.pairs.get(pairs) for pairs in known.settings.pair_sets(recipe.pairs)]
    data = [known.data.get(own.dataset) if own else None for own in sets]
    if any(each is None or each.images is None for each in data):
        return  # what a stage draws, or lends, is not known yet
    for language in recipe.languages[:-1]:
        learnt |= _captioned(known, recipe.pairs, language)
        if len(learnt) >= dim:
            return
        yield (
            f"growth.{name}: expected captions of {dim} training photos or more in the first "
            f"languages of the recipe, up to {language}, as many as its word vectors have "
            f"numbers, found {len(learnt)}. Name a language that more photos have first"
        )


def _captioned(known: Known, pairs: str, language: str) -> set[str]:
    """Return the ids of the training photos of pair sets with captions of a language."""
    found = set()
    for name in known.settings.pair_sets(pairs):
        own = known.settings.pairs[name]
        kinds = {language: own.captions.get(language, [])}
        found |= known.rows[name][TRAIN] & of_kinds(known.data[own.dataset], TRAIN, kinds)
    return found


def _training_photo_count(known: Known, recipe: Recipe) -> int:
    """Return how many training photos with features a recipe has (most, of drawn ones)."""
    _, seen = known.extractors_and_photos(recipe)
    data = known.data.get(recipe.dataset)
    if data is None or seen is None:
        return 0
    if data.images is None:
        return data.photos.get(TRAIN, 0)
    return len(known.training_photos(recipe.pairs) & seen)
