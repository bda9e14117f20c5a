"""Which files of a folder are photos."""

import os
from collections.abc import Callable
from pathlib import Path

from pipeline_lib.contract.problems import warn
from pipeline_lib.search.names import printable

SUFFIXES = (".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff", ".ppm")
"""Names of photos end so; other files are not looked at."""

NO_PHOTO = f"expected photos ({', '.join(SUFFIXES)}), found none"


def photo_paths(folder: Path, unlisted: Callable[[OSError], None] | None = None) -> list[str]:
    """Return the paths of the photos in a folder and those below, relative to it and sorted.

    Args:
        folder: Where to look.
        unlisted: Is told of each folder that cannot be listed; it is warned of in any case.
    """

    def note(error: OSError) -> None:
        where, what = printable(error.filename), error.strerror
        warn(f"{where}: {what}. The photos in this folder are left out")
        if unlisted:
            unlisted(error)

    walk = os.walk(folder, onerror=note)
    files = (Path(parent, name) for parent, _, names in walk for name in names)
    found = (path for path in files if path.suffix.lower() in SUFFIXES and _is_file(path))
    return sorted(str(path.relative_to(folder)) for path in found)


def _is_file(path: Path) -> bool:
    """Return whether a path is a file; what cannot be looked at is named when it is read."""
    try:
        return path.is_file()
    except OSError:  # no right to, or what it leads to does not answer
        return True
