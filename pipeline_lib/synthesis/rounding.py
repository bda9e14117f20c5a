"""How far scores of vectors in a fast precision are from the exact ones, by proof."""

import torch
from torch import Tensor

_ROWS = 4096


def fast_precision(device: torch.device) -> torch.dtype:
    """Return the type in which the device multiplies matrices fastest and adds in float32."""
    # A GPU may add bfloat16 products in bfloat16, which the bound does not cover; a CPU that has
    # to emulate bfloat16 is slower with it than in float32.
    native = any(torch.cpu.get_capabilities().get(name) for name in ("avx512_bf16", "amx_bf16"))
    return torch.bfloat16 if device.type == "cpu" and native else torch.float32


def score_error(a: Tensor, b: Tensor, offset: Tensor, precision: torch.dtype) -> Tensor:
    """Bound how far a score of cast vectors is from that of the vectors, before it is rounded.

    By Cauchy-Schwarz: what the cast took from either vector, times the length of the other.

    Args:
        a: Vectors ``float32 [a, dim]``.
        b: Vectors ``float32 [b, dim]``.
        offset: Added to the scores of each vector of ``b``, as two numbers of ``precision``.
        precision: Type of the product's operands and result; it is summed in float32.

    Returns:
        A bound for all scores of each vector of ``a``, ``[a]``.
    """
    length, lost = _lengths(a, precision)
    longest_b, most_lost = (values.max() for values in _lengths(b, precision))
    shift = offset.abs().max().cpu()
    # Twice float32's rounding per addition, because instructions differ in how they round.
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
    """Return the length of each vector and of what a cast takes from it, ``[vectors]`` each."""
    lengths = [
        (block.norm(dim=1), (block - block.to(precision).float()).norm(dim=1))
        for block in vectors.split(_ROWS)
    ]
    return tuple(torch.cat(parts).cpu() for parts in zip(*lengths, strict=True))
