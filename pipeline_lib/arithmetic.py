"""Float64 arithmetic whose results are the same bits on every CPU, for any number of threads.

Floating-point numbers differ between machines for three reasons, and ``f64`` removes each:

- Sums are rounded in the order of the kernel, which follows the CPU and the threads. Here operands
  of products and sums are first rounded to a grid, coarse enough that float64 holds every partial
  sum exactly: then no order rounds. With 2^k terms both factors of a product keep (53 - k) / 2
  bits of the largest number of their row (22 of 256 terms, 21 of 2,048), about what float32 keeps.
- ``exp``, ``log``, ``tanh``, ``cos`` and powers differ between libraries, and in one library
  between CPUs. Here they are polynomials and products, also those of the learning rate.
- Compilers contract ``a * b + c`` where the CPU can. Here each operation is a kernel of its own.
  Additions, multiplications, divisions and square roots are rounded correctly by every CPU
  (IEEE 754), as are copies, comparisons and integers.

:class:`Exact` holds a program to it: within the block each of PyTorch's operations on float64 is
either known to be exact, or replaced by one that is, or an error. Models and losses are written
as for any other type; gradients go the same way.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache, wraps

import numpy as np
import torch
from torch import Tensor
from torch._C import DispatchKey
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import (
    TorchDispatchMode,
    _disable_current_modes,
    _get_current_dispatch_mode,
)

from pipeline_lib.products import fast_products

aten = torch.ops.aten

F64 = "f64"
"""Name of this arithmetic among the precisions."""

BITS = 53
"""Of a float64's significand."""

_MOST_TERMS = 2**11
"""Terms of a product that are added at a time: more are cut into parts, added one by one."""


# Rounding to a grid


def to_grid(x: Tensor, bits: int, dims: int | tuple[int, ...]) -> Tensor:
    """Round to multiples of 2^-bits of the next power of two above the largest number.

    Args:
        x: Float64 of any shape.
        bits: Of the result, beside the sign.
        dims: The largest number is that along these dimensions.
    """
    highest, lowest = x.amax(dims, keepdim=True), x.amin(dims, keepdim=True)
    shift = _shifter(torch.maximum(highest, lowest.neg_()), bits)
    return x.add(shift).sub_(shift)


def root(x: Tensor) -> Tensor:
    """Return the square root of each number, rounded correctly.

    PyTorch takes it from MKL, whose last bit differs between CPUs; NumPy from the CPU itself.
    """
    if x.is_cuda:
        return x.sqrt()
    found = torch.empty_like(x)
    np.sqrt(x.detach().numpy(), out=found.numpy())
    return found


def power(base: float, exponent: int) -> float:
    """Return a power by multiplications: the C library's differs in its last bit between CPUs."""
    found = 1.0
    while exponent:
        if exponent & 1:
            found *= base
        base, exponent = base * base, exponent >> 1
    return found


def _shifter(largest: Tensor, bits: int) -> Tensor:
    """Return 1.5 * 2^(52 - bits) times the power of two: adding it rounds to its unit."""
    power = largest.view(torch.int64).bitwise_and_(0x7FF << 52)
    return power.add_((BITS - bits << 52) + (1 << 51)).view(torch.float64)


def _bits_of_factors(terms: int) -> int:
    return (BITS - (terms - 1).bit_length()) // 2


def product(a: Tensor, b: Tensor) -> Tensor:
    """Return ``a @ b`` of ``[..., n, k]`` and ``[..., k, m]``, rounded to a grid and exact."""
    terms = a.shape[-1]
    if terms > _MOST_TERMS:
        parts = zip(a.split(_MOST_TERMS, -1), b.split(_MOST_TERMS, -2), strict=True)
        return _sum_in_order([product(*part) for part in parts])
    if not terms or not a.numel() or not b.numel():
        return a @ b
    bits = _bits_of_factors(terms)
    return to_grid(a, bits, -1) @ to_grid(b, bits, -2)


def _sum_in_order(parts: list[Tensor]) -> Tensor:
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def total(x: Tensor, dims: list[int] | int | None = None, keepdim: bool = False) -> Tensor:
    """Return the sum along some dimensions (all if None), of numbers rounded to a grid."""
    dims = _every(x, dims)
    terms = math.prod(x.shape[d] for d in dims)
    if terms > 1 and x.numel():
        x = to_grid(x, BITS - 1 - (terms - 1).bit_length(), dims)
    return aten.sum.dim_IntList(x, dims, keepdim)


def _every(x: Tensor, dims: list[int] | int | None) -> tuple[int, ...]:
    if isinstance(dims, int):
        return (dims,)
    return tuple(dims) if dims else tuple(range(x.ndim))


# Functions from basic operations

_CACHED = 2**14
"""Numbers that stay in a near cache from one operation to the next."""


def _in_parts(function: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """Decorate a function of single numbers: it takes some at a time, which stay in the cache."""

    @wraps(function)
    def in_parts(x: Tensor) -> Tensor:
        if x.numel() <= _CACHED:
            return function(x)
        return torch.cat([function(part) for part in x.reshape(-1).split(_CACHED)]).view(x.shape)

    return in_parts


_LOG2_E = 1.4426950408889634
_LN2_HIGH, _LN2_LOW = 0.6931471803691238, 1.9082149292705877e-10  # the first has 21 zero bits
_EXP_TERMS = [1 / math.factorial(n) for n in range(5, -1, -1)]
_SQUARINGS = 4
_LOG_TERMS = [2 / n for n in range(21, 0, -2)]
_ROUND = 1.5 * 2.0**52


@_in_parts
def exp(x: Tensor) -> Tensor:
    """Return e to the power of each number, to a share of 1e-11."""
    x = x.clamp(-708, 709)
    whole = x.mul(_LOG2_E).add_(_ROUND)
    power = whole.view(torch.int64).bitwise_left_shift(52)
    whole.sub_(_ROUND)
    rest = x.sub_(whole.mul(_LN2_HIGH)).sub_(whole.mul_(_LN2_LOW)).mul_(2.0**-_SQUARINGS)
    value = _polynomial(rest, _EXP_TERMS)
    for _ in range(_SQUARINGS):
        value.mul_(value)
    return value.view(torch.int64).add_(power).view(torch.float64)


@_in_parts
def log(x: Tensor) -> Tensor:
    """Return the natural logarithm of positive numbers, to 1e-15."""
    bits = x.contiguous().view(torch.int64)
    # The power of two next below sqrt(2) x: what is left lies in 1/sqrt(2) .. sqrt(2).
    exponent = bits.sub(0x3FE6A09E667F3BCD).bitwise_right_shift_(52)
    left = bits.sub(exponent.bitwise_left_shift(52)).view(torch.float64)
    ratio = left.sub(1).div_(left.add(1))
    value = _polynomial(ratio.mul(ratio), _LOG_TERMS).mul_(ratio)
    power = exponent.to(torch.float64)
    return power.mul(_LN2_LOW).add_(value).add_(power.mul_(_LN2_HIGH))


@_in_parts
def cos(x: Tensor) -> Tensor:
    """Return the cosine of angles up to some thousands, to 1e-11."""
    turns = x.mul(1 / math.tau).add_(_ROUND).sub_(_ROUND)
    angle = x.sub(turns.mul(_TAU_HIGH)).sub_(turns.mul_(_TAU_LOW)).mul_(2.0**-_DOUBLINGS)
    value = _polynomial(angle.mul_(angle), _COS_TERMS)
    for _ in range(_DOUBLINGS):
        value.mul_(value).mul_(2).sub_(1)
    return value


def sin(x: Tensor) -> Tensor:
    """Return the sine of angles up to some thousands, to 1e-11."""
    return cos(x.sub(math.pi / 2))


_TAU_HIGH = math.floor(math.tau * 2**30) / 2**30
_TAU_LOW = -2.449293598294706e-16 + math.tau - _TAU_HIGH
_COS_TERMS = [(-1) ** n / math.factorial(2 * n) for n in range(6, -1, -1)]
_DOUBLINGS = 3


@_in_parts
def sigmoid(x: Tensor) -> Tensor:
    """Return 1 / (1 + e^-x)."""
    return exp(x.neg()).add_(1).reciprocal_()


@_in_parts
def tanh(x: Tensor) -> Tensor:
    """Return the hyperbolic tangent, to 1e-11."""
    return exp(x.mul(2)).add_(1).reciprocal_().mul_(-2).add_(1)


def _polynomial(x: Tensor, coefficients: list[float]) -> Tensor:
    value = x.mul(coefficients[0]).add_(coefficients[1])
    for coefficient in coefficients[2:]:
        value.mul_(x).add_(coefficient)
    return value


# Matrices


def precise_product(a: Tensor, b: Tensor) -> Tensor:
    """Return ``a @ b`` of ``[n, k]`` and ``[k, m]``, with twice the bits of :func:`product`."""
    bits = _bits_of_factors(a.shape[1])
    a_high, b_high = to_grid(a, bits, 1), to_grid(b, bits, 0)
    a_low, b_low = a - a_high, b - b_high
    return (a_high @ b_high) + (product(a_low, b_high) + product(a, b_low))


def polar_factor(matrix: Tensor) -> Tensor:
    """Return the orthogonal matrix nearest to a square one, float64 ``[dim, dim]``.

    By the iteration of Newton and Schulz (Higham, Functions of Matrices, 2008, §8.3), which is made
    of products; a singular value decomposition is not the same on every machine. A matrix that is
    singular has several nearest ones: of these it is the one nearest to the identity.

    Raises:
        FloatingPointError: If there is no single one, or a number is infinite.
    """
    identity = torch.eye(len(matrix), dtype=matrix.dtype)
    found = matrix.div(root(total(matrix * matrix))) + identity * _ALMOST_SINGULAR
    for _ in range(_MOST_ITERATIONS):
        squared = precise_product(found.T, found)
        if float((squared - identity).abs().amax()) < _ORTHOGONAL:
            return found
        found = precise_product(found, identity * 1.5 - squared * 0.5)
    raise FloatingPointError(
        "expected vectors that an orthogonal map can be fitted to, found some that are orthogonal "
        "to all they belong to, or infinite ones"
    )


_ALMOST_SINGULAR, _ORTHOGONAL, _MOST_ITERATIONS = 1e-9, 1e-11, 100


def _qr(matrix: Tensor, _mode: str = "reduced") -> tuple[Tensor, Tensor]:
    """Return Q and the triangle R with a positive diagonal, by Gram and Schmidt, done twice."""
    q = torch.zeros_like(matrix)
    for column in range(matrix.shape[1]):
        rest = matrix[:, column : column + 1]
        for _ in range(2):
            before = q[:, : max(column, 1)]
            rest = rest - precise_product(before, precise_product(before.T, rest))
        q[:, column : column + 1] = rest / root(total(rest * rest))
    return q, precise_product(q.T, matrix)


# PyTorch's operations, by the functions above


def _softmax(x: Tensor, dim: int, half_to_float: bool = False) -> Tensor:
    powers = exp(x - x.amax(dim, keepdim=True))
    return powers.div_(total(powers, dim, True))


def _safe_softmax(x: Tensor, dim: int, _dtype: torch.dtype | None = None) -> Tensor:
    hidden = x == -math.inf
    return _softmax(x.masked_fill(hidden.all(dim, keepdim=True), 0), dim).masked_fill_(hidden, 0)


def _softmax_backward(gradient: Tensor, y: Tensor, dim: int, _dtype: torch.dtype) -> Tensor:
    weighted = gradient * y
    return weighted.sub(y.mul(total(weighted, dim, True)))


def _log_softmax(x: Tensor, dim: int, half_to_float: bool = False) -> Tensor:
    shifted = x - x.amax(dim, keepdim=True)
    return shifted.sub_(log(total(exp(shifted), dim, True)))


def _log_softmax_backward(gradient: Tensor, y: Tensor, dim: int, _dtype: torch.dtype) -> Tensor:
    return gradient - exp(y).mul_(total(gradient, dim, True))


def _logsumexp(x: Tensor, dims: list[int], keepdim: bool = False) -> Tensor:
    top = x.amax(dims, keepdim=True)
    found = log(total(exp(x - top), dims, True)).add_(top)
    return found if keepdim else found.squeeze(dims)


def _mean(x: Tensor, dims: list[int] | None = None, keepdim: bool = False, **_: object) -> Tensor:
    count = math.prod(x.shape[d] for d in _every(x, dims))
    return total(x, dims, keepdim).div_(count)


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


def _tanh_backward(gradient: Tensor, y: Tensor) -> Tensor:
    return y.mul(y).neg_().add_(1).mul_(gradient)


def _sigmoid_backward(gradient: Tensor, y: Tensor) -> Tensor:
    return y.neg().add_(1).mul_(y).mul_(gradient)


def _addcmul(x: Tensor, a: Tensor, b: Tensor, *, value: float = 1) -> Tensor:
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


def _pow(x: Tensor | float, exponent: Tensor | float) -> Tensor:
    if isinstance(exponent, Tensor):
        return exp(exponent * log(exponent.new_full((), x)))
    if exponent == 0.5:
        return root(x)
    if exponent in (1, 2, 3):
        return math.prod([x] * int(exponent))
    return exp(log(x).mul_(exponent))


def _layer_norm(
    x: Tensor, shape: list[int], weight: Tensor | None, bias: Tensor | None, floor: float
) -> tuple[Tensor, Tensor, Tensor]:
    dims = list(range(x.ndim - len(shape), x.ndim))
    mean = _mean(x, dims, True)
    centred = x - mean
    scale = root(_mean(centred * centred, dims, True).add_(floor)).reciprocal_()
    y = centred.mul_(scale)
    if weight is not None:
        y = y * weight
    return (y if bias is None else y + bias), mean, scale


def _layer_norm_backward(
    gradient: Tensor,
    x: Tensor,
    shape: list[int],
    mean: Tensor,
    scale: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    _mask: list[bool],
) -> tuple[Tensor | None, ...]:
    dims = list(range(x.ndim - len(shape), x.ndim))
    outer = list(range(x.ndim - len(shape)))
    y = x.sub(mean).mul_(scale)
    of_weight = None if weight is None else total(gradient * y, outer)
    of_bias = None if bias is None else total(gradient, outer)
    g = gradient if weight is None else gradient * weight
    return _normalisation_backward(g, y, scale, dims), of_weight, of_bias


def _normalisation_backward(gradient: Tensor, y: Tensor, scale: Tensor, dims: list[int]) -> Tensor:
    """Return the gradient of x in ``y = (x - mean(x)) * scale(x)``."""
    pulled = y.mul(_mean(gradient * y, dims, True))
    return gradient.sub(_mean(gradient, dims, True)).sub_(pulled).mul_(scale)


def _batch_norm(
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    running_mean: Tensor,
    running_var: Tensor,
    training: bool,
    momentum: float,
    floor: float,
) -> tuple[Tensor, Tensor, Tensor]:
    dims = [d for d in range(x.ndim) if d != 1]
    shape = [-1 if d == 1 else 1 for d in range(x.ndim)]
    mean, var = running_mean, running_var
    if training:
        count = x.numel() // x.shape[1]
        mean = _mean(x, dims)
        squares = total(x.sub(mean.view(shape)).square(), dims)
        var = squares.div(count)
        running_mean.mul_(1 - momentum).add_(mean.mul(momentum))
        running_var.mul_(1 - momentum).add_(squares.div(count - 1).mul_(momentum))
    scale = root(var.add(floor)).reciprocal_()
    slope = scale.mul(weight)
    y = x.mul(slope.view(shape)).add_(bias.sub(mean.mul(slope)).view(shape))
    empty = x.new_empty(0)
    return (y, mean, scale) if training else (y, empty, empty)


def _batch_norm_backward(
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
    if not training:
        raise NotImplementedError("the gradient of a batch normalisation by running statistics")
    dims = [d for d in range(x.ndim) if d != 1]
    shape = [-1 if d == 1 else 1 for d in range(x.ndim)]
    scale = scale.view(shape)
    y = x.sub(mean.view(shape)).mul_(scale)
    of_x = _normalisation_backward(gradient.mul(weight.view(shape)), y, scale, dims)
    return of_x, total(gradient * y, dims), total(gradient, dims)


def _nll_loss(
    logs: Tensor, targets: Tensor, weight: Tensor | None, reduction: int, ignore: int
) -> tuple[Tensor, Tensor]:
    if weight is not None or reduction != 1 or bool((targets == ignore).any()):
        raise NotImplementedError("expected the mean of all losses, without weights")
    own = logs.gather(1, targets[:, None])
    return _mean(own).neg_(), logs.new_tensor(float(len(logs)))


def _convolution(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: list[int],
    padding: list[int],
    dilation: list[int],
    transposed: bool,
    _output_padding: list[int],
    groups: int,
) -> Tensor:
    if transposed or set(dilation) != {1}:
        raise NotImplementedError("expected a plain convolution")
    # Channels last, so that the numbers of a pixel lie together.
    x = torch.constant_pad_nd(x.permute(0, 2, 3, 1), [0, 0, *[padding[1]] * 2, *[padding[0]] * 2])
    convolve = _depthwise if groups == x.shape[3] == len(weight) > 1 else _dense
    y = convolve(x, weight, stride)
    return (y if bias is None else y.add_(bias)).permute(0, 3, 1, 2)


def _windows(x: Tensor, weight: Tensor, stride: list[int]) -> Tensor:
    """Return all windows ``[images, rows, columns, channels, kernel rows, kernel columns]``."""
    return x.unfold(1, weight.shape[2], stride[0]).unfold(2, weight.shape[3], stride[1])


def _dense(x: Tensor, weight: Tensor, stride: list[int]) -> Tensor:
    windows = _windows(x, weight, stride)
    terms = math.prod(windows.shape[3:])
    each = product(windows.reshape(-1, terms), weight.view(-1, terms).T)
    return each.view(*windows.shape[:3], -1)


def _depthwise(x: Tensor, weight: Tensor, stride: list[int]) -> Tensor:
    """Add the shifted images one after the other, some rows at a time that stay in the cache."""
    windows = _windows(x, weight, stride)
    kernel = weight[:, 0].permute(1, 2, 0).contiguous()
    y = x.new_zeros(windows.shape[:4])
    step = max(1, _CACHED // math.prod(y.shape[2:]))
    for image, found in zip(windows, y, strict=True):
        for some, part in zip(image.split(step), found.split(step), strict=True):
            for i, j in np.ndindex(*kernel.shape[:2]):
                part.add_(some[..., i, j] * kernel[i, j])
    return y


def _draw_bits(x: Tensor, generator: torch.Generator | None) -> Tensor:
    return torch.empty(x.shape, dtype=torch.int64).random_(0, 2**BITS, generator=generator)


def _uniform(
    x: Tensor, low: float = 0, high: float = 1, *, generator: torch.Generator | None = None
) -> Tensor:
    units = _draw_bits(x, generator).to(torch.float64).mul_(2.0**-BITS)
    return x.copy_(units.mul_(high - low).add_(low))


def _normal(
    x: Tensor, mean: float = 0, std: float = 1, *, generator: torch.Generator | None = None
) -> Tensor:
    seed = torch.empty((), dtype=torch.int64).random_(0, 2**BITS, generator=generator)
    drawn = np.random.default_rng(int(seed)).standard_normal(tuple(x.shape))
    return x.copy_(torch.from_numpy(np.asarray(drawn)).mul_(std).add_(mean))


def _bernoulli(x: Tensor, p: float = 0.5, *, generator: torch.Generator | None = None) -> Tensor:
    return x.copy_(_draw_bits(x, generator) < round(p * 2**BITS))


def _dropout(x: Tensor, share: float, train: bool | None) -> tuple[Tensor, Tensor]:
    kept = _draw_bits(x, None) >= round(share * 2**BITS)
    return x * kept.to(x.dtype).div_(1 - share), kept


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
    **_: object,
) -> None:
    """Take a step of Adam (Kingma and Ba 2015) in parts that stay in the cache."""
    if weight_decay:
        raise NotImplementedError("Adam with weight decay")
    for each in zip(parameters, gradients, means, squares, steps, strict=True):
        *tensors, step = each
        size = lr / (1 - power(beta1, int(step)))
        filled = math.sqrt(1 - power(beta2, int(step)))
        parts = (tensor.view(-1).split(_CACHED) for tensor in tensors)
        for p, g, mean, square in zip(*parts, strict=True):
            mean.mul_(beta1).add_(g.mul(1 - beta1))
            square.mul_(beta2).add_(g.mul(g).mul_(1 - beta2))
            p.sub_(mean.div(root(square).div_(filled).add_(eps)).mul_(size))


_EXACT: dict[str, Callable] = {
    "mm": product,
    "bmm": product,
    "addmm": _addmm,
    "baddbmm": _addmm,
    "mv": _mv,
    "dot": _dot,
    "convolution": _convolution,
    "sum": lambda x, dims=None, keepdim=False, **_: total(x, dims, keepdim),
    "mean": _mean,
    "linalg_vector_norm": _norm,
    "logsumexp": _logsumexp,
    "exp": exp,
    "log": log,
    "cos": cos,
    "sin": sin,
    "sigmoid": sigmoid,
    "tanh": tanh,
    "tanh_backward": _tanh_backward,
    "sigmoid_backward": _sigmoid_backward,
    "_softmax": _softmax,
    "_safe_softmax": _safe_softmax,
    "_softmax_backward_data": _softmax_backward,
    "_log_softmax": _log_softmax,
    "_log_softmax_backward_data": _log_softmax_backward,
    "native_layer_norm": _layer_norm,
    "native_layer_norm_backward": _layer_norm_backward,
    "native_batch_norm": _batch_norm,
    "native_batch_norm_backward": _batch_norm_backward,
    "nll_loss_forward": _nll_loss,
    "add": _add,
    "sub": _sub,
    "rsub": _rsub,
    "pow": _pow,
    "sqrt": root,
    "addcmul": _addcmul,
    "index_add_": _index_add_,
    "addcdiv": _addcdiv,
    "lerp": _lerp,
    "uniform_": _uniform,
    "normal_": _normal,
    "bernoulli_": _bernoulli,
    "native_dropout": _dropout,
    "_fused_adam_": _adam,
    "linalg_qr": _qr,
    "_foreach_norm": lambda tensors, order=2, **_: [_norm(x, order) for x in tensors],
}
"""What replaces an operation of float64; those in place are made of these."""

_COPIES = """
_embedding_bag _local_scalar_dense _reshape_alias _to_copy _unsafe_view alias arange as_strided cat
clone constant_pad_nd copy detach diagonal diagonal_backward diagonal_copy diagonal_scatter
embedding empty empty_like expand eye fill flip full full_like gather index index_copy index_fill
index_select lift lift_fresh linspace masked_fill masked_scatter masked_select new_empty
new_empty_strided new_full new_ones new_tensor new_zeros ones ones_like permute rand repeat roll
scalar_tensor scatter select select_backward select_scatter set slice slice_backward slice_scatter
split split_with_sizes squeeze stack t take transpose tril triu unbind unfold unfold_backward
unsafe_split unsqueeze view where zero zeros zeros_like
"""
_ROUNDED_ONCE = """
_foreach_add _foreach_div _foreach_mul _foreach_sub abs ceil clamp clamp_max clamp_min div floor
fmod hardtanh maximum minimum mul neg reciprocal relu remainder round sgn sign
threshold_backward trunc
"""
_COMPARISONS = """
_unique2 all amax amin any argmax argmin argsort bucketize cummax eq equal ge gt isfinite isinf
isnan kthvalue le logical_not lt max min msort ne nonzero searchsorted sort topk unique_dim
"""
_SUMS_IN_ORDER = """
_embedding_bag_backward _embedding_bag_dense_backward _embedding_bag_forward_only
_index_put_impl cumsum embedding_dense_backward index_put nll_loss_backward scatter_add
"""
"""Added row by row, in the order of the rows, whatever the number of threads."""

_PLAIN = frozenset((_COPIES + _ROUNDED_ONCE + _COMPARISONS + _SUMS_IN_ORDER).split())
"""What is exact as it is, by its name without the underscore of an operation in place."""


@cache
def _is_plain(op: torch._ops.OpOverload) -> bool:
    return op.overloadpacket.__name__.removesuffix("_") in _PLAIN or op.is_view


class Exact(TorchDispatchMode):
    """Within the block PyTorch computes float64 exactly, or raises.

    Raises:
        NotImplementedError: An operation on floating-point numbers is not known to be exact, or on
            numbers of another type than float64.
    """

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # Nothing here is compiled. Guarding each operation against it would import the compiler,
        # which takes longer than many a stage.
        return False

    def __torch_dispatch__(
        self, op: torch._ops.OpOverload, types: tuple, args: tuple = (), kwargs: dict | None = None
    ) -> object:
        """Replace one operation."""
        kwargs = kwargs or {}
        if _is_plain(op):
            return op(*args, **kwargs)
        name = op.overloadpacket.__name__
        function = _EXACT.get(name) or _EXACT.get(name.removesuffix("_"))
        if function and _is_float(args):
            _check_types(op, args)
            found = function(*args, **kwargs)
            return found if name in _EXACT else args[0].copy_(found)
        if op.has_kernel_for_dispatch_key(DispatchKey.CompositeImplicitAutograd):
            with self:  # inference mode hands over operations that are made of others
                # In C++: decompositions in Python import a solver of equations, in each process.
                return op._op_dk(DispatchKey.CompositeImplicitAutograd, *args, **kwargs)
        found = op(*args, **kwargs)
        if _is_float(args) or _is_float((found,)):
            raise NotImplementedError(f"f64: {op} is not known to give equal bits on every machine")
        return found


def _floats(values: tuple) -> Iterator[Tensor]:
    for value in values:
        for each in value if isinstance(value, tuple | list) else (value,):
            if isinstance(each, Tensor) and each.is_floating_point():
                yield each


def _is_float(values: tuple) -> bool:
    return any(True for _ in _floats(values))


def _check_types(op: torch._ops.OpOverload, args: tuple) -> None:
    # Draws are exact in any type, and Adam counts its steps in float32.
    other = {x.dtype for x in _floats(args)} - {torch.float64}
    if other and op.overloadpacket.__name__ not in ("uniform_", "normal_", "_fused_adam_"):
        raise NotImplementedError(f"f64: expected float64 in {op}, found {other}")


@contextmanager
def arithmetic(precision: str) -> Iterator[None]:
    """Compute exactly within the block if ``precision`` is ``f64``, else as fast as is known."""
    if precision != F64:
        with fast_products():
            yield
        return
    # Fused attention adds in an order of its own.
    with Exact(), sdpa_kernel(SDPBackend.MATH):
        yield


# The inner loops, without the cost of looking up each operation


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
    bits = _bits_of_factors(len(weight))
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
    sigmoid_backward=aten.sigmoid_backward,
    tanh_backward=aten.tanh_backward,
)
_EXACT_KERNELS = Kernels(
    affine=_exact_affine,
    product=product,
    column_sums=lambda x: total(x, 0),
    sigmoid_=lambda x: x.copy_(sigmoid(x)),
    tanh_=lambda x: x.copy_(tanh(x)),
    gates_=_exact_gates_,
    addcmul=_addcmul,
    sigmoid_backward=_sigmoid_backward,
    tanh_backward=_tanh_backward,
)


def made_of_kernels(function: Callable) -> Callable:
    """Decorate a function that is exact by itself: :class:`Exact` need not watch its operations.

    That takes 10 microseconds for each of them, as long as the operation itself on a small tensor.
    """

    @wraps(function)
    def unwatched(*args: object, **kwargs: object) -> object:
        watched = isinstance(_get_current_dispatch_mode(), Exact)
        with _disable_current_modes() if watched else nullcontext():
            return function(*args, **kwargs)

    return unwatched
