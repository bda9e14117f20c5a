"""Similarities between vectors of the joint space, as matrices of all pairs; higher is closer.

Called by the training loop; evaluation.retrieval.scores has the same for whole test sets (a test
compares).
"""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx, once_differentiable

EUCLIDEAN_FLOOR = 1e-4
"""Added to squared distances before their root, whose slope at 0 is infinite (MULE's code)."""

ORDER_FLOOR = 1e-12
"""The same for the order similarity, small enough not to blur it."""

_DIFFERENCES_AT_ONCE = 2**24
"""On CUDA: 64 MB of float32."""


def cosine(a: Tensor, b: Tensor) -> Tensor:
    """Return the cosine of every pair of unit vectors ``[n, dim]``, ``[m, dim]``: ``[n, m]``."""
    return a @ b.T


def euclidean(a: Tensor, b: Tensor) -> Tensor:
    """Return minus the distance of every pair of unit vectors (the code of Kim et al. 2020)."""
    return -(2 - 2 * (a @ b.T) + EUCLIDEAN_FLOOR).clamp(min=EUCLIDEAN_FLOOR).sqrt()


def squared_order(a: Tensor, b: Tensor) -> Tensor:
    """Return ``-|max(0, b - a)|²`` of every pair: how far a is from lying above b in the order.

    Images are a, sentences b (Eq. 5 of Mohammadshahi et al. 2019, after Vendrov et al. 2016, §3).
    """
    return _SquaredOrder.apply(a, b)


def order(a: Tensor, b: Tensor) -> Tensor:
    """Return ``-|max(0, b - a)|`` of every pair: the root that AME's code takes of Eq. 5."""
    return -(ORDER_FLOOR - squared_order(a, b)).sqrt()


SIMILARITIES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "cosine": cosine,
    "euclidean": euclidean,
    "order": order,
    "squared_order": squared_order,
}


def _above(a: Tensor, b: Tensor) -> Tensor:
    return -(b - a).clamp_(min=0).square_().sum(dim=1)


def _above_in_blocks(a: Tensor, b: Tensor) -> Tensor:
    return torch.cat(
        [-(b - rows[:, None]).clamp_(min=0).square_().sum(2) for rows in _blocks(a, b)]
    )


def _above_in_blocks_backward(a: Tensor, b: Tensor, gradient: Tensor) -> tuple[Tensor, Tensor]:
    of_a, of_b = [], torch.zeros_like(b)
    parts = _blocks(a, b)
    for rows, weights in zip(parts, (2 * gradient).split([*map(len, parts)]), strict=True):
        above = (b - rows[:, None]).clamp_(min=0).mul_(weights[:, :, None])
        of_a.append(above.sum(dim=1))
        of_b -= above.sum(dim=0)
    return torch.cat(of_a), of_b


def _blocks(a: Tensor, b: Tensor) -> tuple[Tensor, ...]:
    """Cut rows of ``a`` so that each block with all of ``b`` holds few enough differences."""
    return a.split(max(1, _DIFFERENCES_AT_ONCE // max(1, b.numel())))


class _SquaredOrder(torch.autograd.Function):
    """Row by row, so that no ``[n, m, dim]`` is ever held (2 GB for 100 x 5,000 pairs of 1,024).

    Rows are of the side that has fewer: one query is compared with all photos at once. On CUDA,
    which a row keeps too little busy, they come in blocks.
    """

    @staticmethod
    def forward(ctx: FunctionCtx, a: Tensor, b: Tensor) -> Tensor:
        ctx.save_for_backward(a, b)
        if not len(a) or not len(b):
            return a.new_empty(len(a), len(b))
        if a.is_cuda:
            return _above_in_blocks(a, b)
        if len(a) <= len(b):
            return torch.stack([_above(row, b) for row in a])
        return torch.stack([_above(a, row) for row in b], dim=1)

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, gradient: Tensor) -> tuple[Tensor, Tensor]:
        a, b = ctx.saved_tensors
        if a.is_cuda:
            return _above_in_blocks_backward(a, b, gradient)
        of_a, of_b = torch.zeros_like(a), torch.zeros_like(b)
        for row, weights, of_row in zip(a, 2 * gradient, of_a, strict=True):
            used = weights.nonzero()[:, 0]  # most pairs violate no margin
            above = (b[used] - row).clamp_(min=0)
            of_row.copy_(weights[used] @ above)
            of_b.index_add_(0, used, above.mul_(-weights[used, None]))
        return of_a, of_b
