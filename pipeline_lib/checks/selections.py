"""What pair sets leave over, and how many captions a teacher chooses among."""

from collections.abc import Iterator

from pipeline_lib.checks.data import Kind, one_photo
from pipeline_lib.checks.known import Known
from pipeline_lib.checks.shown import source_of
from pipeline_lib.contract.tables import TRAIN, VAL
from pipeline_lib.settings.pseudopairs import Pseudopairs, Side


def nothing_left(known: Known) -> Iterator[str]:
    """Yield the kinds of captions of a pair set of which ``exclude_images`` leaves none."""
    for name, chosen in known.settings.pairs.items():
        own = known.data.get(chosen.dataset)
        asked = [(lang, kind) for lang, kinds in chosen.captions.items() for kind in kinds]
        for language, kind in asked if own else ():
            if _is_emptied(known, name, (TRAIN, language, kind)):
                yield (
                    f"pairs.{name}.exclude_images: {chosen.exclude_images} leaves none of the "
                    f"captions {language}/{kind} of {chosen.dataset} in the split {TRAIN}. Name "
                    "another data set, or none"
                )


def lone_validation_photos(known: Known) -> Iterator[str]:
    """Yield the languages of a pair set whose validation captions are all of one photo."""
    for name, chosen in known.settings.pairs.items():
        own = known.data.get(chosen.dataset)
        for language, kinds in chosen.validation_kinds.items() if own else ():
            photos = set().union(*(own.captioned.get((VAL, language, kind), ()) for kind in kinds))
            if len(photos) == 1:
                said = one_photo(f"pairs.{name}", f"{language} captions", VAL, chosen.dataset)
                yield f"{said} Add captions, or leave {language} out by pairs.{name}.validation"


def lender_problems(known: Known) -> Iterator[str]:
    """Yield which pseudopairs ask for more neighbours than there are captions."""
    for name, chosen in known.settings.pseudopairs.items():
        wanted = getattr(chosen.retrieval, "neighbours", 0)
        for key in _searched(chosen):
            side = getattr(chosen, key)
            there = _most_captions(known, side)
            if there is not None and wanted > there:
                yield (
                    f"pseudopairs.{name}.retrieval.neighbours: expected at most {there:,}, as many "
                    f"training captions as {side.pairs} has in {side.language}, found {wanted:,}"
                )


def _searched(chosen: Pseudopairs) -> tuple[str, ...]:
    """Return the sides among whose captions neighbours are sought."""
    both = chosen.retrieval.rule == "csls"
    return ("images_of", "captions_of") if both else ("captions_of",)


def _is_emptied(known: Known, pairs: str, kind: Kind) -> bool:
    chosen = known.settings.pairs[pairs]
    own, excluded = known.data[chosen.dataset], known.data.get(chosen.exclude_images)
    if excluded is None or kind not in own.captions:
        return False
    if source_of(known.settings, chosen.dataset) == chosen.exclude_images:
        return True
    # Of photos that a stage draws, no other data set has any.
    return own.images is not None and own.captioned[kind] <= excluded.outside()


def _most_captions(known: Known, side: Side) -> int | None:
    """Return how many training captions a side has at most; None if unknown."""
    chosen = known.settings.pairs[side.pairs]
    own = known.data.get(chosen.dataset)
    if own is None:
        return None
    kinds = [(TRAIN, side.language, kind) for kind in chosen.captions[side.language]]
    photos = own.photos.get(TRAIN, 0)
    if chosen.images != "all":
        photos = (photos + 1) // 2
    there = sum(own.captions.get(kind, 0) for kind in kinds)
    return there if chosen.per_image == "all" else min(there, chosen.per_image * photos)
