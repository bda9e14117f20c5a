"""The surface that scenes are drawn on: shapes in two styles."""

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from PIL import Image, ImageChops, ImageDraw

Point = tuple[float, float]
Colour = tuple[int, int, int]

SMOOTHING = 2
"""Shapes are drawn this many times larger and averaged, which smooths their edges."""

_INK: Colour = (45, 40, 50)
_PAPER: Colour = (250, 246, 235)
_HATCH_SPACING = 7
_GRAIN = 4.0
_LARGEST = 1024
"""Side of the patterns of paper, in pixels; pictures are smaller."""


class Canvas:
    """A picture in the making; all lengths are pixels of the finished picture.

    Attributes:
        rng: Where strokes waver and colours vary, they do so by this generator.
    """

    def __init__(self, size: tuple[int, int], style: str, rng: random.Random):
        self.width, self.height = size
        self.rng = rng
        self.image = Image.new("RGB", (size[0] * SMOOTHING, size[1] * SMOOTHING), _PAPER)
        self.pen = ImageDraw.Draw(self.image)
        self._style = STYLES[style]

    def polygon(self, points: Sequence[Point], colour: Colour) -> None:
        """Fill a closed shape with a colour and outline it, in the canvas' style."""
        self._style.fill(self, [_enlarged(point) for point in points], colour)

    def line(self, points: Sequence[Point], thickness: float, colour: Colour) -> None:
        """Draw a line with round ends."""
        points = [_enlarged(point) for point in points]
        width = max(2, round(thickness * SMOOTHING))
        colour = self._style.stroke_colour(colour)
        self.pen.line(points, fill=colour, width=width, joint="curve")
        for x, y in (points[0], points[-1]):
            r = width / 2 - 0.5
            self.pen.ellipse((x - r, y - r, x + r, y + r), fill=colour)

    def wash(self, top: float, bottom: float, upper: Colour, lower: Colour) -> None:
        """Fill a horizontal band of the picture with a gradient; heights are from 0 to 1."""
        first, last = (round(y * self.height * SMOOTHING) for y in (top, bottom))
        steps = np.linspace(0, 1, max(last - first, 1))[:, None, None]
        band = (np.array(upper) * (1 - steps) + np.array(lower) * steps).astype(np.uint8)
        size = (self.width * SMOOTHING, len(band))
        column = Image.fromarray(band).resize(size, Image.Resampling.NEAREST)
        self.image.paste(column, (0, first))

    def finished(self) -> Image.Image:
        """Return the picture in its final size."""
        return self._style.finish(self.image.reduce(SMOOTHING), self.rng)


@dataclass(frozen=True)
class Frame:
    """A local coordinate system: y up from the ground, x from the middle, in units of ``scale``.

    Attributes:
        x: Pixel column of the middle.
        ground: Pixel row of y = 0.
        scale: Pixels per unit.
        facing: 1 to face right, -1 to face left.
    """

    canvas: Canvas
    x: float
    ground: float
    scale: float
    facing: int = 1

    def at(self, point: Point) -> Point:
        """Return the pixel position of a local point."""
        return (self.x + self.facing * point[0] * self.scale, self.ground - point[1] * self.scale)

    def polygon(self, points: Sequence[Point], colour: Colour) -> None:
        """Draw a filled shape."""
        self.canvas.polygon([self.at(point) for point in points], colour)

    def box(self, left: float, bottom: float, right: float, top: float, colour: Colour) -> None:
        """Draw a filled upright rectangle."""
        self.polygon([(left, bottom), (right, bottom), (right, top), (left, top)], colour)

    def oval(self, centre: Point, across: float, up: float, colour: Colour) -> None:
        """Draw a filled ellipse with the given horizontal and vertical radius."""
        self.polygon(ellipse(centre, across, up), colour)

    def disc(self, centre: Point, radius: float, colour: Colour) -> None:
        """Draw a filled circle."""
        self.oval(centre, radius, radius, colour)

    def line(self, points: Sequence[Point], thickness: float, colour: Colour) -> None:
        """Draw a line of the given thickness, in local units."""
        self.canvas.line([self.at(point) for point in points], thickness * self.scale, colour)


def ellipse(
    centre: Point, across: float, up: float, start: float = 0.0, stop: float = 360.0
) -> list[Point]:
    """Return points on an ellipse, or on an arc of it, counter-clockwise; angles in degrees."""
    angles = np.radians(np.linspace(start, stop, 25))
    return [(centre[0] + across * math.cos(a), centre[1] + up * math.sin(a)) for a in angles]


def mixed(colour: Colour, other: Colour, share: float) -> Colour:
    """Return ``colour`` with a share of another colour."""
    return tuple(round(a * (1 - share) + b * share) for a, b in zip(colour, other, strict=True))


def darker(colour: Colour, share: float = 0.35) -> Colour:
    """Return a darker colour."""
    return mixed(colour, (0, 0, 0), share)


def _fill_flat(canvas: Canvas, points: list[Point], colour: Colour) -> None:
    canvas.pen.polygon(points, fill=colour)
    canvas.pen.line([*points, points[0]], fill=darker(colour), width=2 * SMOOTHING)


def _fill_sketch(canvas: Canvas, points: list[Point], colour: Colour) -> None:
    canvas.pen.polygon(points, fill=mixed(colour, _PAPER, 0.3))
    _hatch(canvas.image, points, darker(colour, 0.15))
    for _ in range(2):
        wavering = [
            (x + canvas.rng.uniform(-1.5, 1.5), y + canvas.rng.uniform(-1.5, 1.5))
            for x, y in points
        ]
        canvas.pen.line([*wavering, wavering[0]], fill=_INK, width=SMOOTHING)


def _hatch(image: Image.Image, points: list[Point], colour: Colour) -> None:
    left, top = (math.floor(min(values)) for values in zip(*points, strict=True))
    right, bottom = (math.ceil(max(values)) + 1 for values in zip(*points, strict=True))
    width, height = right - left, bottom - top
    inside = Image.new("1", (width, height))
    ImageDraw.Draw(inside).polygon([(x - left, y - top) for x, y in points], fill=1)
    strokes = _hatching().crop((0, 0, width, height))
    image.paste(colour, (left, top), ImageChops.logical_and(inside, strokes))


@cache
def _hatching() -> Image.Image:
    strokes = Image.new("1", (_LARGEST * SMOOTHING, _LARGEST * SMOOTHING))
    pen = ImageDraw.Draw(strokes)
    for start in range(-strokes.height, strokes.width, _HATCH_SPACING * SMOOTHING):
        pen.line([(start, strokes.height), (start + strokes.height, 0)], fill=1, width=SMOOTHING)
    return strokes


def _finish_sketch(image: Image.Image, rng: random.Random) -> Image.Image:
    """Tint as paper and add grain, of which each picture shows another part."""
    tinted = ImageChops.multiply(image, Image.new("RGB", image.size, _PAPER))
    left, top = (rng.randrange(_LARGEST - side) for side in image.size)
    grain = _grain().crop((left, top, left + image.width, top + image.height))
    return ImageChops.add(tinted, Image.merge("RGB", [grain] * 3), offset=-128)


@cache
def _grain() -> Image.Image:
    values = np.random.default_rng(0).normal(128, _GRAIN, (_LARGEST, _LARGEST))
    return Image.fromarray(np.clip(values, 0, 255).astype(np.uint8))


@dataclass(frozen=True)
class Style:
    """How shapes are filled, which colour a bare line gets, and what is done at the end."""

    fill: Callable[[Canvas, list[Point], Colour], None]
    stroke_colour: Callable[[Colour], Colour]
    finish: Callable[[Image.Image, random.Random], Image.Image]


STYLES = {
    "flat": Style(_fill_flat, lambda colour: colour, lambda image, rng: image),
    "sketch": Style(_fill_sketch, lambda colour: mixed(colour, _PAPER, 0.25), _finish_sketch),
}


def _enlarged(point: Point) -> Point:
    return point[0] * SMOOTHING, point[1] * SMOOTHING
