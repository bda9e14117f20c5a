"""The inner loops of recurrences, without the cost of looking up each operation."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from pipeline_lib.compute.arithmetic.functions import (
    sigmoid,
    sigmoid_backward,
    tanh,
    tanh_backward,
)
from pipeline_lib.compute.arithmetic.grid import bits_of_factors, product, to_grid, total
from pipeline_lib.compute.arithmetic.operations import addcmul


@dataclass(frozen=True)
class Kernels:
    """What a recurrence is made of, in one type of numbers.

    Attributes:
        affine: From a matrix ``[k, m]``, and a bias ``[m]`` or None, to the map of ``[n, k]``.
        product: Of two matrices.
        column_sums: Of a matrix.
        sigmoid_: In place.
        tanh_: In place.
        gates_: In place, the sigmoid of an LSTM's input, forget and output gates and the hyperbolic
            tangent of its cell's, the third of the four ``[n, 4, dim]``.
        addcmul: ``x + value * a * b`` of ``x, a, b`` and the keyword ``value``.
        sigmoid_backward: From the gradient and the value of a sigmoid to the gradient before it.
        tanh_backward: The same of a hyperbolic tangent.
    """

    affine: Callable[[Tensor, Tensor | None], Callable[[Tensor], Tensor]]
    product: Callable[[Tensor, Tensor], Tensor]
    column_sums: Callable[[Tensor], Tensor]
    sigmoid_: Callable[[Tensor], Tensor]
    tanh_: Callable[[Tensor], Tensor]
    gates_: Callable[[Tensor], Tensor]
    addcmul: Callable[..., Tensor]
    sigmoid_backward: Callable[[Tensor, Tensor], Tensor]
    tanh_backward: Callable[[Tensor, Tensor], Tensor]


def kernels(kind: torch.dtype) -> Kernels:
    """Return the exact kernels of float64, and PyTorch's of other types."""
    return _EXACT_KERNELS if kind == torch.float64 else _FAST_KERNELS


def _affine(weight: Tensor, bias: Tensor | None) -> Callable[[Tensor], Tensor]:
    if bias is None:
        return lambda x: x @ weight
    return lambda x: torch.addmm(bias, x, weight)


def _exact_affine(weight: Tensor, bias: Tensor | None) -> Callable[[Tensor], Tensor]:
    bits = bits_of_factors(len(weight))
    fixed = to_grid(weight, bits, 0)  # once for all steps
    if bias is None:
        return lambda x: to_grid(x, bits, 1) @ fixed
    return lambda x: (to_grid(x, bits, 1) @ fixed).add_(bias)


def _gates_(x: Tensor) -> Tensor:
    x[:, :2].sigmoid_()
    x[:, 2].tanh_()
    x[:, 3].sigmoid_()
    return x


def _exact_gates_(x: Tensor) -> Tensor:
    x[:, 2].mul_(2)  # tanh(x) = 2 sigmoid(2 x) - 1
    x.copy_(sigmoid(x))
    x[:, 2].mul_(2).sub_(1)
    return x


_FAST_KERNELS = Kernels(
    affine=_affine,
    product=torch.matmul,
    column_sums=lambda x: x.float().sum(dim=0),
    sigmoid_=torch.sigmoid_,
    tanh_=torch.tanh_,
    gates_=_gates_,
    addcmul=torch.addcmul,
    sigmoid_backward=torch.ops.aten.sigmoid_backward,
    tanh_backward=torch.ops.aten.tanh_backward,
)
_EXACT_KERNELS = Kernels(
    affine=_exact_affine,
    product=product,
    column_sums=lambda x: total(x, 0),
    sigmoid_=lambda x: x.copy_(sigmoid(x)),
    tanh_=lambda x: x.copy_(tanh(x)),
    gates_=_exact_gates_,
    addcmul=addcmul,
    sigmoid_backward=sigmoid_backward,
    tanh_backward=tanh_backward,
)
