"""Ranking losses: pure functions of score matrices, so that they can be checked by hand."""

import torch
from torch import Tensor


def violations_that_count(hinge: Tensor, violations: str | int) -> Tensor:
    """Reduce each query's violations ``[queries, candidates]`` to one number ``[queries]``.

    Args:
        hinge: Violations; 0 where there is none or the candidate is not a negative.
        violations: ``sum`` (Kiros et al. 2014), the hardest, ``max`` (Faghri et al. 2018), or the
            mean of so many of the hardest (Wang et al. 2019; of all, where there are fewer).
    """
    if violations == "sum":
        return hinge.sum(dim=1)
    if violations == "max":
        return hinge.amax(dim=1)
    return hinge.topk(min(violations, hinge.shape[1]), dim=1).values.mean(dim=1)


def ranking_hinge(
    scores: Tensor, own: Tensor, excluded: Tensor, margin: float, violations: str | int
) -> Tensor:
    """Rank each query's own candidate above all wrong ones by a margin.

    Args:
        scores: Similarities ``[queries, candidates]``.
        own: Similarity of each query to its own candidate ``[queries]``.
        excluded: ``bool [queries, candidates]``, true for candidates that are no negatives: its
            own, and every other right one (a second caption of the same image).
        margin: The hinge's margin, alpha.
        violations: See :func:`violations_that_count`.

    Returns:
        The loss of each query ``[queries]``.
    """
    hinge = (margin + scores - own[:, None]).clamp(min=0).masked_fill(excluded, 0)
    return violations_that_count(hinge, violations)


def bidirectional_hinge(
    scores: Tensor,
    group: Tensor,
    margin: float,
    violations: str | int,
    terms: int | None = None,
) -> Tensor:
    """Return the ranking hinge of rows against columns plus that of columns against rows.

    Row ``i`` is paired with column ``i`` (Eq. 1 of Calixto et al. 2017 and of Kádár et al. 2019).

    Args:
        scores: Similarities ``[pairs, pairs]`` of the two sides of a batch of pairs.
        group: Image of each pair ``[pairs]``; pairs of one image are not each other's negatives.
        margin: The hinge's margin, alpha.
        violations: See :func:`violations_that_count`.
        terms: Each query meets so many random negatives; all of the batch if None.

    Returns:
        The sum over queries of both directions.
    """
    same = group[:, None] == group[None, :]
    total = scores.new_zeros(())
    for side in (scores, scores.T):
        excluded = same if terms is None else same | ~drawn_negatives(same, terms)
        total = total + ranking_hinge(side, side.diagonal(), excluded, margin, violations).sum()
    return total


def drawn_negatives(positive: Tensor, terms: int) -> Tensor:
    """Draw ``terms`` negatives of each query at random, by torch's generator (all, if fewer).

    Args:
        positive: ``bool [queries, candidates]``, true where the candidate is right.
        terms: Negatives per query.

    Returns:
        ``bool [queries, candidates]``, true for the negatives drawn.
    """
    lots = torch.rand(positive.shape, device=positive.device).masked_fill(positive, -1)
    bound = lots.topk(min(terms, lots.shape[1]), dim=1).values[:, -1:]
    return (lots >= bound) & ~positive


def neighbourhood_hinge(
    scores: Tensor, positive: Tensor, excluded: Tensor, margin: float, violations: str | int
) -> Tensor:
    """Bring a query's hardest right candidate nearer than its wrong ones (Wang et al. 2019).

    Args:
        scores: Similarities ``[queries, candidates]``.
        positive: ``bool [queries, candidates]``, true where both describe one image.
        excluded: ``bool``, true for candidates that are no negatives: the right ones, itself.
        margin: The hinge's margin.
        violations: See :func:`violations_that_count`.

    Returns:
        The mean loss of the queries that have a right candidate; 0 if none has.
    """
    has_one = positive.any(dim=1)
    if not has_one.any():
        return scores.sum() * 0
    if not has_one.all():
        scores, positive, excluded = scores[has_one], positive[has_one], excluded[has_one]
    hardest = scores.masked_fill(~positive, torch.inf).amin(dim=1)
    return ranking_hinge(scores, hardest, excluded, margin, violations).mean()


class _Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx: object, values: Tensor) -> Tensor:
        return values.view_as(values)

    @staticmethod
    def backward(ctx: object, gradient: Tensor) -> Tensor:
        return -gradient


def reverse_gradient(values: Tensor) -> Tensor:
    """Return ``values`` with the gradient's sign turned (Ganin & Lempitsky 2014), not its size.

    The weight of an adversarial loss belongs to the loss alone: MULE's code applies it here too,
    so that the shared layer saw its square.
    """
    return _Reverse.apply(values)
