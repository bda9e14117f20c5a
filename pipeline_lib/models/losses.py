"""Losses: of score matrices, never of a model, so that they can be checked by hand.

A loss is added by a class here, and by its keys under the same name in settings/losses.py.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import torch
from torch import Tensor, nn

Terms = dict[str, Tensor]
"""Named parts of a loss; the loss is their sum."""

HIGHEST_LOG_SCALE = math.log(100)
"""Similarities are scaled by at most so much (§2.5 of Radford et al. 2021)."""


def violations_that_count(hinge: Tensor, violations: str | int) -> Tensor:
    """Reduce each query's violations ``[queries, candidates]`` to one number ``[queries]``.

    Args:
        hinge: Violations; 0 where there is none or the candidate is not a negative.
        violations: ``sum`` (Kiros et al. 2014), the hardest, ``max`` (Faghri et al. 2018), or the
            mean of so many of the hardest (Wang et al. 2019; of all candidates, where there are
            fewer). Of fewer negatives than that, others count in the mean with their 0.
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


class Side(NamedTuple):
    """Queries of one side of a batch, and all of the other side, where each has its own.

    Attributes:
        scores: Similarities ``[queries, candidates]``.
        own: Similarity of each query to its own candidate ``[queries]``.
        excluded: ``bool [queries, candidates]``, true for candidates that are no negatives.
    """

    scores: Tensor
    own: Tensor
    excluded: Tensor


@dataclass(frozen=True)
class Candidates:
    """The two sides of a batch, rows and columns: each is what the other chooses from.

    Row ``i`` belongs to column ``i``, of the first ``pairs``; further rows and columns are
    negatives alone. Where several processes share a batch, each has the queries of a part of the
    pairs, and all that these choose from.

    Attributes:
        scores: Similarities ``[rows, columns]``; ``[part, columns]`` of a part.
        rows: Image of each row ``[rows]``; what is of one image is not each other's negative.
        columns: Image of each column ``[columns]``.
        pairs: How many rows belong to a column.
        negatives: Each query meets so many random ones; all of the batch if None.
        part: Which pairs' queries count here.
        turned: Similarities of the part's columns to all rows ``[part, rows]``; None if all pairs
            count, where it is ``scores`` turned.
    """

    scores: Tensor
    rows: Tensor
    columns: Tensor
    pairs: int
    negatives: int | None = None
    part: slice = field(default_factory=lambda: slice(None))
    turned: Tensor | None = None

    @classmethod
    def paired(cls, scores: Tensor, images: Tensor, negatives: int | None = None) -> "Candidates":
        """Return those of a batch of pairs: scores ``[pairs, pairs]``, an image of each."""
        return cls(scores, images, images, len(images), negatives)

    def scaled(self, factor: Tensor) -> "Candidates":
        """Return the same with all similarities times a number."""
        turned = None if self.turned is None else self.turned * factor
        return replace(self, scores=self.scores * factor, turned=turned)

    def sides(self) -> Iterator[Side]:
        """Yield the rows among the columns, then the columns among the rows."""
        own = self.scores.diagonal(self.part.start or 0)[: self.pairs]
        turned = self.scores.T if self.turned is None else self.turned
        yield Side(self.scores[: self.pairs], own, self._excluded(self.rows, self.columns))
        yield Side(turned[: self.pairs], own, self._excluded(self.columns, self.rows))

    def _excluded(self, queries: Tensor, candidates: Tensor) -> Tensor:
        """Return what is no negative, from the images of one side and of the other."""
        queries = queries[: self.pairs]
        if self.negatives is None:
            return queries[self.part][:, None] == candidates[None, :]
        same = queries[:, None] == candidates[None, :]
        # Chance is that of the whole batch, whatever part of it counts here.
        return (same | ~drawn_negatives(same, self.negatives))[self.part]


class Hinge(nn.Module):
    """The ranking hinge of rows against columns plus that of columns against rows.

    Eq. 1 of Calixto et al. 2017 and of Kádár et al. 2019.
    """

    def __init__(self, margin: float, violations: str | int) -> None:
        """Take the margin, alpha, and what :func:`violations_that_count`."""
        super().__init__()
        self.margin, self.violations = margin, violations

    def forward(self, batch: Candidates) -> Terms:
        """Rank each pair above wrong ones; see :data:`LOSSES`."""
        total = batch.scores.new_zeros(())
        for side in batch.sides():
            total = total + ranking_hinge(*side, self.margin, self.violations).sum()
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

    def forward(self, batch: Candidates) -> Terms:
        """Make each pair likelier than wrong ones; see :data:`LOSSES`."""
        with torch.no_grad():  # bounded in the loss alone, it would have no gradient to come back
            self.log_scale.clamp_(max=HIGHEST_LOG_SCALE)
        scaled = batch.scaled(self.log_scale.exp())
        terms = {}
        for name, side in zip(("rows", "columns"), scaled.sides(), strict=True):
            rivals = side.scores.masked_fill(side.excluded, -torch.inf)
            all_of_them = torch.cat([side.own[:, None], rivals], 1)
            terms[name] = (all_of_them.logsumexp(1) - side.own).sum()
        return terms


LOSSES: dict[str, Callable[..., nn.Module]] = {"hinge": Hinge, "infonce": InfoNCE}
"""Each is made of its keys in a recipe, and called with a batch's :class:`Candidates`.

It returns terms that are summed over the queries of both :meth:`Candidates.sides`, and that add up
to the loss; so the sum over all parts of a batch is the loss of the batch.
"""


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
    scores: Tensor,
    positive: Tensor,
    excluded: Tensor,
    margin: float,
    violations: str | int,
    queries: int | None = None,
) -> Tensor:
    """Bring a query's hardest right candidate nearer than its wrong ones (Wang et al. 2019).

    Args:
        scores: Similarities ``[queries, candidates]``.
        positive: ``bool [queries, candidates]``, true where both describe one image.
        excluded: ``bool``, true for candidates that are no negatives: the right ones, itself.
        margin: The hinge's margin.
        violations: See :func:`violations_that_count`.
        queries: How many the mean is over, if these are a part of them.

    Returns:
        The mean loss of the queries that have a right candidate; 0 if none has.
    """
    has_one = positive.any(dim=1)
    if not has_one.any():
        return scores.sum() * 0
    if not has_one.all():
        scores, positive, excluded = scores[has_one], positive[has_one], excluded[has_one]
    hardest = scores.masked_fill(~positive, torch.inf).amin(dim=1)
    losses = ranking_hinge(scores, hardest, excluded, margin, violations)
    return losses.mean() if queries is None else losses.sum() / queries


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
