"""Networks whose settings name a precision: where they lie, and what they compute in."""

from typing import Self

import torch
from torch import nn

from pipeline_lib.compute.device import best_device, precision_on
from pipeline_lib.settings.strict import Precision


class PreciseModule(nn.Module):
    """A network that was asked to compute in some precision."""

    def __init__(self, asked: Precision) -> None:
        super().__init__()
        self.asked = asked

    @property
    def device(self) -> torch.device:
        """Where the weights lie."""
        return next(self.parameters()).device

    @property
    def dtype(self) -> torch.dtype:
        """Type of the weights and of what is summed: float32, or float64 in the precision f64."""
        return next(self.parameters()).dtype

    @property
    def precision(self) -> Precision:
        """What its matrix products are computed in, on the device where it lies."""
        return precision_on(self.asked, self.device)

    def to_best_device(self) -> Self:
        """Move to where its precision is computed."""
        return self.to(best_device(self.asked))
