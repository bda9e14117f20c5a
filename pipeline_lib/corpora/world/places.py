"""Drawings of places: what is behind everything else."""

import random
from collections.abc import Callable

from pipeline_lib.corpora.world.canvas import Canvas, Colour, Frame, darker
from pipeline_lib.corpora.world.palette import GLASS, METAL, PAGE, PAINTS, WOOD

HORIZON = 0.5
"""Where the ground begins, as a share of the picture's height from the top."""


def _beach(canvas: Canvas, frame: Frame, rng: random.Random) -> None:
    canvas.wash(0, 0.36, (120, 200, 250), (200, 232, 250))
    canvas.wash(0.36, HORIZON + 0.06, (20, 110, 190), (70, 190, 210))
    canvas.wash(HORIZON + 0.06, 1, (248, 226, 160), (232, 200, 124))
    frame.disc((rng.uniform(-0.8, 0.8), 0.42), 0.07, PAINTS["yellow"])
    for height in (0.1, 0.05, -0.05):
        left = rng.uniform(-1.0, 0.4)
        frame.line([(left, height), (left + 0.5, height)], 0.012, PAGE)


def _forest(canvas: Canvas, frame: Frame, rng: random.Random) -> None:
    canvas.wash(0, HORIZON + 0.05, (22, 62, 34), (46, 96, 48))
    canvas.wash(HORIZON + 0.05, 1, (70, 84, 40), (48, 60, 30))
    for step in range(9):
        x = -1.0 + step * 0.25 + rng.uniform(-0.06, 0.06)
        frame.box(x - 0.03, -0.04, x + 0.03, 0.55, (78, 54, 36))
        frame.polygon([(x - 0.2, 0.12), (x + 0.2, 0.12), (x, 0.5)], (24, 84, 40))


def _street(canvas: Canvas, frame: Frame, rng: random.Random) -> None:
    canvas.wash(0, HORIZON, (176, 190, 204), (206, 212, 216))
    canvas.wash(HORIZON, 1, (92, 94, 100), (66, 68, 74))
    for step in range(6):
        left, top = -1.05 + step * 0.36, rng.uniform(0.26, 0.48)
        frame.box(left, 0.03, left + 0.34, top, rng.choice(_FACADES))
        for window in range(3):
            x = left + 0.04 + window * 0.1
            frame.box(x, top - 0.12, x + 0.06, top - 0.04, GLASS)
    frame.box(-1.5, -0.03, 1.5, 0.03, (186, 184, 178))
    for step in range(5):
        frame.box(-1.0 + step * 0.45, -0.33, -0.78 + step * 0.45, -0.29, PAGE)


_FACADES: tuple[Colour, ...] = ((176, 112, 92), (200, 180, 150), (130, 132, 144), (156, 140, 120))


def _meadow(canvas: Canvas, frame: Frame, rng: random.Random) -> None:
    canvas.wash(0, HORIZON, (110, 190, 250), (210, 236, 252))
    frame.oval((-0.5, -0.05), 0.9, 0.2, (110, 190, 80))
    frame.oval((0.6, -0.05), 0.9, 0.15, (130, 200, 90))
    canvas.wash(HORIZON + 0.05, 1, (136, 208, 84), (92, 176, 60))
    for _ in range(2):
        x, y = rng.uniform(-0.7, 0.7), rng.uniform(0.3, 0.42)
        for offset in (-0.08, 0.0, 0.08):
            frame.oval((x + offset, y), 0.1, 0.05, PAGE)
    for _ in range(24):
        x, y = rng.uniform(-1, 1), rng.uniform(-0.5, -0.1)
        frame.line([(x - 0.01, y), (x, y + 0.05), (x + 0.015, y)], 0.008, (50, 130, 40))


def _kitchen(canvas: Canvas, frame: Frame, rng: random.Random) -> None:
    canvas.wash(0, HORIZON + 0.08, (190, 226, 220), (190, 226, 220))
    for step in range(16):
        x = -1.0 + step * 0.13
        frame.line([(x, -0.08), (x, 0.5)], 0.006, PAGE)
    for height in (0.0, 0.12, 0.24, 0.36):
        frame.line([(-1.2, height), (1.2, height)], 0.006, PAGE)
    _chequered_floor(canvas, frame)
    shift = rng.uniform(-0.1, 0.1)
    frame.box(-1.2, -0.1, 1.2, 0.12, (236, 222, 196))
    frame.box(-1.2, 0.12, 1.2, 0.16, (150, 104, 70))
    for left in (-0.95, -0.6, 0.35, 0.7):
        frame.box(left + shift, -0.07, left + shift + 0.3, 0.09, (222, 202, 170))
    frame.box(-0.2 + shift, -0.1, 0.2 + shift, 0.15, METAL)
    frame.box(-0.14 + shift, -0.06, 0.14 + shift, 0.06, (50, 54, 60))
    frame.box(-0.9 + shift, 0.3, -0.4 + shift, 0.5, (236, 222, 196))


def _chequered_floor(canvas: Canvas, frame: Frame) -> None:
    canvas.wash(HORIZON + 0.08, 1, (238, 234, 226), (226, 220, 208))
    for row, height in enumerate((-0.2, -0.32, -0.44)):
        for column in range(6):
            x = -1.1 + column * 0.4 + (row % 2) * 0.2
            frame.box(x, height, x + 0.2, height + 0.12, (150, 170, 176))


def _snow(canvas: Canvas, frame: Frame, rng: random.Random) -> None:
    canvas.wash(0, HORIZON, (170, 190, 214), (222, 232, 242))
    canvas.wash(HORIZON, 1, (252, 254, 255), (226, 238, 250))
    for _ in range(5):
        x, top = rng.uniform(-0.9, 0.9), rng.uniform(0.2, 0.4)
        frame.polygon([(x - 0.12, 0), (x + 0.12, 0), (x, top)], (60, 110, 100))
        frame.polygon([(x - 0.06, top * 0.55), (x + 0.06, top * 0.55), (x, top)], PAGE)
    for _ in range(40):
        frame.disc((rng.uniform(-1, 1), rng.uniform(-0.5, 0.5)), 0.012, PAGE)


def _desert(canvas: Canvas, frame: Frame, rng: random.Random) -> None:
    canvas.wash(0, HORIZON, (250, 176, 90), (254, 226, 160))
    frame.disc((rng.uniform(-0.7, 0.7), 0.3), 0.1, (255, 244, 200))
    frame.polygon([(-1.2, 0), (-0.5, 0.2), (0.3, 0)], (222, 146, 66))
    frame.polygon([(-0.1, 0), (0.7, 0.16), (1.3, 0)], (206, 130, 58))
    canvas.wash(HORIZON, 1, (232, 160, 80), (204, 122, 54))
    for _ in range(3):
        x, cactus = rng.uniform(-0.9, 0.9), (60, 140, 80)
        frame.line([(x, 0), (x, 0.22)], 0.04, cactus)
        frame.line([(x, 0.08), (x + 0.07, 0.1), (x + 0.07, 0.17)], 0.03, cactus)


def _mountains(canvas: Canvas, frame: Frame, rng: random.Random) -> None:
    canvas.wash(0, HORIZON, (70, 130, 210), (190, 216, 240))
    for x in (-0.8, 0.1, 0.85, -0.35, 0.5):
        top = rng.uniform(0.3, 0.46)
        frame.polygon([(x - 0.5, 0), (x + 0.5, 0), (x, top)], (104, 104, 124))
        frame.polygon(
            [(x - 0.16, top * 0.68), (x, top * 0.6), (x + 0.16, top * 0.68), (x, top)], PAGE
        )
    canvas.wash(HORIZON, 1, (150, 146, 132), (120, 116, 102))
    for _ in range(14):
        centre = (rng.uniform(-1, 1), rng.uniform(-0.48, -0.05))
        frame.oval(centre, rng.uniform(0.02, 0.05), 0.02, (104, 100, 96))


def _lake(canvas: Canvas, frame: Frame, rng: random.Random) -> None:
    canvas.wash(0, 0.24, (190, 220, 240), (220, 236, 244))
    canvas.wash(0.24, 0.3, (60, 120, 70), (70, 130, 80))
    canvas.wash(0.3, 0.72, (40, 140, 200), (20, 90, 160))
    canvas.wash(0.72, 1, (120, 160, 70), (96, 136, 56))
    for _ in range(9):
        x, y = rng.uniform(-1, 0.8), rng.uniform(-0.15, 0.15)
        frame.line([(x, y), (x + 0.2, y)], 0.01, (150, 210, 236))
    for _ in range(9):
        x = rng.uniform(-1, 1)
        frame.line([(x, -0.26), (x + 0.01, -0.06)], 0.012, (70, 110, 40))
        frame.oval((x + 0.01, -0.06), 0.013, 0.04, WOOD)


def _bedroom(canvas: Canvas, frame: Frame, rng: random.Random) -> None:
    canvas.wash(0, HORIZON + 0.08, (242, 200, 210), (242, 200, 210))
    for step in range(9):
        x = -1.0 + step * 0.25
        frame.box(x, -0.08, x + 0.08, 0.5, (232, 176, 190))
    canvas.wash(HORIZON + 0.08, 1, (190, 140, 92), (160, 110, 66))
    side = rng.choice((-1, 1))
    frame.box(side * 0.3 - 0.18, 0.12, side * 0.3 + 0.18, 0.44, PAGE)
    frame.box(side * 0.3 - 0.15, 0.15, side * 0.3 + 0.15, 0.41, GLASS)
    frame.box(side * -0.45 - 0.42, -0.1, side * -0.45 - 0.36, 0.28, WOOD)
    frame.box(side * -0.45 - 0.4, -0.16, side * -0.45 + 0.4, 0.06, (120, 130, 200))
    frame.oval((side * -0.45 - 0.22, 0.09), 0.14, 0.06, PAGE)
    for height in (-0.2, -0.32, -0.44):
        frame.line([(-1.2, height), (1.2, height)], 0.006, darker((160, 110, 66)))


BACKDROPS: dict[str, Callable[[Canvas, Frame, random.Random], None]] = {
    "beach": _beach,
    "forest": _forest,
    "street": _street,
    "meadow": _meadow,
    "kitchen": _kitchen,
    "snow": _snow,
    "desert": _desert,
    "mountains": _mountains,
    "lake": _lake,
    "bedroom": _bedroom,
}


def draw_place(canvas: Canvas, place: str, rng: random.Random) -> None:
    """Draw the backdrop; its frame has the horizon at y = 0 and the picture's height as unit."""
    width = max(canvas.height, canvas.width / 2)
    frame = Frame(canvas, canvas.width / 2, HORIZON * canvas.height, width)
    BACKDROPS[place](canvas, frame, rng)
