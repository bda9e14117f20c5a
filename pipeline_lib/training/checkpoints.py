"""Checkpoints of an unfinished run; finished models are saved by the JointSpace."""

import sys
import zlib
from pathlib import Path
from pickle import UnpicklingError
from zipfile import BadZipFile, ZipFile

import torch

from pipeline_lib.publishing import publish


def save_checkpoint(path: Path, state: dict[str, object]) -> None:
    """Write a run's state; a kill during the write leaves the previous checkpoint."""
    with publish(path) as temporary:
        torch.save(state, temporary)


def load_checkpoint(path: Path, device: torch.device) -> dict[str, object] | None:
    """Read a run's state onto ``device``: tensors, numbers and strings, never code.

    Returns:
        The state, or None where the run begins anew: there is no checkpoint, or it is damaged,
        which a line on stderr says.
    """
    if not path.is_file():
        return None
    try:
        if _is_whole(path):
            return torch.load(path, map_location=device, weights_only=True)
    except _DAMAGED:
        pass
    print(f"{path}: the checkpoint is damaged: the run begins anew", file=sys.stderr)
    return None


_DAMAGED = (RuntimeError, UnpicklingError, ValueError, KeyError, EOFError, AttributeError)
"""What torch raises on an archive that is whole and holds something else."""


def _is_whole(path: Path) -> bool:
    """Return whether a file is an archive, as torch writes them, with its own checksums."""
    try:
        with ZipFile(path) as archive:
            return archive.testzip() is None
    except (BadZipFile, zlib.error, RuntimeError, ValueError, EOFError, OSError):
        return False
