"""PyTorch's draws, from random bits: the same numbers for a seed on every machine."""

import numpy as np
import torch
from torch import Tensor

from pipeline_lib.compute.arithmetic.grid import BITS


def uniform(
    x: Tensor, low: float = 0, high: float = 1, *, generator: torch.Generator | None = None
) -> Tensor:
    """Fill a tensor with numbers from ``low`` up to ``high``: ``aten::uniform_``."""
    units = _draw_bits(x, generator).to(torch.float64).mul_(2.0**-BITS)
    return x.copy_(units.mul_(high - low).add_(low))


def normal(
    x: Tensor, mean: float = 0, std: float = 1, *, generator: torch.Generator | None = None
) -> Tensor:
    """Fill a tensor with normal numbers, which NumPy draws: ``aten::normal_``."""
    seed = torch.empty((), dtype=torch.int64).random_(0, 2**BITS, generator=generator)
    drawn = np.random.default_rng(int(seed)).standard_normal(tuple(x.shape))
    return x.copy_(torch.from_numpy(np.asarray(drawn)).mul_(std).add_(mean))


def bernoulli(x: Tensor, p: float = 0.5, *, generator: torch.Generator | None = None) -> Tensor:
    """Fill a tensor with ones, each with probability ``p``, and zeros: ``aten::bernoulli_``."""
    return x.copy_(_draw_bits(x, generator) < round(p * 2**BITS))


def dropout(x: Tensor, share: float, train: bool | None) -> tuple[Tensor, Tensor]:
    """Return numbers, each dropped with probability ``share``, and where they are kept."""
    kept = _draw_bits(x, None) >= round(share * 2**BITS)
    return x * kept.to(x.dtype).div_(1 - share), kept


def _draw_bits(x: Tensor, generator: torch.Generator | None) -> Tensor:
    return torch.empty(x.shape, dtype=torch.int64).random_(0, 2**BITS, generator=generator)
