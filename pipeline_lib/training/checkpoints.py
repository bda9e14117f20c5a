"""Checkpoints of an unfinished run; finished models are saved by the JointSpace."""

import sys
from pathlib import Path
from zipfile import ZipFile

import torch

from pipeline_lib.contract.problems import lacks_memory
from pipeline_lib.running.publishing import publish


def save_checkpoint(path: Path, state: dict[str, object]) -> None:
    """Write a run's state; a kill during the write leaves the previous checkpoint."""
    with publish(path) as temporary, open(temporary, "wb") as file:
        torch.save(state, file)  # of a path it would not say why it cannot write there


def load_checkpoint(path: Path, device: torch.device) -> dict[str, object] | None:
    """Read a run's state onto ``device``: tensors, numbers and strings, never code.

    Returns:
        The state, or None where the run begins anew: there is no checkpoint, or it is damaged,
        which a line on stderr says.

    Raises:
        OSError: It cannot be read.
        RuntimeError: There is no memory for it, as PyTorch says it (or MemoryError).
    """
    if not path.is_file():
        return None
    try:
        with ZipFile(path) as archive:  # as torch writes them, with its own checksums
            whole = archive.testzip() is None
        if whole:
            return torch.load(path, map_location=device, weights_only=True)
    except Exception as error:  # what a wrong byte leads to, in zipfile or torch: no list names all
        if lacks_memory(error) or (isinstance(error, OSError) and error.errno):
            raise  # of a whole file: it would be written over
    print(f"{path}: the checkpoint is damaged: the run begins anew", file=sys.stderr)
    return None
