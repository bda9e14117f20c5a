"""Where the entities of a scene stand in its picture."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from pipeline_lib.corpora.world.animals import BIRD_HEIGHT, BIRD_WIDTH, STANCES
from pipeline_lib.corpora.world.people import POSES, holding_hand
from pipeline_lib.corpora.world.scenes import Entity, Scene
from pipeline_lib.corpora.world.species import QUADRUPEDS
from pipeline_lib.corpora.world.things import DRAWINGS

HEIGHTS = {
    "man": 1.0,
    "woman": 0.95,
    "boy": 0.72,
    "girl": 0.72,
    "dog": 0.58,
    "cat": 0.5,
    "rabbit": 0.46,
    "horse": 0.95,
    "cow": 0.8,
    "sheep": 0.72,
    "pig": 0.62,
    "elephant": 1.15,
    "bird": 0.5,
    "duck": 0.5,
    **{noun: drawing.height for noun, drawing in DRAWINGS.items()},
}
"""Heights of what is neither big nor small, beside a man."""
_SIZES = {"big": 1.45, "small": 0.6, None: 1.0}
_SPACING = 1.06
_GAP = 0.12
_BROAD = 0.8
_ROW = 0.9
"""How far behind the front row the next one stands, in heights."""

# Room under a thing (height, width) in units of its height.
_SHELTERS = {"tree": (0.45, 0.9), "umbrella": (0.62, 1.1), "table": (0.86, 1.25)}
# Height in the hand beside the holder's, and which share of it is below the hand.
_HELD = {
    "ball": (0.3, 0.5),
    "umbrella": (0.8, 0.2),
    "balloon": (0.75, 0.05),
    "box": (0.32, 0.5),
    "hat": (0.26, 0.4),
    "guitar": (0.75, 0.4),
    "flower": (0.5, 0.25),
}


@dataclass(frozen=True)
class Placement:
    """A group of alike entities: its middle ``x``, its ground ``y`` and the size of each.

    Lengths are in heights of a grown person.
    """

    entity: Entity
    x: float
    y: float
    scale: float
    holds: bool = False

    @property
    def step(self) -> float:
        """Return the distance from one entity of the group to the next."""
        return self.scale * _proportions(self.entity)[0] * _SPACING

    @property
    def columns(self) -> int:
        """Return how many stand side by side: three or four broad ones form two rows."""
        broad = _proportions(self.entity)[0] > _BROAD
        return 2 if broad and self.entity.count > 2 else self.entity.count

    @property
    def width(self) -> float:
        """Return the width of the group."""
        return self.step * self.columns

    @property
    def height(self) -> float:
        """Return the height of the group."""
        one = self.scale * _proportions(self.entity)[1]
        return one if self.columns == self.entity.count else one * (1 + _ROW)

    def members(self) -> Iterator[tuple[float, float]]:
        """Yield the position of each of the group beside its middle, the back row first."""
        one = self.scale * _proportions(self.entity)[1]
        for member in reversed(range(self.entity.count)):
            row, column = divmod(member, self.columns)
            shift = column - (self.columns - 1) / 2
            yield shift * self.step, row * _ROW * one


def main_group(scene: Scene) -> list[Placement]:
    """Place the first entity in its relation to the second; first in the list, first drawn."""
    actor, thing = (natural(entity) for entity in scene.entities[:2])
    return _RELATIONS[scene.relation](actor, thing)


def natural(entity: Entity) -> Placement:
    """Return a group alone, in its natural size."""
    return Placement(entity, 0.0, 0.0, HEIGHTS[entity.noun] * _SIZES[entity.size])


def bounds(placements: list[Placement]) -> tuple[float, float, float]:
    """Return left, right and top of what is placed."""
    return (
        min(p.x - p.width / 2 for p in placements),
        max(p.x + p.width / 2 for p in placements),
        max(p.y + p.height for p in placements),
    )


def _proportions(entity: Entity) -> tuple[float, float]:
    """Return width and height of one entity in units of its scale."""
    if entity.noun in DRAWINGS:
        return DRAWINGS[entity.noun].width, 1.0
    if entity.garment:
        return POSES[entity.action].width, POSES[entity.action].height
    if entity.noun in QUADRUPEDS:
        return QUADRUPEDS[entity.noun].width, 1.0 + STANCES[entity.action].ground
    return BIRD_WIDTH, BIRD_HEIGHT[entity.action]


def _next_to(actor: Placement, thing: Placement) -> list[Placement]:
    return [replace(thing, x=(actor.width + thing.width) / 2 + _GAP), actor]


def _in_front_of(actor: Placement, thing: Placement) -> list[Placement]:
    # Aside by a part of both widths, so that neither hides the other.
    aside = 0.3 * (actor.width + thing.width) / 2
    return [replace(thing, x=aside, y=0.22), actor]


def _behind(actor: Placement, thing: Placement) -> list[Placement]:
    return [replace(actor, x=thing.width / 2, y=0.14), thing]


def _under(actor: Placement, thing: Placement) -> list[Placement]:
    room_height, room_width = _SHELTERS[thing.entity.noun]
    scale = max(thing.scale, actor.height / room_height, actor.width / room_width)
    return [replace(thing, scale=scale), replace(actor, x=0.12 * actor.width)]


def _on(actor: Placement, thing: Placement) -> list[Placement]:
    scale = thing.scale * max(1.0, 1.1 * actor.width / thing.width)
    surface = DRAWINGS[thing.entity.noun].surface * scale
    return [replace(thing, scale=scale), replace(actor, y=surface)]


def _hold(actor: Placement, thing: Placement) -> list[Placement]:
    height, below = _HELD[thing.entity.noun]
    x, y = holding_hand(actor.entity.action)
    scale = height * actor.scale
    held = replace(thing, x=x * actor.scale, y=y * actor.scale - below * scale, scale=scale)
    return [replace(actor, holds=True), held]


_RELATIONS: dict[str, Callable[[Placement, Placement], list[Placement]]] = {
    "next_to": _next_to,
    "in_front_of": _in_front_of,
    "behind": _behind,
    "under": _under,
    "on": _on,
    "hold": _hold,
}
