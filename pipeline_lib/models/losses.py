"""Ranking losses: pure functions of score matrices, so that they can be checked by hand."""

from collections.abc import Callable

import torch
from torch import Tensor


def sum_of_violations(hinge: Tensor) -> Tensor:
    """Add up every violation (Kiros et al. 2014; Eq. 1 of Calixto et al. 2017)."""
    return hinge.sum()


def hardest_violation(hinge: Tensor) -> Tensor:
    """Add up each query's largest violation (Faghri et al. 2018; Eq. 1 of Kádár et al. 2019)."""
    return hinge.amax(dim=1).sum()


VIOLATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "sum": sum_of_violations,
    "max": hardest_violation,
}


def ranking_hinge(scores: Tensor, positive: Tensor, margin: float, violations: str) -> Tensor:
    """Rank each query's own candidate above all wrong ones by a margin.

    Query ``i`` is paired with candidate ``i``. Every other candidate that is also right for it (a
    second caption of the same image) is neither its positive here nor ever a negative.

    Args:
        scores: Similarities ``[queries, queries]``; row ``i`` holds query ``i``'s candidates.
        positive: ``bool [queries, queries]``, true where the candidate is right for the query.
        margin: The hinge's margin, alpha.
        violations: Which negatives count: a key of :data:`VIOLATIONS`.

    Returns:
        The loss of this direction, summed over queries. Transpose ``scores`` for the other one.
    """
    hinge = (margin + scores - scores.diagonal()[:, None]).clamp(min=0)
    return VIOLATIONS[violations](hinge.masked_fill(positive, 0))


def bidirectional_hinge(scores: Tensor, group: Tensor, margin: float, violations: str) -> Tensor:
    """Return the ranking hinge of rows against columns plus that of columns against rows.

    Args:
        scores: Similarities ``[pairs, pairs]`` of the two sides of a batch of pairs.
        group: Image of each pair ``[pairs]``; pairs of one image are not each other's negatives.
        margin: The hinge's margin, alpha.
        violations: Which negatives count: a key of :data:`VIOLATIONS`.
    """
    positive = group[:, None] == group[None, :]
    return torch.stack(
        [ranking_hinge(side, positive, margin, violations) for side in (scores, scores.T)]
    ).sum()
