"""Sums and products of numbers that are first rounded to a grid: exact in any order."""

import math

import torch
from torch import Tensor

BITS = 53
"""Of a float64's significand."""

_MOST_TERMS = 2**11
"""Terms of a product that are added at a time: more are cut into parts, added one by one."""


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


def _shifter(largest: Tensor, bits: int) -> Tensor:
    """Return 1.5 * 2^(52 - bits) times the power of two: adding it rounds to its unit."""
    power = largest.view(torch.int64).bitwise_and_(0x7FF << 52)
    return power.add_((BITS - bits << 52) + (1 << 51)).view(torch.float64)


def bits_of_factors(terms: int) -> int:
    """Return the bits of both factors with which the sum of so many products is exact."""
    return (BITS - (terms - 1).bit_length()) // 2


def product(a: Tensor, b: Tensor) -> Tensor:
    """Return ``a @ b`` of ``[..., n, k]`` and ``[..., k, m]``, rounded to a grid and exact."""
    terms = a.shape[-1]
    if terms > _MOST_TERMS:
        parts = zip(a.split(_MOST_TERMS, -1), b.split(_MOST_TERMS, -2), strict=True)
        return _sum_in_order([product(*part) for part in parts])
    if not terms or not a.numel() or not b.numel():
        return a @ b
    bits = bits_of_factors(terms)
    return to_grid(a, bits, -1) @ to_grid(b, bits, -2)


def _sum_in_order(parts: list[Tensor]) -> Tensor:
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def precise_product(a: Tensor, b: Tensor) -> Tensor:
    """Return ``a @ b`` of ``[n, k]`` and ``[k, m]``, with twice the bits of :func:`product`."""
    bits = bits_of_factors(a.shape[1])
    a_high, b_high = to_grid(a, bits, 1), to_grid(b, bits, 0)
    a_low, b_low = a - a_high, b - b_high
    return (a_high @ b_high) + (product(a_low, b_high) + product(a, b_low))


def total(x: Tensor, dims: list[int] | int | None = None, keepdim: bool = False) -> Tensor:
    """Return the sum along some dimensions (all if None), of numbers rounded to a grid."""
    dims = _every(x, dims)
    terms = math.prod(x.shape[d] for d in dims)
    if terms > 1 and x.numel():
        x = to_grid(x, BITS - 1 - (terms - 1).bit_length(), dims)
    return torch.ops.aten.sum.dim_IntList(x, dims, keepdim)


def average(x: Tensor, dims: list[int] | None = None, keepdim: bool = False, **_: object) -> Tensor:
    """Return the mean along some dimensions (all if None)."""
    count = math.prod(x.shape[d] for d in _every(x, dims))
    return total(x, dims, keepdim).div_(count)


def _every(x: Tensor, dims: list[int] | int | None) -> tuple[int, ...]:
    if isinstance(dims, int):
        return (dims,)
    return tuple(dims) if dims else tuple(range(x.ndim))
