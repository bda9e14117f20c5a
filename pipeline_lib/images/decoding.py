"""One image file to 8-bit RGB pixels, or an error that says what is wrong with it.

Formats are recognised by content, never by file extension. Pillow decodes all of them: it raises
on the truncated and hostile files that crash faster decoders. Of photos of web size decoding is a
small share of extraction; of those of a camera it may be the larger one.
"""

import errno
import io
import warnings
from pathlib import Path
from typing import BinaryIO

import numpy as np
from PIL import ExifTags, Image, PngImagePlugin, UnidentifiedImageError

from pipeline_lib.contract.problems import ContractError

FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF", "PPM")
"""Formats that are read; others that Pillow knows (EPS, for one) can start external programs."""

MAX_PIXELS = 89_478_485
"""Largest image in pixels, decoded or resized: 256 MiB as RGB, and where Pillow itself warns."""

# Of a PNG it limits colour profiles, too, and those of scanners are larger.
PngImagePlugin.MAX_TEXT_CHUNK = 16 * 2**20

# It is refused in our own words.
warnings.filterwarnings("ignore", category=Image.DecompressionBombWarning)

_AT_MOST, _SCALE = f"expected at most {MAX_PIXELS} pixels", "scale the image down"

MIN_SIDE = 2
"""Pixels: what is smaller stands on pages to count visits, or where a photo was not found."""

_UPRIGHT = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
"""What turns an image of each EXIF orientation, as in Pillow's exif_transpose."""


_WHITE_IS_ZERO = 0
"""TIFF's name for greyscale whose level 0 is white."""


class ImageError(ContractError):
    """One image cannot be used; the message is the reason, without the file's name."""


def decode(photo: Path | BinaryIO, least: int | None = None) -> np.ndarray:
    """Return an image as it is meant to be seen: upright, opaque, 8-bit RGB.

    The EXIF orientation is applied, transparent pixels are laid over white, 16-bit greyscale keeps
    its upper 8 bits, and of several frames the first counts. Colour profiles are ignored.

    Args:
        photo: A JPEG, PNG, WebP, GIF, BMP, TIFF or PPM file, whatever its extension.
        least: A side in pixels that is large enough: a JPEG may be decoded at a half, a quarter or
            an eighth of its size, in as much less time, while no side is below it.

    Returns:
        Pixels ``uint8 [height, width, 3]``.

    Raises:
        ImageError: The file is no image, is damaged, has more than :data:`MAX_PIXELS`, or a side
            below :data:`MIN_SIDE`; or memory or the disk failed: see :func:`is_of_machine` of its
            cause.
    """
    try:
        with Image.open(photo, formats=FORMATS) as image:
            check_pixels(*image.size)
            if min(image.size) < MIN_SIDE:
                raise ImageError(
                    f"expected a photo, found {image.width} x {image.height} pixels: a stand-in "
                    "for one that was not found? Fetch it again, or leave its captions out"
                )
            _scale_transparent_level(image)
            if least:
                image.draft(None, (least, least))
            return np.asarray(_to_rgb(_upright(image), image))
    except ImageError:
        raise
    except Image.DecompressionBombError as error:  # before it tells the size
        raise ImageError(f"{_AT_MOST}, found twice as many or more: {_SCALE}") from error
    except FileNotFoundError as error:
        raise ImageError("is not there") from error
    except UnidentifiedImageError as error:
        raise ImageError(f"expected an image in one of {', '.join(FORMATS)}") from error
    except Exception as error:  # on damaged bytes Pillow raises a dozen unrelated types
        raise ImageError(f"cannot be decoded ({type(error).__name__}: {error})") from error


def thumbnail(photo: Path | BinaryIO, side: int, quality: int) -> bytes:
    """Return an image as a JPEG file, at most ``side`` pixels wide and high.

    Raises:
        ImageError: If it cannot be read.
    """
    image = Image.fromarray(decode(photo, least=2 * side))  # from which Pillow makes it smooth
    image.thumbnail((side, side))
    content = io.BytesIO()
    image.save(content, "JPEG", quality=quality, optimize=True)
    return content.getvalue()


def is_of_machine(error: BaseException | None) -> bool:
    """Return whether memory or the operating system failed, and not what was read.

    Pillow raises OSError for damaged bytes too, but without a number.
    """
    return isinstance(error, MemoryError) or (
        # Damaged bytes can lead to a place that no file has.
        isinstance(error, OSError) and error.errno not in (None, errno.EINVAL)
    )


def check_pixels(width: int, height: int) -> None:
    """Raise :class:`ImageError` where an image of this size would take too much memory."""
    if width * height > MAX_PIXELS:
        raise ImageError(f"{_AT_MOST}, found {width} x {height}: {_SCALE}")


def _scale_transparent_level(image: Image.Image) -> None:
    """Give the transparent level of a PNG the 8 bits that Pillow gives its pixels.

    Of colours in 16 bits their upper halves decide: pixels have no more.
    """
    level, form = image.info.get("transparency"), image.tile[0][3] if image.tile else ""
    if image.format != "PNG" or level is None:
        return
    if form in ("L;2", "L;4"):
        image.info["transparency"] = level * 255 // (2 ** int(form[-1]) - 1)
    elif form == "RGB;16B":
        image.info["transparency"] = tuple(value >> 8 for value in level)


def _upright(image: Image.Image) -> Image.Image:
    """Turn an image; Pillow's own function writes EXIF anew, which fails for tags out of range."""
    image.load()  # of PNG, EXIF may stand after the pixels
    try:
        method = _UPRIGHT.get(image.getexif().get(ExifTags.Base.Orientation))
    except Exception:  # Pillow ignores damaged EXIF of JPEG, and raises on that of PNG and WebP
        method = None
    return image if method is None else image.transpose(method)


def _to_rgb(image: Image.Image, opened: Image.Image) -> Image.Image:
    """Return an image as RGB; what was opened has what its file says besides."""
    # Pillow scales a PGM file of more than 8 bits to 16, whatever its largest level, in mode I.
    if image.mode.startswith("I;16") or (image.mode, opened.format) == ("I", "PPM"):
        return _upper_8_bits(np.asarray(image), opened).convert("RGB")
    if image.mode in ("I", "F"):
        raise ImageError(f"expected 8 or 16 bits per channel, found 32 (mode {image.mode})")
    if image.mode == "La":  # levels times opacity; Pillow turns it into LA alone
        image = image.convert("LA")
    if image.has_transparency_data:
        white = Image.new("RGBA", image.size, "white")
        image = Image.alpha_composite(white, image.convert("RGBA"))
    return image if image.mode == "RGB" else image.convert("RGB")  # which copies it


def _upper_8_bits(levels: np.ndarray, opened: Image.Image) -> Image.Image:
    """Return greyscale of more than 8 bits as 8: Pillow's own conversion clips at 255.

    It gives the levels of TIFF as they are stored: of fewer than 16 bits, and black or white first.
    """
    tags = getattr(opened, "tag_v2", {})
    bits = int(np.max(tags.get(ExifTags.Base.BitsPerSample, 16)))
    grey = (levels >> bits - 8).astype(np.uint8)
    if tags.get(ExifTags.Base.PhotometricInterpretation) == _WHITE_IS_ZERO:
        grey = 255 - grey
    if "transparency" in opened.info:  # of PNG: one level
        grey[levels == opened.info["transparency"]] = 255
    return Image.fromarray(grey)
