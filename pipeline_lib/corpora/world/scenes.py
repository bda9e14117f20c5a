"""One scene of the world, how it is drawn by lot, and the facts that hold in it."""

import random
from dataclasses import dataclass

from pipeline_lib.corpora.world.concepts import (
    ACTORS,
    PLACES,
    RELATION_ACTIONS,
    RELATION_COUNTS,
    SIZES,
    THINGS,
    found_at,
    relations_between,
)

_COUNT_WEIGHTS = (6, 3, 2, 1)

Fact = tuple[str, str, str]
"""What something is said of, the property, its value: ``("dog", "colour", "brown")``."""


@dataclass(frozen=True)
class Entity:
    """One or several alike people, animals or things; None where nothing is the case or said."""

    noun: str
    count: int
    colour: str | None = None
    size: str | None = None
    garment: str | None = None
    action: str | None = None

    @property
    def number(self) -> str:
        """Return the grammatical number: ``one`` or ``many``."""
        return "one" if self.count == 1 else "many"

    @property
    def acts(self) -> bool:
        """Return whether it is a person or an animal."""
        return self.noun in ACTORS


@dataclass(frozen=True)
class Scene:
    """A scene, or the part of one that a sentence tells.

    Attributes:
        entities: Their nouns differ. With a relation, the first stands in it to the second.
    """

    place: str | None
    entities: tuple[Entity, ...]
    relation: str | None


def sample_scene(rng: random.Random) -> Scene:
    """Draw a scene: an actor in relation to a thing, maybe another actor, maybe another thing."""
    place = rng.choice(PLACES)
    actor, other = rng.sample([n for n, kind in ACTORS.items() if found_at(kind, place)], 2)
    thing, extra = rng.sample([n for n, kind in THINGS.items() if found_at(kind, place)], 2)
    relation = rng.choice(relations_between(actor, thing))
    entities = [_sample_actor(rng, actor, relation), _sample_target(rng, thing, relation)]
    if rng.random() < 0.7:
        entities.append(_sample_actor(rng, other, "next_to"))
    if rng.random() < 0.6:
        entities.append(_sample_thing(rng, extra, count=_sample_count(rng, THINGS[extra].most)))
    return Scene(place, tuple(entities), relation)


def fresh_scene(rng: random.Random, seen: set[Scene]) -> Scene:
    """Draw a scene that has not been seen, and add it to those that have."""
    scene = sample_scene(rng)
    while scene in seen:
        scene = sample_scene(rng)
    seen.add(scene)
    return scene


def facts(scene: Scene) -> frozenset[Fact]:
    """Return the facts that hold in a scene, or that a sentence about it states."""
    found: set[Fact] = {("scene", "contains", entity.noun) for entity in scene.entities}
    for entity in scene.entities:
        found.add((entity.noun, "count", str(entity.count)))
        for name in ("colour", "size", "garment", "action"):
            value = getattr(entity, name)
            if value is not None:
                found.add((entity.noun, name, value))
    if scene.relation is not None:
        found.add((scene.entities[0].noun, scene.relation, scene.entities[1].noun))
    if scene.place is not None:
        found.add(("scene", "place", scene.place))
    return frozenset(found)


def _sample_actor(rng: random.Random, noun: str, relation: str) -> Entity:
    kind = ACTORS[noun]
    return Entity(
        noun,
        count=_sample_count(rng, RELATION_COUNTS[relation]),
        colour=rng.choice(kind.colours),
        size=None if kind.garments else _sample_size(rng),
        garment=rng.choice(kind.garments) if kind.garments else None,
        action=rng.choice([a for a in kind.actions if a in RELATION_ACTIONS[relation]]),
    )


def _sample_target(rng: random.Random, noun: str, relation: str) -> Entity:
    count = _sample_count(rng, THINGS[noun].most) if relation in ("next_to", "in_front_of") else 1
    # Under, on and in the hand, the size of the thing has to suit the actor.
    sized = relation not in ("under", "on", "hold")
    return _sample_thing(rng, noun, count=count, sized=sized)


def _sample_thing(rng: random.Random, noun: str, *, count: int, sized: bool = True) -> Entity:
    return Entity(
        noun,
        count=count,
        colour=rng.choice(THINGS[noun].colours),
        size=_sample_size(rng) if sized else None,
    )


def _sample_count(rng: random.Random, most: int) -> int:
    return rng.choices(range(1, most + 1), _COUNT_WEIGHTS[:most])[0]


def _sample_size(rng: random.Random) -> str | None:
    return rng.choice((None, None, *SIZES))
