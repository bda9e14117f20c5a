"""What the world can contain and what can be true of it, independent of language and style."""

from dataclasses import dataclass

PLACES = (
    "beach",
    "forest",
    "street",
    "meadow",
    "kitchen",
    "snow",
    "desert",
    "mountains",
    "lake",
    "bedroom",
)
INDOOR_PLACES = ("kitchen", "bedroom")

COLOURS = ("red", "blue", "green", "yellow", "purple", "black", "white", "brown", "grey")
SIZES = ("big", "small")
_BRIGHT = ("red", "blue", "green", "yellow", "purple", "black", "white")
_PAINT = ("red", "blue", "green", "yellow", "purple")
_COAT = ("brown", "black", "white", "grey")

ACTIONS = (
    "run",
    "walk",
    "sit",
    "stand",
    "jump",
    "sleep",
    "eat",
    "read",
    "dance",
    "wave",
    "fly",
)

_QUIET = ("sit", "stand", "sleep")
RELATION_ACTIONS = {
    "next_to": ACTIONS,
    "in_front_of": ACTIONS,
    "behind": ("sit", "stand", "jump", "sleep", "eat", "read", "dance", "wave"),
    "under": (*_QUIET, "eat", "read"),
    "on": _QUIET,
    "hold": ("stand", "walk", "sit", "run"),
}
"""What somebody can be doing while they stand in a relation to a thing."""

RELATION_COUNTS = {"next_to": 4, "in_front_of": 3, "behind": 2, "under": 2, "on": 2, "hold": 1}
"""How many actors can share the relation and remain countable in the picture."""


@dataclass(frozen=True)
class Actor:
    """What a person or an animal can look like and do.

    Attributes:
        colours: Of the garment of a person, of the coat or plumage of an animal.
        garments: Empty for an animal.
        indoors: Whether it is also found in rooms.
        relations: To a thing, other than beside, before and behind it.
    """

    colours: tuple[str, ...]
    actions: tuple[str, ...]
    garments: tuple[str, ...] = ()
    indoors: bool = False
    relations: tuple[str, ...] = ()


@dataclass(frozen=True)
class Thing:
    """What a thing can look like, where and how many are found, how an actor can relate to it."""

    colours: tuple[str, ...]
    indoors: bool = False
    places: tuple[str, ...] = PLACES
    relations: tuple[str, ...] = ()
    most: int = 4


_HUMAN_ACTIONS = ("run", "walk", "sit", "stand", "jump", "sleep", "eat", "read", "dance", "wave")
_PET_ACTIONS = ("run", "sit", "stand", "jump", "sleep", "eat")
_CATTLE_ACTIONS = ("run", "stand", "sleep", "eat")
_BIRD_ACTIONS = ("stand", "sleep", "eat", "fly")


def _person(*garments: str) -> Actor:
    return Actor(_BRIGHT, _HUMAN_ACTIONS, garments, indoors=True, relations=("under", "on", "hold"))


def _pet(*colours: str) -> Actor:
    return Actor(colours, _PET_ACTIONS, indoors=True, relations=("under", "on"))


def _cattle(*colours: str) -> Actor:
    return Actor(colours, _CATTLE_ACTIONS)


def _fowl(*colours: str) -> Actor:
    return Actor(colours, _BIRD_ACTIONS, indoors=True, relations=("under", "on"))


PEOPLE = {
    "man": _person("shirt", "coat"),
    "woman": _person("shirt", "coat", "dress"),
    "boy": _person("shirt", "coat"),
    "girl": _person("shirt", "coat", "dress"),
}
ANIMALS = {
    "dog": _pet(*_COAT),
    "cat": _pet(*_COAT),
    "rabbit": _pet(*_COAT),
    "horse": _cattle(*_COAT),
    "cow": _cattle("brown", "black", "white"),
    "sheep": _cattle("white", "black", "brown"),
    "pig": _cattle("brown", "black", "white"),
    "elephant": _cattle("grey", "brown"),
    "bird": _fowl("red", "blue", "green", "yellow", "black"),
    "duck": _fowl("white", "yellow", "brown"),
}
ACTORS = {**PEOPLE, **ANIMALS}

THINGS = {
    "ball": Thing(_PAINT, indoors=True, relations=("hold",)),
    "car": Thing(_BRIGHT, relations=("behind", "on"), most=2),
    "bus": Thing(_PAINT, relations=("behind",), most=2),
    "house": Thing(("red", "blue", "yellow", "white", "brown"), relations=("behind",), most=2),
    "boat": Thing(_BRIGHT, places=("beach", "lake"), relations=("behind", "on"), most=2),
    "bicycle": Thing(_BRIGHT),
    "umbrella": Thing(_PAINT, indoors=True, relations=("under", "hold")),
    "table": Thing(
        ("brown", "white", "red", "blue"), indoors=True, relations=("behind", "under", "on"), most=2
    ),
    "chair": Thing((*_PAINT, "brown"), indoors=True, relations=("behind", "on")),
    "bench": Thing(("brown", "green", "red", "blue"), relations=("behind", "on"), most=2),
    "tent": Thing(_PAINT, relations=("behind",), most=2),
    "balloon": Thing(_PAINT, indoors=True, relations=("hold",)),
    "box": Thing((*_PAINT, "brown"), indoors=True, relations=("behind", "on", "hold")),
    "hat": Thing((*_PAINT, "black"), indoors=True, relations=("hold",)),
    "guitar": Thing(("brown", "red", "blue", "black"), indoors=True, relations=("hold",)),
    "tree": Thing(
        ("green", "yellow", "red"),
        places=("beach", "street", "meadow", "snow", "desert", "mountains", "lake"),
        relations=("behind", "under"),
    ),
    "flower": Thing(_PAINT, indoors=True, relations=("hold",)),
}


def found_at(kind: Actor | Thing, place: str) -> bool:
    """Tell whether an actor or thing can be at a place."""
    allowed = not isinstance(kind, Thing) or place in kind.places
    return allowed and (kind.indoors or place not in INDOOR_PLACES)


def relations_between(actor: str, thing: str) -> list[str]:
    """Return every relation in which an actor can stand to a thing."""
    special = THINGS[thing].relations
    return [
        relation
        for relation, actions in RELATION_ACTIONS.items()
        if relation in ("next_to", "in_front_of")
        or (relation in special and (relation == "behind" or relation in ACTORS[actor].relations))
        if set(actions) & set(ACTORS[actor].actions)
    ]
