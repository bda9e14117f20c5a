"""PyTorch's layer and batch normalisation, with their gradients."""

from torch import Tensor

from pipeline_lib.compute.arithmetic.functions import root
from pipeline_lib.compute.arithmetic.grid import average, total


def layer_norm(
    x: Tensor, shape: list[int], weight: Tensor | None, bias: Tensor | None, floor: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Return normalised numbers, means, 1 / deviations: ``aten::native_layer_norm``."""
    dims = list(range(x.ndim - len(shape), x.ndim))
    mean = average(x, dims, True)
    centred = x - mean
    scale = root(average(centred * centred, dims, True).add_(floor)).reciprocal_()
    y = centred.mul_(scale)
    if weight is not None:
        y = y * weight
    return (y if bias is None else y + bias), mean, scale


def layer_norm_backward(
    gradient: Tensor,
    x: Tensor,
    shape: list[int],
    mean: Tensor,
    scale: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    _mask: list[bool],
) -> tuple[Tensor | None, ...]:
    """Return the gradients of numbers, weight and bias, None of what is not there."""
    dims = list(range(x.ndim - len(shape), x.ndim))
    outer = list(range(x.ndim - len(shape)))
    y = x.sub(mean).mul_(scale)
    of_weight = None if weight is None else total(gradient * y, outer)
    of_bias = None if bias is None else total(gradient, outer)
    g = gradient if weight is None else gradient * weight
    return _normalisation_backward(g, y, scale, dims), of_weight, of_bias


def batch_norm(
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    running_mean: Tensor,
    running_var: Tensor,
    training: bool,
    momentum: float,
    floor: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return normalised numbers, means, 1 / deviations: ``aten::native_batch_norm``.

    Without training means and deviations are empty; with it, running ones are updated in place.
    """
    dims = [d for d in range(x.ndim) if d != 1]
    shape = [-1 if d == 1 else 1 for d in range(x.ndim)]
    mean, var = running_mean, running_var
    if training:
        count = x.numel() // x.shape[1]
        mean = average(x, dims)
        squares = total(x.sub(mean.view(shape)).square(), dims)
        var = squares.div(count)
        running_mean.mul_(1 - momentum).add_(mean.mul(momentum))
        running_var.mul_(1 - momentum).add_(squares.div(count - 1).mul_(momentum))
    scale = root(var.add(floor)).reciprocal_()
    slope = scale.mul(weight)
    y = x.mul(slope.view(shape)).add_(bias.sub(mean.mul(slope)).view(shape))
    empty = x.new_empty(0)
    return (y, mean, scale) if training else (y, empty, empty)


def batch_norm_backward(
    gradient: Tensor,
    x: Tensor,
    weight: Tensor,
    _running_mean: Tensor,
    _running_var: Tensor,
    mean: Tensor,
    scale: Tensor,
    training: bool,
    _floor: float,
    _mask: list[bool],
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of numbers, weight and bias."""
    if not training:
        raise NotImplementedError("the gradient of a batch normalisation by running statistics")
    dims = [d for d in range(x.ndim) if d != 1]
    shape = [-1 if d == 1 else 1 for d in range(x.ndim)]
    scale = scale.view(shape)
    y = x.sub(mean.view(shape)).mul_(scale)
    of_x = _normalisation_backward(gradient.mul(weight.view(shape)), y, scale, dims)
    return of_x, total(gradient * y, dims), total(gradient, dims)


def _normalisation_backward(gradient: Tensor, y: Tensor, scale: Tensor, dims: list[int]) -> Tensor:
    """Return the gradient of x in ``y = (x - average(x)) * scale(x)``."""
    pulled = y.mul(average(gradient * y, dims, True))
    return gradient.sub(average(gradient, dims, True)).sub_(pulled).mul_(scale)
