"""Which entries of params.yaml wait for which: a stage reads what that of another entry writes."""

from collections.abc import Iterator, Mapping
from functools import reduce
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from operator import getitem
from pathlib import PurePath

PAIRS = "data/pairs/{}.parquet"
"""Where a stage writes the pair set of an entry."""

TRANSLATORS = "data/translators/{}"
"""Where a stage writes the translator of an entry."""

_SETS = ("pairs", "pseudopairs")

_NAMED: dict[str, dict[str, tuple[str, ...]]] = {
    "pairs": {"dataset": ("translations",), "plus": _SETS},
    "translators": {"exclude_pairs": _SETS},
    "translations": {"dataset": ("translations",), "model": ("translators",)},
    "pseudopairs": {
        "teacher": ("recipes",),
        "images_of.pairs": _SETS,
        "captions_of.pairs": _SETS,
        "plus": _SETS,
        "compare_with": _SETS,
    },
    "word_vectors": {"source": _SETS, "pairs": _SETS},
    "lexicons": {"pairs": _SETS},
    "recipes": {
        "dataset": ("translations",),
        "pairs": _SETS,
        "initial": ("recipes",),
        "word_vectors": ("word_vectors",),
        "lexicon": ("lexicons",),
    },
}
"""Keys of a section's entries that name entries, with the sections where these stand. What is not
here leads nowhere further: a data set, an extractor."""

Sections = Mapping[str, Mapping[str, Mapping[str, object]]]
"""Values of params.yaml, by section and entry."""


def entry_of(path: str, written: str) -> str:
    """Return the entry whose stage writes a path; empty if none does.

    Args:
        path: As params.yaml has it.
        written: Where the stage of each entry writes: PAIRS or TRANSLATORS.
    """
    name = PurePath(path).stem
    return name if PurePath(path) == PurePath(written.format(name)) else ""


def cycles(sections: Sections) -> Iterator[str]:
    """Yield a sentence for each circle of entries: none of their stages could be the first."""
    waits = _waits(sections)
    order = {entry: place for place, entry in enumerate(waits)}
    while circle := _circle(waits):
        first = circle.index(min(circle, key=order.get))
        way = [*circle[first:], *circle[: first + 1]]
        keys = [_key(waits[entry], awaited) for entry, awaited in pairwise(way)]
        places = [f"{entry}.{key}" for entry, key in zip(way, keys, strict=False)]
        yield f"{places[0]}: leads back to itself: {' -> '.join([*places, way[0]])}"
        del waits[way[0]][keys[0]]


def _waits(sections: Sections) -> dict[str, dict[str, str]]:
    """Return which entry each key of an entry waits for, both as ``section.name``."""
    waits: dict[str, dict[str, str]] = {}
    for section, keys in _NAMED.items():
        for name, entry in sections[section].items():
            waits[f"{section}.{name}"] = {
                key: f"{other}.{named}"
                for key, others in keys.items()
                for other in others
                if (named := _named(entry, key)) in sections[other]
            }
    return waits


def _named(entry: Mapping[str, object], key: str) -> str:
    value = str(reduce(getitem, key.split("."), entry))
    return entry_of(value, PAIRS) or entry_of(value, TRANSLATORS) or value


def _key(waits: Mapping[str, str], awaited: str) -> str:
    return next(key for key, entry in waits.items() if entry == awaited)


def _circle(waits: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Return entries each of which waits for the next one, and the last for the first; or none."""
    try:
        TopologicalSorter({entry: keys.values() for entry, keys in waits.items()}).prepare()
    except CycleError as error:
        return error.args[1][:0:-1]  # from what is awaited to what waits, the first one twice
    return []
