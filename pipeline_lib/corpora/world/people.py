"""Drawings of people: a skeleton per action, dressed."""

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, replace

from pipeline_lib.corpora.world.canvas import Colour, Frame, Point, ellipse
from pipeline_lib.corpora.world.palette import DARK, HAIRS, PAGE, PINK, SHOE, SKIN, TROUSERS

_HEAD = 0.105
_LONG_HAIRED = ("woman", "girl")
# How far a garment reaches past the hip, and half the width of its hem.
_HEMS = {"shirt": (0.04, 0.1), "coat": (0.2, 0.15), "dress": (0.24, 0.22)}


@dataclass(frozen=True)
class Pose:
    """Joints of a body of height 1 that faces right; each limb has a middle joint and an end."""

    neck: Point
    hip: Point
    legs: tuple[tuple[Point, Point], tuple[Point, Point]]
    arms: tuple[tuple[Point, Point], tuple[Point, Point]]
    width: float
    height: float = 1.0


POSES = {
    "stand": Pose(
        (0, 0.78),
        (0, 0.46),
        (((-0.06, 0.24), (-0.07, 0.02)), ((0.06, 0.24), (0.07, 0.02))),
        (((-0.16, 0.6), (-0.17, 0.42)), ((0.16, 0.6), (0.17, 0.42))),
        0.48,
    ),
    "walk": Pose(
        (0.02, 0.78),
        (0, 0.46),
        (((-0.06, 0.25), (-0.2, 0.03)), ((0.12, 0.26), (0.17, 0.02))),
        (((-0.13, 0.62), (-0.19, 0.47)), ((0.14, 0.6), (0.24, 0.5))),
        0.55,
    ),
    "run": Pose(
        (0.12, 0.76),
        (-0.02, 0.46),
        (((-0.12, 0.26), (-0.38, 0.26)), ((0.2, 0.38), (0.24, 0.08))),
        (((-0.12, 0.62), (-0.2, 0.8)), ((0.26, 0.54), (0.38, 0.68))),
        0.85,
        1.0,
    ),
    "sit": Pose(
        (-0.08, 0.5),
        (-0.12, 0.14),
        (((0.16, 0.22), (0.2, 0.02)), ((0.22, 0.2), (0.3, 0.02))),
        (((-0.16, 0.3), (-0.2, 0.08)), ((0.06, 0.34), (0.16, 0.24))),
        0.62,
        0.74,
    ),
    "jump": Pose(
        (0, 1.0),
        (0, 0.68),
        (((-0.16, 0.56), (-0.26, 0.4)), ((0.16, 0.56), (0.26, 0.4))),
        (((-0.2, 1.02), (-0.28, 1.22)), ((0.2, 1.02), (0.28, 1.22))),
        0.7,
        1.25,
    ),
    "sleep": Pose(
        (-0.28, 0.13),
        (0.06, 0.12),
        (((0.28, 0.14), (0.5, 0.07)), ((0.28, 0.09), (0.5, 0.05))),
        (((-0.14, 0.04), (-0.34, 0.03)), ((-0.1, 0.16), (0.06, 0.22))),
        1.12,
        0.42,
    ),
    "dance": Pose(
        (0.05, 0.78),
        (-0.02, 0.48),
        (((-0.03, 0.25), (-0.08, 0.02)), ((0.22, 0.44), (0.36, 0.24))),
        (((-0.18, 0.84), (-0.1, 1.06)), ((0.26, 0.74), (0.4, 0.88))),
        0.85,
        1.08,
    ),
}
_STANDING = POSES["stand"]
POSES |= {
    "eat": replace(
        _STANDING, arms=(((-0.15, 0.6), (0.05, 0.5)), ((0.2, 0.62), (0.13, 0.82))), width=0.52
    ),
    "read": replace(
        _STANDING, arms=(((-0.14, 0.56), (0.12, 0.6)), ((0.12, 0.54), (0.24, 0.64))), width=0.62
    ),
    "wave": replace(
        _STANDING,
        arms=(((-0.16, 0.6), (-0.17, 0.42)), ((0.22, 0.82), (0.27, 1.06))),
        width=0.58,
        height=1.1,
    ),
}


def draw_person(
    frame: Frame,
    noun: str,
    action: str,
    garment: str,
    colour: Colour,
    rng: random.Random,
    *,
    holds: bool,
) -> None:
    """Draw one person; one who holds something stretches a hand out to :func:`holding_hand`."""
    pose = POSES[action]
    for middle, end in pose.legs:
        frame.line([pose.hip, middle, end], 0.085, SKIN if garment == "dress" else TROUSERS)
        frame.oval((end[0] + 0.03, end[1] + 0.005), 0.065, 0.035, SHOE)
    _draw_garment(frame, pose, garment, colour)
    shoulder = _between(pose.neck, pose.hip, 0.14)
    hand = holding_hand(action)
    stretched = (_between(shoulder, hand, 0.5), hand)
    for middle, end in (pose.arms[0], stretched if holds else pose.arms[1]):
        frame.line([shoulder, middle, end], 0.065, colour)
        frame.disc(end, 0.042, SKIN)
    _draw_head(frame, pose, noun, asleep=action == "sleep", hair=rng.choice(HAIRS))
    if action in _PROPS:
        _PROPS[action](frame)


def holding_hand(action: str) -> Point:
    """Return where the hand of somebody is who holds a thing while they act."""
    neck = POSES[action].neck
    return neck[0] + 0.34, neck[1] - 0.06


def draw_sleep(frame: Frame, above: Point) -> None:
    """Draw the letters that mean sleep, growing from ``above``."""
    for step, size in ((0.0, 0.06), (0.11, 0.09)):
        x, y = above[0] + step, above[1] + step
        corners = [(x, y + size), (x + size, y + size), (x, y), (x + size, y)]
        frame.line(corners, 0.022, DARK)


def _draw_garment(frame: Frame, pose: Pose, garment: str, colour: Colour) -> None:
    """Draw a body from the shoulders to the hem, across the line from neck to hip."""
    past_hip, hem_width = _HEMS[garment]
    (x, y), (hip_x, hip_y) = pose.neck, pose.hip
    length = math.hypot(hip_x - x, hip_y - y)
    along = ((hip_x - x) / length, (hip_y - y) / length)
    across = (-along[1], along[0])
    hem = (hip_x + along[0] * past_hip, max(hip_y + along[1] * past_hip, 0.05))

    def beside(point: Point, offset: float) -> Point:
        return point[0] + across[0] * offset, point[1] + across[1] * offset

    corners = [(pose.neck, -0.11), (pose.neck, 0.11), (hem, hem_width), (hem, -hem_width)]
    frame.polygon([beside(*corner) for corner in corners], colour)
    if garment == "coat":
        frame.line([pose.neck, hem], 0.018, DARK)
        for share in (0.3, 0.5, 0.7):
            frame.disc(_between(pose.neck, hem, share), 0.018, PAGE)


def _draw_head(frame: Frame, pose: Pose, noun: str, *, asleep: bool, hair: Colour) -> None:
    lean = (pose.neck[0] - pose.hip[0], pose.neck[1] - pose.hip[1])
    length = math.hypot(*lean)
    x, y = (n + 1.15 * _HEAD * part / length for n, part in zip(pose.neck, lean, strict=True))
    if noun in _LONG_HAIRED:
        frame.oval((x - 0.02, y - 0.03), _HEAD * 1.25, _HEAD * 1.5, hair)
    frame.disc((x, y), _HEAD, SKIN)
    frame.polygon(ellipse((x, y + 0.01), _HEAD * 1.05, _HEAD * 1.1, 20, 190), hair)
    if noun == "man":
        frame.polygon(ellipse((x + 0.02, y - 0.035), _HEAD * 0.7, _HEAD * 0.75, 180, 360), hair)
    if noun == "girl":
        for side in (-1, 1):
            frame.disc((x + side * 0.1, y + 0.09), 0.04, PINK)
    if asleep:
        frame.line([(x - 0.02, y), (x + 0.06, y)], 0.014, DARK)
        draw_sleep(frame, (x - 0.05, y + 0.14))
    else:
        frame.disc((x + 0.045, y + 0.01), 0.013, DARK)


def _draw_apple(frame: Frame) -> None:
    frame.disc((0.13, 0.85), 0.05, (200, 40, 40))


def _draw_book(frame: Frame) -> None:
    frame.polygon([(0.14, 0.56), (0.27, 0.6), (0.27, 0.78), (0.14, 0.74)], PAGE)
    frame.polygon([(0.27, 0.6), (0.38, 0.56), (0.38, 0.74), (0.27, 0.78)], PAGE)


def _between(start: Point, end: Point, share: float) -> Point:
    return start[0] + share * (end[0] - start[0]), start[1] + share * (end[1] - start[1])


_PROPS: dict[str, Callable[[Frame], None]] = {"eat": _draw_apple, "read": _draw_book}
