"""Losses: of score matrices, never of a model, so that they can be checked by hand.

A loss is added by a class here, and by its keys under the same name in settings/losses.py.
"""

import math
from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn

Terms = dict[str, Tensor]
"""Named parts of a loss; the loss is their sum."""

_HIGHEST_LOG_SCALE = math.log(100)
"""Similarities are scaled by at most so much (§2.5 of Radford et al. 2021)."""


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


class Hinge(nn.Module):
    """The ranking hinge of rows against columns plus that of columns against rows.

    Eq. 1 of Calixto et al. 2017 and of Kádár et al. 2019.
    """

    def __init__(self, margin: float, violations: str | int) -> None:
        """Take the margin, alpha, and what :func:`violations_that_count`."""
        super().__init__()
        self.margin, self.violations = margin, violations

    def forward(
        self,
        scores: Tensor,
        rows: Tensor,
        negatives: int | None = None,
        columns: Tensor | None = None,
        pairs: int | None = None,
    ) -> Terms:
        """Rank each pair above wrong ones; see :data:`LOSSES`."""
        total = scores.new_zeros(())
        for side, own, excluded in _sides(scores, rows, negatives, columns, pairs):
            total = total + ranking_hinge(side, own, excluded, self.margin, self.violations).sum()
        return {"hinge": total}


class InfoNCE(nn.Module):
    """Cross-entropy of the right column of each row, and of the right row of each column.

    The loss of Radford et al. 2021, after van den Oord et al. 2018, but that captions of one image
    are no negatives of each other.
    """

    def __init__(self, temperature: float, tune_temperature: bool) -> None:
        """Divide similarities by ``temperature``, at the start if it is tuned."""
        super().__init__()
        start = torch.tensor(-math.log(temperature))
        self.log_scale = nn.Parameter(start, requires_grad=tune_temperature)

    def forward(
        self,
        scores: Tensor,
        rows: Tensor,
        negatives: int | None = None,
        columns: Tensor | None = None,
        pairs: int | None = None,
    ) -> Terms:
        """Make each pair likelier than wrong ones; see :data:`LOSSES`."""
        scaled = scores * self.log_scale.clamp(max=_HIGHEST_LOG_SCALE).exp()
        terms = {}
        for name, (side, own, excluded) in zip(
            ("rows", "columns"), _sides(scaled, rows, negatives, columns, pairs), strict=True
        ):
            rivals = side.masked_fill(excluded, -torch.inf)
            terms[name] = (torch.cat([own[:, None], rivals], 1).logsumexp(1) - own).sum()
        return terms


LOSSES: dict[str, Callable[..., nn.Module]] = {"hinge": Hinge, "infonce": InfoNCE}
"""Each is made of its keys in a recipe, and called with these, the first two by place:

- scores: Similarities ``[rows, columns]`` of the two sides of a batch. Row ``i`` belongs to column
  ``i``, of the first ``pairs``; further rows and columns are negatives alone.
- rows: Image of each row ``[rows]``; what is of one image is not each other's negative.
- negatives: Each query meets so many random ones; all of the batch if None.
- columns: Image of each column ``[columns]``; if None, that of the rows.
- pairs: How many rows belong to a column; all if None.

It returns terms that are summed over the queries of both directions and that add up to the loss.
"""


def _sides(
    scores: Tensor,
    rows: Tensor,
    negatives: int | None,
    columns: Tensor | None,
    pairs: int | None,
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Yield both directions: scores of the queries, those of their own, what is no negative."""
    pairs = len(rows) if pairs is None else pairs
    own = scores.diagonal()[:pairs]
    same = rows[:, None] == (rows if columns is None else columns)[None, :]
    for side, excluded in ((scores, same), (scores.T, same.T)):
        queries, excluded = side[:pairs], excluded[:pairs]
        if negatives is not None:
            excluded = excluded | ~drawn_negatives(excluded, negatives)
        yield queries, own, excluded


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
