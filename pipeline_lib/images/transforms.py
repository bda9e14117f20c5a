"""One decoded image to the crops that a network sees, all in 8 bits.

Resizing is Pillow's: bilinear with antialiasing.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from PIL import Image

from pipeline_lib.images.decoding import check_pixels


@dataclass(frozen=True)
class Transform:
    """A way to cut an image.

    Attributes:
        crops: Number of crops per image.
        apply: ``(image [height, width, 3], resize, crop)`` to ``uint8 [crops, crop, crop, 3]``.
        apart: The crops' features stay side by side, for a model to choose among; else they are
            averaged.
    """

    crops: int
    apply: Callable[[np.ndarray, int, int], np.ndarray]
    apart: bool = False

    @property
    def vectors(self) -> int:
        """How many vectors of the network an image has."""
        return self.crops if self.apart else 1


def center(image: np.ndarray, resize: int, crop: int) -> np.ndarray:
    """Resize the shorter side to ``resize`` and cut the centre square."""
    return _center_crop(_resize_shorter_side(image, resize), crop)[None]


def ten_crop(image: np.ndarray, resize: int, crop: int) -> np.ndarray:
    """Resize the shorter side, then cut four corners and the centre, of the image and its mirror.

    The crops of Krizhevsky et al. 2012 (section 4.1), in torchvision's order.
    """
    resized = _resize_shorter_side(image, resize)
    return np.stack([*_five_crop(resized, crop), *_five_crop(resized[:, ::-1], crop)])


def squash(image: np.ndarray, resize: int, crop: int) -> np.ndarray:
    """Resize the whole image to ``crop x crop``, whatever its shape; ``resize`` plays no part."""
    return _resize(image, crop, crop)[None]


def squash_mirror(image: np.ndarray, resize: int, crop: int) -> np.ndarray:
    """Squash the image, and its mirror image."""
    squashed = squash(image, resize, crop)
    return np.concatenate([squashed, squashed[:, :, ::-1]])


TRANSFORMS = {
    "center": Transform(1, center),
    "ten_crop": Transform(10, ten_crop),
    "squash": Transform(1, squash),
    "squash_mirror": Transform(2, squash_mirror, apart=True),
}

SQUASHING = ("squash", "squash_mirror")
"""Those in which ``resize`` plays no part."""


def _five_crop(image: np.ndarray, crop: int) -> list[np.ndarray]:
    return [
        image[:crop, :crop],
        image[:crop, -crop:],
        image[-crop:, :crop],
        image[-crop:, -crop:],
        _center_crop(image, crop),
    ]


def _center_crop(image: np.ndarray, crop: int) -> np.ndarray:
    top, left = (round((side - crop) / 2) for side in image.shape[:2])
    return image[top : top + crop, left : left + crop]


def _resize_shorter_side(image: np.ndarray, size: int) -> np.ndarray:
    height, width = image.shape[:2]
    shorter = min(height, width)
    return _resize(image, size * height // shorter, size * width // shorter)


def _resize(image: np.ndarray, height: int, width: int) -> np.ndarray:
    check_pixels(width, height)
    # Pillow's integers are the same on every CPU; torchvision's differ by a level without AVX2.
    return np.asarray(Image.fromarray(image).resize((width, height), Image.Resampling.BILINEAR))
