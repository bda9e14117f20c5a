"""Runs on fewer photos or languages."""

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np

from pipeline_lib.checks.known import Known
from pipeline_lib.checks.shown import of_kinds
from pipeline_lib.contract.tables import TRAIN
from pipeline_lib.corpora.selection import share_of, share_size
from pipeline_lib.settings.growth import Growth
from pipeline_lib.settings.recipes import Recipe


def growth_problems(known: Known) -> Iterator[str]:
    """Yield what runs on fewer photos or languages cannot be compared in, or learnt from.

    That is word vectors of more languages than the recipe's, or of more numbers than photos, and
    shares of the photos without a caption in one of the languages.
    """
    for name, chosen in known.settings.growth.items():
        yield from _other_languages(known, name)
        yield from _too_few_photos(known, name, chosen)
        if _captions_known(known, known.recipes[name].pairs):
            yield from _growth_in_languages(known, name, chosen)
            yield from _shares_without_language(known, name, chosen.photos)


def _too_few_photos(known: Known, name: str, chosen: Growth) -> Iterator[str]:
    """Yield shares of fewer photos, and lines of text alone, than word vectors have numbers."""
    dim = known.settings.word_vectors[chosen.word_vectors].dim
    photos, text = _photo_counts(known, known.recipes[name])
    for share in chosen.photos if photos else ():
        if (left := share_size(share, photos)) + text < dim:
            beside = f" beside {text} lines of text" if text else ""
            yield (
                f"growth.{name}.photos: expected {dim} photos or more, as many as "
                f"{chosen.word_vectors} has numbers, found {left}, {share} of {photos}{beside}. "
                "Make the share larger"
            )


def _growth_in_languages(known: Known, name: str, chosen: Growth) -> Iterator[str]:
    """Yield the first languages of a recipe that too few training photos have captions in."""
    recipe, learnt = known.recipes[name], set()
    dim = known.settings.word_vectors[chosen.word_vectors].dim
    for language in recipe.languages[:-1]:
        learnt |= _captioned(known, recipe.pairs, language)
        if len(learnt) >= dim:
            return
        yield (
            f"growth.{name}: expected captions of {dim} training photos or more in the first "
            f"languages of the recipe, up to {language}, as many as its word vectors have "
            f"numbers, found {len(learnt)}. Name a language that more photos have first"
        )


def _other_languages(known: Known, name: str) -> Iterator[str]:
    """Yield a recipe whose word vectors are made of text that its runs do not read."""
    recipe = known.recipes[name]
    if other := (known.training_languages(recipe.pairs) or set()) - {*recipe.languages}:
        yield (
            f"growth.{name}.pairs: expected a pair set of the recipe's languages "
            f"{', '.join(recipe.languages)} alone, since word vectors are made of all its text, "
            f"found {', '.join(sorted(other))} in {recipe.pairs}, too. Make one without"
        )


def _shares_without_language(known: Known, name: str, shares: Sequence[float]) -> Iterator[str]:
    """Yield shares of which no photo has a caption in a language."""
    recipe = known.recipes[name]
    photos, text = _training_photos(known, recipe)
    if not photos:
        return
    captioned = {each: _captioned(known, recipe.pairs, each) for each in recipe.languages}
    ids, seed = np.array(sorted(photos), object), known.settings.selection_seed
    for share, language in product(shares, recipe.languages):
        left = {*share_of(ids, share, seed)}
        if left and captioned[language].isdisjoint(left | text):
            yield (
                f"growth.{name}.photos: expected captions of each language in every share, found "
                f"none in {language} of the {len(left)} photos of share {share}. Make it larger"
            )


def _captions_known(known: Known, pairs: str) -> bool:
    """Return whether it is known which photos have captions: not what stages draw, or lend."""
    names = known.settings.pair_sets(pairs)
    return known.settings.pairs.keys() >= {*names} and known.rows_known(pairs)


def _captioned(known: Known, pairs: str, language: str) -> set[str]:
    """Return the ids of the training photos of pair sets with captions of a language."""
    found = set()
    for name in known.settings.pair_sets(pairs):
        own = known.settings.pairs[name]
        kinds = {language: own.captions.get(language, [])}
        found |= known.rows[name][TRAIN] & of_kinds(known.data[own.dataset], TRAIN, kinds)
    return found


def _photo_counts(known: Known, recipe: Recipe) -> tuple[int, int]:
    """Return the sizes of :func:`_training_photos`; as many as a stage will draw of these alone."""
    data = known.data.get(recipe.dataset)
    if data and data.images is None and known.datasets(recipe.pairs) == {recipe.dataset}:
        return data.photos.get(TRAIN, 0), 0
    photos, text = _training_photos(known, recipe)
    return len(photos), len(text)


def _training_photos(known: Known, recipe: Recipe) -> tuple[set[str], set[str]]:
    """Return a recipe's training photos with features, and what is text alone; none if unknown."""
    _, seen = known.extractors_and_photos(recipe)
    if seen is None or not known.rows_known(recipe.pairs):
        return set(), set()
    train = known.training_photos(recipe.pairs)
    return train & seen, train - seen
