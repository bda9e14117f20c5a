"""One decoded image to the crops that a network sees, all in 8 bits.

Resizing is Pillow's: bilinear with antialiasing.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from PIL import Image

from pipeline_lib.images.backbones import BACKBONES, LAST
from pipeline_lib.images.decoding import MAX_PIXELS, ImageError, check_pixels


@dataclass(frozen=True)
class Transform:
    """A way to cut an image.

    Attributes:
        crops: Number of crops per image that the network sees.
        rule: How a reader of a model card cuts a photo, of ``{resize}`` and ``{crop}`` pixels.
        apply: ``(image [height, width, 3], resize, crop)`` to ``uint8 [crops, side, side, 3]``.
        apart: The crops' features stay side by side, for a model to choose among; else they are
            averaged.
        dense: The network sees squares of ``resize`` pixels, and crops of ``crop`` pixels are
            windows of its last feature map.
        squashed: The whole image is resized to the crop; ``resize`` plays no part.
    """

    crops: int
    rule: str
    apply: Callable[[np.ndarray, int, int], np.ndarray]
    apart: bool = False
    dense: bool = False
    squashed: bool = False

    @property
    def vectors(self) -> int:
        """How many vectors of the network an image has."""
        return self.crops if self.apart else 1

    def side(self, resize: int, crop: int) -> int:
        """Return the height and width in pixels of what the network sees."""
        return resize if self.dense else crop

    def resized(self, resize: int, crop: int) -> int:
        """Return the shorter side in pixels of the image that is cut."""
        return crop if self.squashed else resize


def center(image: np.ndarray, resize: int, crop: int) -> np.ndarray:
    """Resize the shorter side to ``resize`` and cut the centre square."""
    return _center_crop(_resize_shorter_side(image, resize), crop)[None]


def ten_crop(image: np.ndarray, resize: int, crop: int) -> np.ndarray:
    """Resize the shorter side, then cut four corners and the centre, of the image and its mirror.

    The crops of Krizhevsky et al. 2012 (section 4.1), in torchvision's order.
    """
    resized = _resize_shorter_side(image, resize)
    return np.stack([*_five_crop(resized, crop), *_five_crop(resized[:, ::-1], crop)])


def dense_ten_crop(image: np.ndarray, resize: int, crop: int) -> np.ndarray:
    """Resize the shorter side, then cut the square at one end, and at the other end mirrored.

    Of a square image both are the whole image; ``crop`` plays no part here, but in the network.
    Each of the ten crops then lies in one of the two squares, or nearly so: the network sees a
    photo and its mirror image nearly alike, so the corners of a wide one need each end but once.
    """
    resized = _resize_shorter_side(image, resize)
    return np.stack([resized[:resize, :resize], resized[-resize:, -resize:][:, ::-1]])


def squash(image: np.ndarray, resize: int, crop: int) -> np.ndarray:
    """Resize the whole image to ``crop x crop``, whatever its shape; ``resize`` plays no part."""
    return _resize(image, crop, crop)[None]


def squash_mirror(image: np.ndarray, resize: int, crop: int) -> np.ndarray:
    """Squash the image, and its mirror image."""
    squashed = squash(image, resize, crop)
    return np.concatenate([squashed, squashed[:, :, ::-1]])


_SHORTER = (
    "Its shorter side is resized to {resize} pixels and the longer one in proportion, rounded down."
)
_SQUASHED = "It is resized to {crop} by {crop} pixels, whatever its shape."

TRANSFORMS = {
    "center": Transform(
        1,
        f"{_SHORTER} The square of {{crop}} pixels in its middle is cut, its offsets rounded half "
        "to even.",
        center,
    ),
    "ten_crop": Transform(
        10,
        f"{_SHORTER} Squares of {{crop}} pixels are cut: top left, top right, bottom left, bottom "
        "right, in the middle (its offsets rounded half to even); then the same of its mirror "
        "image.",
        ten_crop,
    ),
    "dense_ten_crop": Transform(
        2,
        f"{_SHORTER} The square at its left or upper end is cut, then the one at its right or "
        "lower end, mirrored.",
        dense_ten_crop,
        dense=True,
    ),
    "squash": Transform(1, _SQUASHED, squash, squashed=True),
    "squash_mirror": Transform(
        2,
        f"{_SQUASHED} Its mirror image follows it.",
        squash_mirror,
        apart=True,
        squashed=True,
    ),
}


class Cutting(Protocol):
    """What :func:`crop_problems` reads of an extractor's settings."""

    backbone: str
    transform: str
    resize: int
    crop: int
    layers: str


def crop_problems(settings: Cutting) -> Iterator[str]:
    """Yield which settings contradict each other; each sentence begins with one."""
    transform = TRANSFORMS.get(settings.transform)
    squashed = transform is not None and transform.squashed
    if settings.resize < settings.crop and not squashed:
        yield f"resize: expected at least crop ({settings.crop}), found {settings.resize}"
    backbone = BACKBONES.get(settings.backbone)
    if backbone and settings.crop < backbone.smallest:
        yield (
            f"crop: expected at least {backbone.smallest}, which {settings.backbone} halves until "
            f"one pixel is left, found {settings.crop}"
        )
    if transform and transform.dense:
        yield from _dense_problems(settings)


def _dense_problems(settings: Cutting) -> Iterator[str]:
    with_map = [name for name, backbone in BACKBONES.items() if backbone.feature_map]
    if settings.backbone in BACKBONES and settings.backbone not in with_map:
        yield (
            f"transform: expected a backbone that averages over its last feature map "
            f"({', '.join(with_map)}), found {settings.backbone}, which has none for "
            f"{settings.transform}. Take another backbone, or ten_crop"
        )
    if settings.layers != LAST:
        yield (
            f"layers: expected last, found {settings.layers}: {settings.transform} cuts windows "
            "of the last map alone. Take another transform"
        )


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
    shorter, longer = sorted((height, width))
    if size * (size * longer // shorter) > MAX_PIXELS:
        raise ImageError(
            f"expected the longer side at most {MAX_PIXELS // size**2} times the shorter, found "
            f"{width} x {height} pixels: cut the photo, or leave its captions out"
        )
    return _resize(image, size * height // shorter, size * width // shorter)


def _resize(image: np.ndarray, height: int, width: int) -> np.ndarray:
    check_pixels(width, height)
    # Pillow's integers are the same on every CPU; torchvision's differ by a level without AVX2.
    return np.asarray(Image.fromarray(image).resize((width, height), Image.Resampling.BILINEAR))
