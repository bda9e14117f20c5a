"""The colours of the world as they are painted."""

import random

from pipeline_lib.corpora.world.canvas import Colour

PAINTS: dict[str, Colour] = {
    "red": (222, 32, 38),
    "blue": (28, 84, 220),
    "green": (26, 158, 62),
    "yellow": (252, 214, 22),
    "purple": (140, 44, 172),
    "black": (34, 34, 38),
    "white": (246, 246, 246),
    "brown": (134, 80, 36),
    "grey": (134, 136, 142),
}
SKIN: Colour = (240, 200, 165)
TROUSERS: Colour = (52, 62, 96)
SHOE: Colour = (60, 45, 40)
HAIRS: tuple[Colour, ...] = ((60, 40, 25), (30, 26, 26), (214, 170, 80), (150, 75, 30))
WOOD: Colour = (120, 76, 40)
METAL: Colour = (120, 124, 130)
GLASS: Colour = (176, 216, 238)
LEAF: Colour = (44, 130, 54)
PINK: Colour = (240, 150, 160)
BEAK: Colour = (244, 150, 30)
PAGE: Colour = (250, 250, 244)
DARK: Colour = (30, 28, 30)

_VARIATION = 12


def paint(name: str, rng: random.Random) -> Colour:
    """Return a shade of a named colour; no two objects have quite the same."""
    shade = (c + rng.randint(-_VARIATION, _VARIATION) for c in PAINTS[name])
    return tuple(min(255, max(0, c)) for c in shade)
