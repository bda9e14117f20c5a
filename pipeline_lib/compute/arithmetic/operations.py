"""PyTorch's operations on float64, by functions that are exact."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from pipeline_lib.compute.arithmetic.convolution import convolution
from pipeline_lib.compute.arithmetic.draws import bernoulli, dropout, normal, uniform
from pipeline_lib.compute.arithmetic.functions import (
    CACHED,
    cos,
    exp,
    log,
    power,
    root,
    sigmoid,
    sigmoid_backward,
    sin,
    tanh,
    tanh_backward,
)
from pipeline_lib.compute.arithmetic.grid import average, product, total
from pipeline_lib.compute.arithmetic.matrices import qr
from pipeline_lib.compute.arithmetic.normalisation import (
    batch_norm,
    batch_norm_backward,
    layer_norm,
    layer_norm_backward,
)
from pipeline_lib.compute.arithmetic.softmax import (
    log_softmax,
    log_softmax_backward,
    logsumexp,
    nll_loss,
    safe_softmax,
    softmax,
    softmax_backward,
)

aten = torch.ops.aten


def _norm(
    x: Tensor, order: float = 2, dims: list[int] | None = None, keepdim: bool = False, **_: object
) -> Tensor:
    if order != 2:
        raise NotImplementedError(f"expected the norm 2, found {order}")
    return root(total(x * x, dims, keepdim))


def _addmm(bias: Tensor, a: Tensor, b: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    return product(a, b).mul_(alpha).add_(bias * beta)


def _mv(a: Tensor, b: Tensor) -> Tensor:
    return product(a, b[:, None])[:, 0]


def _dot(a: Tensor, b: Tensor) -> Tensor:
    return product(a[None], b[:, None])[0, 0]


def addcmul(x: Tensor, a: Tensor, b: Tensor, *, value: float = 1) -> Tensor:
    """Return ``x + value * a * b``."""
    return a.mul(b).mul_(value).add(x)


def _addcdiv(x: Tensor, a: Tensor, b: Tensor, *, value: float = 1) -> Tensor:
    return a.mul(value).div_(b).add(x)


def _lerp(a: Tensor, b: Tensor, weight: float | Tensor) -> Tensor:
    return b.sub(a).mul_(weight).add_(a)


def _add(a: Tensor, b: Tensor | float, *, alpha: float = 1) -> Tensor:
    return aten.add(a, b if alpha == 1 else aten.mul(b, alpha))


def _sub(a: Tensor, b: Tensor | float, *, alpha: float = 1) -> Tensor:
    return aten.sub(a, b if alpha == 1 else aten.mul(b, alpha))


def _rsub(a: Tensor, b: Tensor | float, *, alpha: float = 1) -> Tensor:
    return aten.add(aten.mul(a, -alpha), b)


def _index_add_(x: Tensor, dim: int, index: Tensor, rows: Tensor, *, alpha: float = 1) -> Tensor:
    return x.index_add_(dim, index, rows if alpha == 1 else rows * alpha)


def _adaptive_average(x: Tensor, sizes: list[int]) -> Tensor:
    """Average maps ``[..., rows, columns]`` over as many windows as asked for in each direction."""
    for dim, count in zip((-2, -1), sizes, strict=True):
        side = x.shape[dim]
        windows = ((i * side // count, -(-(i + 1) * side // count)) for i in range(count))
        parts = [average(x.narrow(dim, a, b - a), [dim], keepdim=True) for a, b in windows]
        x = torch.cat(parts, dim)
    return x


def _pow(x: Tensor | float, exponent: Tensor | float) -> Tensor:
    if isinstance(exponent, Tensor):
        if isinstance(x, Tensor) or not x > 0:
            raise NotImplementedError(f"expected powers of a positive number, found those of {x}")
        return exp(exponent * log(exponent.new_full((), x)))
    if exponent == 0.5:
        return root(x)
    if exponent == 0:
        return torch.ones_like(x)
    if float(exponent).is_integer():
        found = power(x, abs(int(exponent)))
        return found if exponent > 0 else found.reciprocal_()
    return exp(log(x).mul_(exponent))


def _adam(
    parameters: list[Tensor],
    gradients: list[Tensor],
    means: list[Tensor],
    squares: list[Tensor],
    _max_squares: list[Tensor],
    steps: list[Tensor],
    *,
    lr: float,
    beta1: float,
    beta2: float,
    weight_decay: float,
    eps: float,
    **others: object,
) -> None:
    """Take a step of Adam (Kingma and Ba 2015) in parts that stay in the cache."""
    asked = [name for name, value in ({"weight_decay": weight_decay} | others).items() if value]
    if asked:
        raise NotImplementedError(f"Adam with {', '.join(asked)}")
    for each in zip(parameters, gradients, means, squares, steps, strict=True):
        *tensors, step = each
        size = lr / (1 - power(beta1, int(step)))
        filled = math.sqrt(1 - power(beta2, int(step)))
        parts = (tensor.view(-1).split(CACHED) for tensor in tensors)
        for p, g, mean, square in zip(*parts, strict=True):
            mean.mul_(beta1).add_(g.mul(1 - beta1))
            square.mul_(beta2).add_(g.mul(g).mul_(1 - beta2))
            p.sub_(mean.div(root(square).div_(filled).add_(eps)).mul_(size))


REPLACED: dict[str, Callable] = {
    "mm": product,
    "bmm": product,
    "addmm": _addmm,
    "baddbmm": _addmm,
    "mv": _mv,
    "dot": _dot,
    "convolution": convolution,
    "sum": lambda x, dims=None, keepdim=False, **_: total(x, dims, keepdim),
    "mean": average,
    "_adaptive_avg_pool2d": _adaptive_average,
    "linalg_vector_norm": _norm,
    "logsumexp": logsumexp,
    "exp": exp,
    "log": log,
    "cos": cos,
    "sin": sin,
    "sigmoid": sigmoid,
    "tanh": tanh,
    "tanh_backward": tanh_backward,
    "sigmoid_backward": sigmoid_backward,
    "_softmax": softmax,
    "_safe_softmax": safe_softmax,
    "_softmax_backward_data": softmax_backward,
    "_log_softmax": log_softmax,
    "_log_softmax_backward_data": log_softmax_backward,
    "native_layer_norm": layer_norm,
    "native_layer_norm_backward": layer_norm_backward,
    "native_batch_norm": batch_norm,
    "native_batch_norm_backward": batch_norm_backward,
    "nll_loss_forward": nll_loss,
    "add": _add,
    "sub": _sub,
    "rsub": _rsub,
    "pow": _pow,
    "sqrt": root,
    "addcmul": addcmul,
    "index_add_": _index_add_,
    "addcdiv": _addcdiv,
    "lerp": _lerp,
    "uniform_": uniform,
    "normal_": normal,
    "bernoulli_": bernoulli,
    "native_dropout": dropout,
    "_fused_adam_": _adam,
    "linalg_qr": qr,
    "_foreach_norm": lambda tensors, order=2, **_: [_norm(x, order) for x in tensors],
}
"""What replaces an operation of float64; those in place are made of these."""
