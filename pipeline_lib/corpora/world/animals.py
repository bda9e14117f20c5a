"""Drawings of animals: one body plan for four legs, one for wings, told apart by measures."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from pipeline_lib.corpora.world.canvas import Colour, Frame, Point, darker, ellipse, mixed
from pipeline_lib.corpora.world.palette import BEAK, DARK, LEAF, PAGE, PINK
from pipeline_lib.corpora.world.people import draw_sleep


@dataclass(frozen=True)
class Quadruped:
    """Measures of an animal with four legs, in units of its height.

    Attributes:
        half_length: From the middle of the body to shoulder or hip.
        body: Thickness of the body.
        legs: Length of the legs, and their thickness.
        neck: From the shoulder to the middle of the head, when it stands.
        head: Radius of the head.
        muzzle: How far the muzzle reaches past the head.
    """

    half_length: float
    body: float
    legs: tuple[float, float]
    neck: Point
    head: float
    muzzle: float
    details: Callable[[Frame, "Quadruped", Point, Point, Colour], None]

    @property
    def width(self) -> float:
        """Return how wide the animal is."""
        return 2 * (self.half_length + self.body / 2) + max(self.neck[0], 0) + self.muzzle


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


def _ear(frame: Frame, tip: Point, root: Point, width: float, colour: Colour) -> None:
    frame.polygon([(root[0] - width, root[1]), (root[0] + width, root[1]), tip], colour)


def _face(frame: Frame, animal: Quadruped, head: Point, colour: Colour) -> None:
    frame.disc(head, animal.head, colour)
    centre = (head[0] + animal.head * 0.7 + animal.muzzle * 0.4, head[1] - animal.head * 0.25)
    frame.oval(centre, animal.head * 0.35 + animal.muzzle * 0.6, animal.head * 0.55, colour)


def _dog(frame: Frame, animal: Quadruped, hip: Point, head: Point, colour: Colour) -> None:
    (x, y), r = head, animal.head
    frame.line([(hip[0] - 0.1, hip[1] + 0.08), (hip[0] - 0.26, hip[1] + 0.3)], 0.07, colour)
    _face(frame, animal, head, colour)
    frame.oval((x - 0.6 * r, y - 0.1 * r), 0.35 * r, 0.85 * r, darker(colour))
    frame.disc((x + r + animal.muzzle, y - 0.1 * r), 0.22 * r, DARK)


def _cat(frame: Frame, animal: Quadruped, hip: Point, head: Point, colour: Colour) -> None:
    (x, y), r = head, animal.head
    tail = [(hip[0] - 0.08, hip[1]), (hip[0] - 0.26, hip[1] + 0.12), (hip[0] - 0.2, hip[1] + 0.45)]
    frame.line(tail, 0.06, colour)
    for side in (-1, 1):
        _ear(frame, (x + side * 0.75 * r, y + 1.6 * r), (x + side * 0.5 * r, y + 0.6 * r), 0.4 * r, colour)
    _face(frame, animal, head, colour)
    for slope in (-0.3, 0.0, 0.3):
        frame.line([(x + 0.8 * r, y - 0.2 * r), (x + 1.8 * r, y + (slope - 0.2) * r)], 0.012, DARK)
    frame.disc((x + 1.1 * r, y - 0.15 * r), 0.14 * r, PINK)


def _rabbit(frame: Frame, animal: Quadruped, hip: Point, head: Point, colour: Colour) -> None:
    (x, y), r = head, animal.head
    frame.disc((hip[0] - 0.22, hip[1]), 0.1, PAGE)
    for offset in (-0.5, 0.15):
        frame.oval((x + offset * r, y + 1.75 * r), 0.28 * r, 1.1 * r, colour)
        frame.oval((x + offset * r, y + 1.75 * r), 0.13 * r, 0.8 * r, PINK)
    _face(frame, animal, head, colour)


def _horse(frame: Frame, animal: Quadruped, hip: Point, head: Point, colour: Colour) -> None:
    (x, y), r = head, animal.head
    hair = darker(colour, 0.55)
    tail = [(hip[0] - 0.12, hip[1] + 0.05), (hip[0] - 0.24, hip[1] - 0.05), (hip[0] - 0.26, hip[1] - 0.35)]
    frame.line(tail, 0.09, hair)
    frame.line([(x - 0.9 * r, y + 0.9 * r), (x - 2.4 * r, y - 2.2 * r)], 0.1, hair)
    _face(frame, animal, head, colour)
    _ear(frame, (x - 0.2 * r, y + 1.8 * r), (x - 0.2 * r, y + 0.7 * r), 0.3 * r, colour)


def _cow(frame: Frame, animal: Quadruped, hip: Point, head: Point, colour: Colour) -> None:
    (x, y), r = head, animal.head
    patch = mixed(colour, PAGE, 0.8) if sum(colour) < 500 else DARK
    for share, size in ((0.25, 0.1), (0.65, 0.12)):
        frame.oval((hip[0] + share * 2 * animal.half_length, hip[1] + 0.03), size, size * 0.75, patch)
    frame.line([(hip[0] - 0.2, hip[1] + 0.08), (hip[0] - 0.26, hip[1] - 0.25)], 0.03, darker(colour))
    for side in (-1, 1):
        frame.line([(x + side * 0.5 * r, y + 0.7 * r), (x + side * 1.1 * r, y + 1.6 * r)], 0.045, PAGE)
    _face(frame, animal, head, colour)
    frame.oval((x + r + animal.muzzle * 0.5, y - 0.35 * r), 0.4 * r, 0.42 * r, PINK)


def _sheep(frame: Frame, animal: Quadruped, hip: Point, head: Point, colour: Colour) -> None:
    for step in range(6):
        x = hip[0] + step / 5 * 2 * animal.half_length
        for side in (-1, 1):
            frame.disc((x, hip[1] + side * animal.body * 0.42), 0.12, colour)
    frame.oval((hip[0] + animal.half_length, hip[1]), animal.half_length, animal.body * 0.45, colour)
    face = (70, 62, 60) if sum(colour) > 300 else (200, 190, 180)
    frame.oval((head[0] - animal.head, head[1]), 0.5 * animal.head, 0.25 * animal.head, face)
    _face(frame, animal, head, face)
    frame.disc((head[0] - 0.3 * animal.head, head[1] + 0.8 * animal.head), 0.08, colour)


def _pig(frame: Frame, animal: Quadruped, hip: Point, head: Point, colour: Colour) -> None:
    (x, y), r = head, animal.head
    curl = ellipse((hip[0] - 0.3, hip[1] + 0.1), 0.06, 0.06, 0, 300)
    frame.line(curl, 0.03, PINK)
    _ear(frame, (x + 0.1 * r, y + 1.4 * r), (x - 0.3 * r, y + 0.7 * r), 0.45 * r, darker(colour, 0.2))
    _face(frame, animal, head, colour)
    frame.oval((x + r + animal.muzzle, y - 0.2 * r), 0.25 * r, 0.45 * r, PINK)


def _elephant(frame: Frame, animal: Quadruped, hip: Point, head: Point, colour: Colour) -> None:
    (x, y), r = head, animal.head
    frame.line([(hip[0] - 0.26, hip[1] + 0.05), (hip[0] - 0.32, hip[1] - 0.22)], 0.035, darker(colour))
    frame.disc(head, r, colour)
    trunk = [(x + 0.7 * r, y - 0.1 * r), (x + 1.35 * r, y - 0.9 * r), (x + 1.3 * r, max(y - 2.2 * r, 0.05))]
    frame.line(trunk, 0.11, colour)
    frame.line([(x + 0.7 * r, y - 0.6 * r), (x + 1.7 * r, y - 0.5 * r)], 0.05, PAGE)
    frame.oval((x - 0.65 * r, y), 0.75 * r, 1.05 * r, darker(colour, 0.18))


QUADRUPEDS = {
    "dog": Quadruped(0.32, 0.3, (0.32, 0.1), (0.2, 0.26), 0.17, 0.1, _dog),
    "cat": Quadruped(0.27, 0.25, (0.26, 0.08), (0.2, 0.22), 0.17, 0.0, _cat),
    "rabbit": Quadruped(0.17, 0.38, (0.12, 0.1), (0.14, 0.2), 0.17, 0.0, _rabbit),
    "horse": Quadruped(0.34, 0.28, (0.42, 0.08), (0.2, 0.36), 0.11, 0.16, _horse),
    "cow": Quadruped(0.4, 0.4, (0.3, 0.1), (0.26, 0.1), 0.14, 0.08, _cow),
    "sheep": Quadruped(0.26, 0.4, (0.24, 0.08), (0.26, 0.1), 0.12, 0.06, _sheep),
    "pig": Quadruped(0.34, 0.44, (0.16, 0.11), (0.26, 0.04), 0.19, 0.08, _pig),
    "elephant": Quadruped(0.28, 0.54, (0.26, 0.17), (0.32, 0.12), 0.2, 0.1, _elephant),
}
BIRDS: dict[str, tuple[Point, float]] = {"bird": ((0.24, 0.26), 0.15), "duck": ((0.3, 0.36), 0.14)}
"""Neck and radius of the head."""


def draw_bird(frame: Frame, noun: str, action: str, colour: Colour) -> None:
    """Draw one bird or duck; in flight it is above the frame's ground."""
    (reach, rise), radius = BIRDS[noun]
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
        [(x + radius * 0.8, y + thickness), (x + radius + 0.16, y - 0.02), (x + radius * 0.8, y - thickness)],
        BEAK,
    )
    _draw_eye(frame, head, radius, asleep=action == "sleep")
    if action == "eat":
        _draw_food(frame, x + radius + 0.14)


def _draw_wings(frame: Frame, base: float, colour: Colour, *, spread: bool) -> None:
    if spread:
        frame.polygon([(-0.18, base), (0.14, base), (-0.02, base + 0.62), (-0.3, base + 0.5)], colour)
        frame.polygon([(-0.1, base + 0.05), (0.16, base + 0.05), (0.28, base + 0.55)], colour)
    else:
        frame.oval((-0.08, base + 0.02), 0.23, 0.13, colour)
