"""PyTorch's softmax and its kin, with their gradients."""

import math

import torch
from torch import Tensor

from pipeline_lib.compute.arithmetic.functions import exp, log
from pipeline_lib.compute.arithmetic.grid import average, total


def softmax(x: Tensor, dim: int, half_to_float: bool = False) -> Tensor:
    """Return each power of e as a share of their sum: ``aten::_softmax``."""
    powers = exp(x - x.amax(dim, keepdim=True))
    return powers.div_(total(powers, dim, True))


def safe_softmax(x: Tensor, dim: int, _dtype: torch.dtype | None = None) -> Tensor:
    """Return the softmax; of a row that is all -inf, zeros: ``aten::_safe_softmax``."""
    hidden = x == -math.inf
    return softmax(x.masked_fill(hidden.all(dim, keepdim=True), 0), dim).masked_fill_(hidden, 0)


def softmax_backward(gradient: Tensor, y: Tensor, dim: int, _dtype: torch.dtype) -> Tensor:
    """Return the gradient before a softmax whose value is ``y``."""
    weighted = gradient * y
    return weighted.sub(y.mul(total(weighted, dim, True)))


def log_softmax(x: Tensor, dim: int, half_to_float: bool = False) -> Tensor:
    """Return the logarithm of the softmax: ``aten::_log_softmax``."""
    shifted = x - x.amax(dim, keepdim=True)
    return shifted.sub_(log(total(exp(shifted), dim, True)))


def log_softmax_backward(gradient: Tensor, y: Tensor, dim: int, _dtype: torch.dtype) -> Tensor:
    """Return the gradient before a log-softmax whose value is ``y``."""
    return gradient - exp(y).mul_(total(gradient, dim, True))


def logsumexp(x: Tensor, dims: list[int], keepdim: bool = False) -> Tensor:
    """Return the logarithm of a sum of powers of e: ``aten::logsumexp``."""
    top = x.amax(dims, keepdim=True)
    found = log(total(exp(x - top), dims, True)).add_(top)
    return found if keepdim else found.squeeze(dims)


def nll_loss(
    logs: Tensor, targets: Tensor, weight: Tensor | None, reduction: int, ignore: int
) -> tuple[Tensor, Tensor]:
    """Return the mean negative log-probability of the right classes, and their number."""
    if weight is not None or reduction != 1 or bool((targets == ignore).any()):
        raise NotImplementedError("expected the mean of all losses, without weights")
    own = logs.gather(1, targets[:, None])
    return average(own).neg_(), logs.new_tensor(float(len(logs)))
