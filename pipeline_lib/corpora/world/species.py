"""Animals with four legs: their measures, and what tells one from another."""

from collections.abc import Callable
from dataclasses import dataclass

from pipeline_lib.corpora.world.canvas import Colour, Frame, Point, darker, ellipse, mixed
from pipeline_lib.corpora.world.palette import DARK, PAGE, PINK


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
        _ear(
            frame,
            (x + side * 0.75 * r, y + 1.6 * r),
            (x + side * 0.5 * r, y + 0.6 * r),
            0.4 * r,
            colour,
        )
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
    tail = [
        (hip[0] - 0.12, hip[1] + 0.05),
        (hip[0] - 0.24, hip[1] - 0.05),
        (hip[0] - 0.26, hip[1] - 0.35),
    ]
    frame.line(tail, 0.09, hair)
    frame.line([(x - 0.9 * r, y + 0.9 * r), (x - 2.4 * r, y - 2.2 * r)], 0.1, hair)
    _face(frame, animal, head, colour)
    _ear(frame, (x - 0.2 * r, y + 1.8 * r), (x - 0.2 * r, y + 0.7 * r), 0.3 * r, colour)


def _cow(frame: Frame, animal: Quadruped, hip: Point, head: Point, colour: Colour) -> None:
    (x, y), r = head, animal.head
    patch = mixed(colour, PAGE, 0.8) if sum(colour) < 500 else DARK
    for share, size in ((0.25, 0.1), (0.65, 0.12)):
        frame.oval(
            (hip[0] + share * 2 * animal.half_length, hip[1] + 0.03), size, size * 0.75, patch
        )
    frame.line(
        [(hip[0] - 0.2, hip[1] + 0.08), (hip[0] - 0.26, hip[1] - 0.25)], 0.03, darker(colour)
    )
    for side in (-1, 1):
        frame.line(
            [(x + side * 0.5 * r, y + 0.7 * r), (x + side * 1.1 * r, y + 1.6 * r)], 0.045, PAGE
        )
    _face(frame, animal, head, colour)
    frame.oval((x + r + animal.muzzle * 0.5, y - 0.35 * r), 0.4 * r, 0.42 * r, PINK)


def _sheep(frame: Frame, animal: Quadruped, hip: Point, head: Point, colour: Colour) -> None:
    for step in range(6):
        x = hip[0] + step / 5 * 2 * animal.half_length
        for side in (-1, 1):
            frame.disc((x, hip[1] + side * animal.body * 0.42), 0.12, colour)
    frame.oval(
        (hip[0] + animal.half_length, hip[1]), animal.half_length, animal.body * 0.45, colour
    )
    face = (70, 62, 60) if sum(colour) > 300 else (200, 190, 180)
    frame.oval((head[0] - animal.head, head[1]), 0.5 * animal.head, 0.25 * animal.head, face)
    _face(frame, animal, head, face)
    frame.disc((head[0] - 0.3 * animal.head, head[1] + 0.8 * animal.head), 0.08, colour)


def _pig(frame: Frame, animal: Quadruped, hip: Point, head: Point, colour: Colour) -> None:
    (x, y), r = head, animal.head
    curl = ellipse((hip[0] - 0.3, hip[1] + 0.1), 0.06, 0.06, 0, 300)
    frame.line(curl, 0.03, PINK)
    _ear(
        frame, (x + 0.1 * r, y + 1.4 * r), (x - 0.3 * r, y + 0.7 * r), 0.45 * r, darker(colour, 0.2)
    )
    _face(frame, animal, head, colour)
    frame.oval((x + r + animal.muzzle, y - 0.2 * r), 0.25 * r, 0.45 * r, PINK)


def _elephant(frame: Frame, animal: Quadruped, hip: Point, head: Point, colour: Colour) -> None:
    (x, y), r = head, animal.head
    frame.line(
        [(hip[0] - 0.26, hip[1] + 0.05), (hip[0] - 0.32, hip[1] - 0.22)], 0.035, darker(colour)
    )
    frame.disc(head, r, colour)
    trunk = [
        (x + 0.7 * r, y - 0.1 * r),
        (x + 1.35 * r, y - 0.9 * r),
        (x + 1.3 * r, max(y - 2.2 * r, 0.05)),
    ]
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
