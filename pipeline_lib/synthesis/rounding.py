"""Vectors rounded to a grid, and how far scores in a fast precision are from theirs, by proof."""

import torch
from torch import Tensor

from pipeline_lib.compute.arithmetic.functions import root
from pipeline_lib.compute.device import multiplies_bf16, one_core_each
from pipeline_lib.compute.exact import GRID_BITS, LENGTH_SCALE, ordered_sum

_ROWS = 4096

_BLOCK = 128
"""Vectors whose lengths are summed at a time: they stay in the cache."""


class Gridded:
    """Vectors that are rounded to their grids when they are looked at.

    Products of two of them are exact in float64, in any order: see compute/exact.py, whose
    ``on_grid`` does the same to arrays.
    """

    def __init__(self, vectors: Tensor) -> None:
        """Wrap vectors ``[n, dim]``, float32 or float64, and choose their grids."""
        self.vectors = vectors
        with one_core_each():  # blocks are small
            spacings = [_spacing(block) for block in vectors.split(_BLOCK)]
        self._spacing = torch.cat(spacings)[:, None]

    def __len__(self) -> int:
        return len(self.vectors)

    def __getitem__(self, rows: Tensor | slice) -> Tensor:
        """Return the rounded vectors of some rows, ``float64 [rows, dim]``."""
        spacing = self._spacing[rows]
        return (self.vectors[rows] / spacing).round_().mul_(spacing).double()


def fast_precision(device: torch.device) -> torch.dtype:
    """Return the type in which the device multiplies matrices fastest and adds in float32."""
    # A GPU may add bfloat16 products in bfloat16, which the bound does not cover.
    native = device.type == "cpu" and multiplies_bf16(device)
    return torch.bfloat16 if native else torch.float32


def score_error(a: Tensor, b: Tensor, offset: Tensor, precision: torch.dtype) -> Tensor:
    """Bound how far a score of cast vectors is from the exact one, before it is rounded.

    By Cauchy-Schwarz: what the cast and the grid took from either vector, times the length of the
    other.

    Args:
        a: Vectors ``[a, dim]``.
        b: Vectors ``[b, dim]``.
        offset: Added to the scores of each vector of ``b``, as two numbers of ``precision``.
        precision: Type of the product's operands and result; it is summed in float32.

    Returns:
        A bound for all scores of each vector of ``a``, ``[a]``.
    """
    length, lost = _lengths(a, precision)
    longest_b, most_lost = (values.max() for values in _lengths(b, precision))
    shift = offset.abs().max().cpu()
    # Twice float32's rounding per addition, because instructions differ in how they round. It is
    # also far more than is lost by adding the offset in float64, and in the lengths used here.
    summation = (a.shape[1] + 2) * torch.finfo(torch.float32).eps * (length * longest_b + shift)
    return (
        lost * longest_b
        + (length + lost) * most_lost
        + half_unit(precision) ** 2 * shift
        + summation
    )


def candidate_floor(kth: Tensor, error: Tensor, precision: torch.dtype) -> Tensor:
    """Return the rounded score below which no vector is among the exact k best.

    Rounding keeps the order. So before it the k-th best score is at most half a unit lower than
    the k-th best rounded one; the scores of the exact k best are at most twice ``error`` lower
    than that; and they are rounded in their turn.

    Args:
        kth: The k-th best rounded scores ``[queries]``.
        error: Of :func:`score_error`, ``[queries]``.
        precision: In which the scores were rounded.
    """
    floor = kth - half_unit(precision) * kth.abs() - 2 * error
    return floor - half_unit(precision) * floor.abs()


def half_unit(precision: torch.dtype) -> float:
    """Return the largest relative error of rounding to the nearest number of a type."""
    return torch.finfo(precision).eps / 2


def _lengths(vectors: Tensor, precision: torch.dtype) -> tuple[Tensor, Tensor]:
    """Return the length of each vector and of what is taken from it, ``[vectors]`` each."""
    parts = [
        (block.norm(dim=1), (block - block.to(precision).to(block.dtype)).norm(dim=1))
        for block in vectors.split(_ROWS)
    ]
    length, lost = (torch.cat(part).double().cpu() for part in zip(*parts, strict=True))
    # The grid takes half its spacing of a coordinate, which is 2^-GRID_BITS of a power of two
    # that is at most twice LENGTH_SCALE times the length.
    return length, lost + LENGTH_SCALE * vectors.shape[1] ** 0.5 * 2.0**-GRID_BITS * length


def _spacing(vectors: Tensor) -> Tensor:
    wide = vectors.double()
    lengths = root(ordered_sum((wide * wide).T))
    scaled = torch.where(lengths > 0, lengths * LENGTH_SCALE, 0.5)
    # What is left of a number without its mantissa: a power of two, to the last bit.
    power = scaled / torch.frexp(scaled).mantissa
    return (power * 2.0**-GRID_BITS).to(vectors.dtype)
