"""Where the work is done."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

SMALL = 2**14
"""Numbers in the result of an operation below which cores lose more by waiting than they gain."""


def best_device() -> torch.device:
    """Return the first CUDA device, or the CPU where there is none.

    From then on float32 is float32: by default cuDNN rounds its factors to 10 bits (TF32).
    """
    torch.backends.cudnn.allow_tf32 = False
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


@contextmanager
def cores_for(numbers: int) -> Iterator[None]:
    """Compute on one core within the block if operations are small, else on as many as before.

    Args:
        numbers: In the result of a typical operation.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1 if numbers < SMALL else before)
    try:
        yield
    finally:
        torch.set_num_threads(before)
