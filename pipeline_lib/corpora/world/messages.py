"""What a sentence tells of a scene: a message is the part of the scene that is said."""

import random
from collections.abc import Callable
from dataclasses import replace

from pipeline_lib.corpora.world.scenes import Entity, Scene, facts

_FEWEST_DETAILS, _MOST_DETAILS = 2, 5
_PATTERNS_OF_A_DESCRIPTION = ("alone", "alone", "related", "related", "together", "events")


def sample_messages(scene: Scene, count: int, rng: random.Random) -> list[Scene]:
    """Draw at most six messages that state different parts of a scene, in varied patterns."""
    chosen: dict[frozenset, Scene] = {}
    for pattern in rng.sample(_PATTERNS_OF_A_DESCRIPTION, count):
        message = sample_message(scene, rng, pattern)
        while facts(message) in chosen:
            message = sample_message(scene, rng, pattern)
        chosen[facts(message)] = message
    return list(chosen.values())


def sample_message(scene: Scene, rng: random.Random, pattern: str | None = None) -> Scene:
    """Draw one message; it has two to five details beside which things there are and how many."""
    pattern = pattern or rng.choice(_PATTERNS_OF_A_DESCRIPTION)
    while True:
        message = _PATTERNS[pattern](scene, rng)
        if _FEWEST_DETAILS <= _details(message) <= _MOST_DETAILS:
            return message


def form(message: Scene) -> str:
    """Return the form of sentence that says a message: a key of every language's forms."""
    if len(message.entities) == 1 or message.relation is not None:
        return "action" if predicate(message, 0) else "presence"
    return "events" if all(entity.action for entity in message.entities) else "together"


def predicate(message: Scene, index: int) -> str | None:
    """Return what the first (0) or the second (1) entity is said to do."""
    holds = index == 0 and message.relation == "hold"
    return "hold" if holds else message.entities[index].action


def _details(message: Scene) -> int:
    """Count the stated facts that are not about presence or number."""
    return len(facts(message)) - 2 * len(message.entities)


def _alone(scene: Scene, rng: random.Random) -> Scene:
    entity = _mention(rng.choice(scene.entities), rng, action=0.75)
    return Scene(_sometimes(scene.place, 0.55, rng), (entity,), None)


def _related(scene: Scene, rng: random.Random) -> Scene:
    subject, target = scene.entities[:2]
    action = 0.0 if scene.relation == "hold" else 0.7
    entities = (_mention(subject, rng, action=action), _mention(target, rng, action=0.0))
    return Scene(_sometimes(scene.place, 0.4, rng), entities, scene.relation)


def _together(scene: Scene, rng: random.Random) -> Scene:
    first, second = (_mention(e, rng, action=0.0) for e in rng.sample(scene.entities, 2))
    return Scene(_sometimes(scene.place, 0.7, rng), (first, second), None)


def _events(scene: Scene, rng: random.Random) -> Scene:
    actors = [entity for entity in scene.entities if entity.acts]
    if len(actors) < 2:
        return _related(scene, rng)
    first, second = (_mention(e, rng, action=1.0) for e in rng.sample(actors, 2))
    return Scene(_sometimes(scene.place, 0.4, rng), (first, second), None)


_PATTERNS: dict[str, Callable[[Scene, random.Random], Scene]] = {
    "alone": _alone,
    "related": _related,
    "together": _together,
    "events": _events,
}


def _mention(entity: Entity, rng: random.Random, *, action: float) -> Entity:
    coloured = rng.random() < 0.6
    return replace(
        entity,
        colour=entity.colour if coloured else None,
        garment=entity.garment if coloured else None,
        size=_sometimes(entity.size, 0.6, rng),
        action=_sometimes(entity.action, action, rng),
    )


def _sometimes(value: str | None, probability: float, rng: random.Random) -> str | None:
    return value if rng.random() < probability else None
