"""Checkpoints of an unfinished run; finished models are saved by the JointSpace."""

from pathlib import Path

import torch

from pipeline_lib.publishing import publish


def save_checkpoint(path: Path, state: dict[str, object]) -> None:
    """Write a run's state; a kill during the write leaves the previous checkpoint."""
    with publish(path) as temporary:
        torch.save(state, temporary)


def load_checkpoint(path: Path, device: torch.device) -> dict[str, object]:
    """Read a run's state onto ``device``: tensors, numbers and strings, never code."""
    return torch.load(path, map_location=device, weights_only=True)
