"""Drawings of animals: one body plan for four legs and one for wings."""

import math
from dataclasses import dataclass

from pipeline_lib.corpora.world.canvas import Colour, Frame, Point, darker, ellipse
from pipeline_lib.corpora.world.palette import BEAK, DARK, LEAF, PAGE
from pipeline_lib.corpora.world.people import draw_sleep
from pipeline_lib.corpora.world.species import QUADRUPEDS, Quadruped


@dataclass(frozen=True)
class Stance:
    """How an action moves shoulder, hip, head and feet from where they are in standing.

    Attributes:
        lifts: Heights added to shoulder and to hip, in lengths of the legs.
        head: Factors of the neck's two coordinates.
        strides: How far the front and the hind feet are put out.
    """

    lifts: tuple[float, float]
    head: tuple[float, float]
    strides: tuple[float, float]
    ground: float = 0.0


STANCES = {
    "stand": Stance((0, 0), (1, 1), (0, 0)),
    "run": Stance((0, 0), (1.3, 0.8), (0.26, -0.26)),
    "jump": Stance((0.45, -0.15), (1, 1), (0.24, -0.24), ground=0.35),
    "sit": Stance((0.25, -0.75), (0.7, 1), (0, 0.2)),
    "sleep": Stance((-0.8, -0.8), (1.2, -0.1), (0, 0)),
    "eat": Stance((-0.1, 0), (1.4, -1), (0, 0)),
}


BIRD_WIDTH = 1.25
BIRD_HEIGHT = {"stand": 0.95, "eat": 0.7, "sleep": 0.6, "fly": 1.3}
"""Extent of birds, in units of their scale, by what they do."""
_BIRDS: dict[str, tuple[Point, float]] = {
    "bird": ((0.24, 0.26), 0.15),
    "duck": ((0.3, 0.36), 0.14),
}
"""Neck and radius of the head."""


def draw_quadruped(frame: Frame, noun: str, action: str, colour: Colour) -> None:
    """Draw one animal with four legs, the feet on the frame's ground."""
    animal, stance = QUADRUPEDS[noun], STANCES[action]
    length, thickness = animal.legs
    level = length + animal.body * 0.4 + stance.ground
    shoulder = (animal.half_length, level + stance.lifts[0] * length)
    hip = (-animal.half_length, level + stance.lifts[1] * length)
    head = (shoulder[0] + animal.neck[0] * stance.head[0], _head_height(animal, stance, shoulder))
    shade = darker(colour, 0.2)
    if action != "sleep":
        for joint, stride in ((shoulder, stance.strides[0]), (hip, stance.strides[1])):
            for offset, tone in ((-0.07, shade), (0.05, colour)):
                foot = (joint[0] + stride + offset, stance.ground * 0.6)
                frame.line([(joint[0] + offset, joint[1]), foot], thickness, tone)
    frame.line([shoulder, head], animal.head * 1.3, colour)
    frame.polygon(_capsule(hip, shoulder, animal.body / 2), colour)
    animal.details(frame, animal, hip, head, colour)
    _draw_eye(frame, head, animal.head, asleep=action == "sleep")
    if action == "eat":
        _draw_food(frame, head[0] + animal.head + animal.muzzle)


def draw_bird(frame: Frame, noun: str, action: str, colour: Colour) -> None:
    """Draw one bird or duck; in flight it is above the frame's ground."""
    (reach, rise), radius = _BIRDS[noun]
    base = {"fly": 0.65, "sleep": 0.2}.get(action, 0.42)
    if action in ("sleep", "eat"):
        rise = -0.08 if action == "sleep" else -0.2
    head = (reach + 0.05, base + rise)
    if action in ("stand", "eat"):
        for x in (-0.06, 0.08):
            frame.line([(x, base), (x, 0.02), (x + 0.1, 0.02)], 0.035, BEAK)
    frame.polygon([(-0.3, base + 0.06), (-0.58, base + 0.16), (-0.54, base - 0.06)], darker(colour))
    frame.line([(0.18, base), head], radius * 1.2, colour)
    frame.oval((0, base), 0.36, 0.22, colour)
    _draw_wings(frame, base, darker(colour, 0.25), spread=action == "fly")
    frame.disc(head, radius, colour)
    x, y = head
    thickness = 0.035 if noun == "bird" else 0.065
    frame.polygon(
        [
            (x + radius * 0.8, y + thickness),
            (x + radius + 0.16, y - 0.02),
            (x + radius * 0.8, y - thickness),
        ],
        BEAK,
    )
    _draw_eye(frame, head, radius, asleep=action == "sleep")
    if action == "eat":
        _draw_food(frame, x + radius + 0.14)


def _head_height(animal: Quadruped, stance: Stance, shoulder: Point) -> float:
    lowest = animal.head * 0.9
    return max(shoulder[1] + animal.neck[1] * stance.head[1], lowest)


def _capsule(start: Point, end: Point, radius: float) -> list[Point]:
    """Return the outline of a rounded bar."""
    angle = math.degrees(math.atan2(end[1] - start[1], end[0] - start[0]))
    return [
        *ellipse(end, radius, radius, angle - 90, angle + 90),
        *ellipse(start, radius, radius, angle + 90, angle + 270),
    ]


def _draw_eye(frame: Frame, head: Point, radius: float, *, asleep: bool) -> None:
    x, y = head[0] + 0.3 * radius, head[1] + 0.25 * radius
    if asleep:
        frame.line([(x - 0.03, y), (x + 0.03, y)], 0.02, DARK)
        draw_sleep(frame, (head[0], head[1] + 1.6 * radius))
    else:
        frame.disc((x, y), 0.2 * radius, PAGE)
        frame.disc((x + 0.05 * radius, y), 0.11 * radius, DARK)


def _draw_food(frame: Frame, x: float) -> None:
    for offset in (-0.08, 0, 0.08):
        frame.polygon([(x + offset - 0.04, 0), (x + offset + 0.04, 0), (x + offset, 0.16)], LEAF)


def _draw_wings(frame: Frame, base: float, colour: Colour, *, spread: bool) -> None:
    if spread:
        frame.polygon(
            [(-0.18, base), (0.14, base), (-0.02, base + 0.62), (-0.3, base + 0.5)], colour
        )
        frame.polygon([(-0.1, base + 0.05), (0.16, base + 0.05), (0.28, base + 0.55)], colour)
    else:
        frame.oval((-0.08, base + 0.02), 0.23, 0.13, colour)
