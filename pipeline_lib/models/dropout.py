"""Dropout whose random numbers are cheap on the CPU."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

_STEPS = 2**16
"""Probabilities are multiples of 1 / _STEPS."""


class Dropout(nn.Module):
    """Zero a share of all values in training and scale the others (Srivastava et al. 2014).

    On the CPU, PyTorch draws one number per value, which takes a sixth of the time of a small
    Transformer. Here each 64 random bits decide on four values.
    """

    def __init__(self, share: float) -> None:
        super().__init__()
        self.share = share

    def forward(self, x: Tensor) -> Tensor:
        """Return ``x`` with values dropped; as it is when not in training."""
        if not self.training or not self.share:
            return x
        if x.is_cuda:
            return F.dropout(x, self.share)
        dropped = round(self.share * _STEPS)
        bits = torch.empty(-(-x.numel() // 4), dtype=torch.int64).random_(-(2**63), None)
        kept = bits.view(torch.int16)[: x.numel()].view(x.shape) >= dropped - _STEPS // 2
        return x * kept.to(x.dtype).mul_(_STEPS / (_STEPS - dropped))
