"""Drawings of things, each a function of a frame whose unit is the height of the thing."""

from collections.abc import Callable
from dataclasses import dataclass

from pipeline_lib.corpora.world.canvas import Colour, Frame, darker, ellipse, mixed
from pipeline_lib.corpora.world.palette import (
    BEAK,
    DARK,
    GLASS,
    LEAF,
    METAL,
    PAGE,
    PAINTS,
    WOOD,
)


def _ball(frame: Frame, colour: Colour) -> None:
    frame.disc((0, 0.5), 0.5, colour)
    frame.polygon(ellipse((0, 0.5), 0.5, 0.14), PAGE)
    frame.disc((-0.18, 0.76), 0.09, PAGE)


def _wheel(frame: Frame, x: float, radius: float) -> None:
    frame.disc((x, radius), radius, DARK)
    frame.disc((x, radius), radius * 0.5, METAL)


def _car(frame: Frame, colour: Colour) -> None:
    frame.polygon([(-0.62, 0.5), (-0.38, 0.98), (0.3, 0.98), (0.62, 0.5)], colour)
    frame.polygon([(-0.48, 0.54), (-0.3, 0.88), (-0.06, 0.88), (-0.06, 0.54)], GLASS)
    frame.polygon([(0.02, 0.54), (0.02, 0.88), (0.24, 0.88), (0.46, 0.54)], GLASS)
    frame.polygon(
        [(-1.1, 0.16), (-1.1, 0.5), (-0.95, 0.58), (0.95, 0.54), (1.12, 0.4), (1.12, 0.16)], colour
    )
    frame.disc((1.02, 0.4), 0.07, PAINTS["yellow"])
    for x in (-0.62, 0.64):
        _wheel(frame, x, 0.22)


def _bus(frame: Frame, colour: Colour) -> None:
    frame.box(-1.1, 0.14, 1.1, 1, colour)
    for x in (-1.0, -0.58, -0.16, 0.26):
        frame.box(x, 0.54, x + 0.34, 0.88, GLASS)
    frame.box(0.7, 0.2, 1.0, 0.88, GLASS)
    frame.box(-1.1, 0.38, 0.66, 0.44, PAGE)
    for x in (-0.66, 0.5):
        _wheel(frame, x, 0.17)


def _house(frame: Frame, colour: Colour) -> None:
    frame.box(0.22, 0.7, 0.36, 0.98, (150, 70, 50))
    frame.box(-0.5, 0, 0.5, 0.6, colour)
    frame.polygon([(-0.62, 0.58), (0.62, 0.58), (0, 1)], (112, 62, 50))
    frame.box(-0.1, 0, 0.12, 0.36, WOOD)
    for x in (-0.38, 0.22):
        frame.box(x, 0.24, x + 0.18, 0.44, GLASS)


def _boat(frame: Frame, colour: Colour) -> None:
    frame.line([(0, 0.3), (0, 1)], 0.04, WOOD)
    frame.polygon([(0.04, 0.42), (0.04, 0.98), (0.5, 0.42)], PAGE)
    frame.polygon([(-0.04, 0.42), (-0.04, 0.9), (-0.4, 0.42)], PAGE)
    frame.polygon([(-0.8, 0.34), (0.85, 0.34), (0.55, 0), (-0.5, 0)], colour)


def _bicycle(frame: Frame, colour: Colour) -> None:
    for x in (-0.5, 0.5):
        frame.line(ellipse((x, 0.32), 0.3, 0.3), 0.06, DARK)
    frame.line([(-0.5, 0.32), (-0.2, 0.7), (0.38, 0.72), (0.0, 0.3), (-0.5, 0.32)], 0.075, colour)
    frame.line([(-0.26, 0.84), (-0.2, 0.7), (0.0, 0.3)], 0.075, colour)
    frame.line([(0.5, 0.32), (0.34, 0.92), (0.52, 0.98)], 0.075, colour)
    frame.oval((-0.28, 0.86), 0.15, 0.05, DARK)


def _umbrella(frame: Frame, colour: Colour) -> None:
    frame.line([(0, 0.03), (0, 0.8)], 0.04, WOOD)
    for left, shade in ((-0.62, 0.0), (-0.31, 0.2), (0.0, 0.0), (0.31, 0.2)):
        rim = [(left, 0.62), (left + 0.31, 0.62)]
        crown = [
            (x * 0.62, 0.62 + 0.36 * (1 - (x / 0.62) ** 2) ** 0.5) for x in (left + 0.31, left)
        ]
        top = [(left + 0.31, crown[0][1]), (left, crown[1][1])]
        frame.polygon([*rim, *top], darker(colour, shade))
    frame.disc((0, 0.99), 0.02, WOOD)


def _table(frame: Frame, colour: Colour) -> None:
    for x in (-0.7, 0.7):
        frame.box(x - 0.06, 0, x + 0.06, 0.84, darker(colour, 0.2))
    frame.box(-0.9, 0.84, 0.9, 1, colour)


def _chair(frame: Frame, colour: Colour) -> None:
    for x in (-0.26, 0.26):
        frame.box(x - 0.04, 0, x + 0.04, 0.46, darker(colour, 0.2))
    frame.box(-0.32, 0.5, -0.22, 1, colour)
    frame.box(-0.32, 0.42, 0.34, 0.54, colour)


def _bench(frame: Frame, colour: Colour) -> None:
    for x in (-0.9, 0.9):
        frame.box(x - 0.06, 0, x + 0.06, 1, METAL)
    for bottom in (0.42, 0.66, 0.84):
        frame.box(-1.1, bottom, 1.1, bottom + 0.13, colour)


def _tent(frame: Frame, colour: Colour) -> None:
    frame.polygon([(-0.85, 0), (0.85, 0), (0, 1)], colour)
    frame.polygon([(-0.22, 0), (0.22, 0), (0, 0.72)], darker(colour, 0.6))
    frame.line([(-0.85, 0), (-1, 0.02)], 0.03, WOOD)


def _balloon(frame: Frame, colour: Colour) -> None:
    frame.line([(0, 0.42), (0.03, 0.2), (0, 0.0)], 0.02, DARK)
    frame.oval((0, 0.72), 0.25, 0.29, colour)
    frame.polygon([(-0.05, 0.38), (0.05, 0.38), (0, 0.45)], colour)
    frame.oval((-0.09, 0.82), 0.05, 0.08, mixed(colour, PAGE, 0.7))


def _box(frame: Frame, colour: Colour) -> None:
    frame.box(-0.6, 0, 0.6, 1, colour)
    frame.box(-0.6, 0.78, 0.6, 1, darker(colour, 0.2))
    frame.box(-0.09, 0, 0.09, 1, mixed(colour, PAGE, 0.5))


def _hat(frame: Frame, colour: Colour) -> None:
    frame.polygon([(-0.5, 0.2), (-0.42, 0.94), (0.0, 0.84), (0.42, 0.94), (0.5, 0.2)], colour)
    frame.box(-0.5, 0.2, 0.5, 0.4, darker(colour, 0.6))
    frame.oval((0, 0.16), 1.0, 0.16, colour)


def _guitar(frame: Frame, colour: Colour) -> None:
    frame.line([(0, 0.4), (0, 0.92)], 0.07, WOOD)
    frame.box(-0.07, 0.9, 0.07, 1, DARK)
    frame.disc((0, 0.22), 0.22, colour)
    frame.disc((0, 0.47), 0.16, colour)
    frame.disc((0, 0.34), 0.08, DARK)
    frame.line([(0, 0.14), (0, 0.92)], 0.015, PAGE)


def _tree(frame: Frame, colour: Colour) -> None:
    frame.box(-0.07, 0, 0.07, 0.55, WOOD)
    for centre, radius in (((-0.22, 0.6), 0.2), ((0.22, 0.6), 0.2), ((0, 0.76), 0.24)):
        frame.disc(centre, radius, colour)


def _flower(frame: Frame, colour: Colour) -> None:
    frame.line([(0, 0), (0, 0.6)], 0.06, LEAF)
    frame.polygon([(0, 0.15), (0.3, 0.4), (0.1, 0.12)], LEAF)
    frame.polygon([(0, 0.1), (-0.3, 0.35), (-0.1, 0.08)], LEAF)
    for x, y in ellipse((0, 0.72), 0.19, 0.19)[::4]:
        frame.disc((x, y), 0.13, colour)
    frame.disc((0, 0.72), 0.11, BEAK)


@dataclass(frozen=True)
class Drawing:
    """How a thing is drawn.

    Attributes:
        height: Beside a grown person of height 1.
        width: In units of its own height.
        surface: Height of what one can sit or stand on, in units of its own height.
    """

    draw: Callable[[Frame, Colour], None]
    height: float
    width: float
    surface: float = 1.0


DRAWINGS = {
    "ball": Drawing(_ball, 0.4, 1.0),
    "car": Drawing(_car, 0.72, 2.25, surface=0.96),
    "bus": Drawing(_bus, 1.05, 2.2),
    "house": Drawing(_house, 1.4, 1.25),
    "boat": Drawing(_boat, 1.1, 1.65, surface=0.3),
    "bicycle": Drawing(_bicycle, 0.72, 1.65),
    "umbrella": Drawing(_umbrella, 0.95, 1.25),
    "table": Drawing(_table, 0.6, 1.85),
    "chair": Drawing(_chair, 0.75, 0.7, surface=0.54),
    "bench": Drawing(_bench, 0.55, 2.2, surface=0.55),
    "tent": Drawing(_tent, 0.95, 1.9),
    "balloon": Drawing(_balloon, 0.85, 0.55),
    "box": Drawing(_box, 0.5, 1.2),
    "hat": Drawing(_hat, 0.4, 2.0),
    "guitar": Drawing(_guitar, 0.85, 0.48),
    "tree": Drawing(_tree, 1.55, 0.9),
    "flower": Drawing(_flower, 0.6, 0.65),
}
