"""Where the work is done."""

import torch


def best_device() -> torch.device:
    """Return the first CUDA device, or the CPU where there is none."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")
