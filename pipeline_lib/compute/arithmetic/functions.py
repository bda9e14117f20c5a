"""Functions of single numbers from operations that every CPU rounds alike."""

import math
from collections.abc import Callable
from functools import wraps
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

Number = TypeVar("Number", float, Tensor)

CACHED = 2**14
"""Numbers that stay in a near cache from one operation to the next."""

_LOG2_E = 1.4426950408889634
_LN2_HIGH, _LN2_LOW = 0.6931471803691238, 1.9082149292705877e-10  # the first has 21 zero bits
_EXP_TERMS = [1 / math.factorial(n) for n in range(5, -1, -1)]
_SQUARINGS = 4
_LOG_TERMS = [2 / n for n in range(21, 0, -2)]
_ROUND = 1.5 * 2.0**52
_TAU_HIGH = math.floor(math.tau * 2**30) / 2**30
_TAU_LOW = -2.449293598294706e-16 + math.tau - _TAU_HIGH
_COS_TERMS = [(-1) ** n / math.factorial(2 * n) for n in range(6, -1, -1)]
_DOUBLINGS = 3


def _in_parts(function: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """Decorate a function of single numbers: it takes some at a time, which stay in the cache."""

    @wraps(function)
    def in_parts(x: Tensor) -> Tensor:
        if x.numel() <= CACHED:
            return function(x)
        return torch.cat([function(part) for part in x.reshape(-1).split(CACHED)]).view(x.shape)

    return in_parts


def root(x: Tensor) -> Tensor:
    """Return the square root of each number, rounded correctly.

    PyTorch takes it from MKL, whose last bit differs between CPUs; NumPy from the CPU itself.
    """
    if x.is_cuda:
        return x.sqrt()
    found = torch.empty_like(x)
    np.sqrt(x.detach().numpy(), out=found.numpy())
    return found


def power(base: Number, exponent: int) -> Number:
    """Return a power, for a tensor one above zero, by multiplications.

    The C library's differs in its last bit between CPUs.
    """
    found = 1.0
    while exponent:
        if exponent & 1:
            found *= base
        base, exponent = base * base, exponent >> 1
    return found


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
    """Return the natural logarithm, to 1e-15; NaN of what is below zero."""
    bits = x.contiguous().view(torch.int64)
    # The power of two next below sqrt(2) x: what is left lies in 1/sqrt(2) .. sqrt(2).
    exponent = bits.sub(0x3FE6A09E667F3BCD).bitwise_right_shift_(52)
    left = bits.sub(exponent.bitwise_left_shift(52)).view(torch.float64)
    ratio = left.sub(1).div_(left.add(1))
    value = _polynomial(ratio.mul(ratio), _LOG_TERMS).mul_(ratio)
    power = exponent.to(torch.float64)
    found = power.mul(_LN2_LOW).add_(value).add_(power.mul_(_LN2_HIGH))
    plain = x.gt(0).logical_and_(x.lt(math.inf))
    if plain.all():
        return found
    others = x.masked_fill(x < 0, math.nan).masked_fill_(x == 0, -math.inf)
    return torch.where(plain, found, others)


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


@_in_parts
def sigmoid(x: Tensor) -> Tensor:
    """Return 1 / (1 + e^-x)."""
    return exp(x.neg()).add_(1).reciprocal_()


@_in_parts
def tanh(x: Tensor) -> Tensor:
    """Return the hyperbolic tangent, to 1e-11."""
    return exp(x.mul(2)).add_(1).reciprocal_().mul_(-2).add_(1)


def tanh_backward(gradient: Tensor, y: Tensor) -> Tensor:
    """Return the gradient before a hyperbolic tangent whose value is ``y``."""
    return y.mul(y).neg_().add_(1).mul_(gradient)


def sigmoid_backward(gradient: Tensor, y: Tensor) -> Tensor:
    """Return the gradient before a sigmoid whose value is ``y``."""
    return y.neg().add_(1).mul_(y).mul_(gradient)


def _polynomial(x: Tensor, coefficients: list[float]) -> Tensor:
    value = x.mul(coefficients[0]).add_(coefficients[1])
    for coefficient in coefficients[2:]:
        value.mul_(x).add_(coefficient)
    return value
