"""The picture of a scene."""

import random
from dataclasses import dataclass

from PIL import Image

from pipeline_lib.corpora.world.animals import draw_bird, draw_quadruped
from pipeline_lib.corpora.world.canvas import Canvas, Frame
from pipeline_lib.corpora.world.layout import Placement, bounds, main_group, natural
from pipeline_lib.corpora.world.palette import paint
from pipeline_lib.corpora.world.people import draw_person
from pipeline_lib.corpora.world.places import draw_place
from pipeline_lib.corpora.world.scenes import Entity, Scene
from pipeline_lib.corpora.world.species import QUADRUPEDS
from pipeline_lib.corpora.world.things import DRAWINGS

_LANDSCAPE = ((500, 375), (500, 333), (480, 360), (512, 384))
_PORTRAIT = ((375, 500), (384, 480))
_PORTRAIT_SHARE = 0.25
_PERSON = 0.6
"""Height of a grown person in the foreground, as a share of the picture's height."""


@dataclass(frozen=True)
class Slot:
    """A part of the picture; all numbers are shares of its width or height."""

    left: float
    right: float
    ground: float
    height: float


_ALONE = Slot(0.05, 0.95, 0.93, 0.82)
_SLOTS = {
    "landscape": (
        Slot(0.02, 0.61, 0.94, 0.85),
        Slot(0.63, 0.98, 0.96, 0.46),
        Slot(0.62, 0.97, 0.58, 0.4),
    ),
    "portrait": (
        Slot(0.05, 0.95, 0.95, 0.5),
        Slot(0.05, 0.48, 0.58, 0.32),
        Slot(0.54, 0.95, 0.54, 0.32),
    ),
}
"""For the main group and for up to two more."""


def draw_scene(scene: Scene, style: str, rng: random.Random) -> Image.Image:
    """Draw a scene in a style; the size of the picture varies."""
    portrait = rng.random() < _PORTRAIT_SHARE
    canvas = Canvas(rng.choice(_PORTRAIT if portrait else _LANDSCAPE), style, rng)
    draw_place(canvas, scene.place, rng)
    groups = [main_group(scene), *([natural(entity)] for entity in scene.entities[2:])]
    slots = _SLOTS["portrait" if portrait else "landscape"] if len(groups) > 1 else (_ALONE,)
    mirrored = rng.random() < 0.5
    for slot, group in reversed(list(zip(slots, groups, strict=False))):
        _draw_group(canvas, group, slot, mirrored=mirrored, facing=rng.choice((-1, 1)))
    return canvas.finished()


def _draw_group(
    canvas: Canvas, group: list[Placement], slot: Slot, *, mirrored: bool, facing: int
) -> None:
    """Draw a group into its slot, as large as fits but not larger than natural."""
    left, right, top = bounds(group)
    scale = min(
        _PERSON * canvas.height,
        (slot.right - slot.left) * canvas.width / (right - left),
        slot.height * canvas.height / top,
    )
    middle = (slot.left + slot.right) / 2
    middle = (1 - middle if mirrored else middle) * canvas.width
    for placement in group:
        x = middle + facing * (placement.x - (left + right) / 2) * scale
        ground = slot.ground * canvas.height - placement.y * scale
        for right_of, behind in placement.members():
            frame = Frame(
                canvas,
                x + facing * right_of * scale,
                ground - behind * scale,
                placement.scale * scale,
                facing,
            )
            _draw_one(frame, placement.entity, canvas.rng, holds=placement.holds)


def _draw_one(frame: Frame, entity: Entity, rng: random.Random, *, holds: bool) -> None:
    colour = paint(entity.colour, rng)
    if entity.noun in DRAWINGS:
        DRAWINGS[entity.noun].draw(frame, colour)
    elif entity.garment:
        draw_person(frame, entity.noun, entity.action, entity.garment, colour, rng, holds=holds)
    elif entity.noun in QUADRUPEDS:
        draw_quadruped(frame, entity.noun, entity.action, colour)
    else:
        draw_bird(frame, entity.noun, entity.action, colour)
