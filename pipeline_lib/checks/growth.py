"""Runs on fewer photos or languages."""

from collections.abc import Iterator

from pipeline_lib.checks.known import Known


def growth_problems(known: Known) -> Iterator[str]:
    """Runs on fewer photos or languages with fewer photos than their vectors have numbers."""
    for name, chosen in known.settings.growth.items():
        dim = known.settings.word_vectors[chosen.word_vectors].dim
        photos = known.photos_learnt(known.recipes[name])
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
        learnt |= known.captioned(recipe.pairs, language)
        if len(learnt) >= dim:
            return
        yield (
            f"growth.{name}: expected captions of {dim} training photos or more in the first "
            f"languages of the recipe, up to {language}, as many as its word vectors have "
            f"numbers, found {len(learnt)}. Name a language that more photos have first"
        )
