"""What runs of DVC note for later ones: JSON in a folder that git ignores, safe to delete."""

import contextlib
import json
import os
from pathlib import Path

HOME = Path(".dvc/tmp/polyview")


def read(path: Path) -> dict:
    """Return a note; nothing if there is none, or half of one."""
    with contextlib.suppress(OSError, ValueError):
        return json.loads(path.read_text(encoding="utf-8"))
    return {}


def write(path: Path, content: object) -> None:
    """Write a note as a whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(f".{os.getpid()}")
    temporary.write_text(json.dumps(content), encoding="utf-8")
    temporary.replace(path)


def is_possible() -> bool:
    """Return whether this folder is a project of DVC."""
    return HOME.parents[1].is_dir()
