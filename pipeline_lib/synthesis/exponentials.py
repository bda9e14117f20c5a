"""Powers and logarithms that are the same on every machine.

A library's own differ in the last bit between CPUs. These consist of additions, multiplications
and divisions alone, each of which IEEE 754 determines.
"""

import torch
from torch import Tensor

LN_2 = 0.6931471805599453

_POWER_TERMS = 14
"""Of 2^x for ``|x| <= 1/2``: the next would be below 1e-18."""

_LOG_TERMS = 11
"""Of ln x for x from .7 to 1.4, likewise."""


def power_of_two(x: Tensor) -> Tensor:
    """Return ``2^x`` for numbers from -1022 to 1023, in float64."""
    whole = x.round()
    rest = (x - whole).mul_(LN_2)
    power = torch.ones_like(x)
    for n in range(_POWER_TERMS, 0, -1):
        power.mul_(rest).mul_(1 / n).add_(1)
    # A float64 without fraction: its biased exponent alone.
    return power.mul_((whole.long() + 1023).bitwise_left_shift_(52).view(torch.float64))


def log(x: Tensor) -> Tensor:
    """Return the natural logarithm of positive numbers, in float64."""
    mantissa, exponent = torch.frexp(x)
    low = mantissa < 0.7
    mantissa, exponent = torch.where(low, 2 * mantissa, mantissa), exponent - low.int()
    # ln m = 2 artanh((m - 1) / (m + 1))
    ratio = (mantissa - 1) / (mantissa + 1)
    square, series = ratio * ratio, torch.zeros_like(x)
    for n in range(_LOG_TERMS, -1, -1):
        series = series * square + 1 / (2 * n + 1)
    return 2 * ratio * series + exponent.double() * LN_2
