"""Which caption each caption borrows: rules from vectors of both sides to pairs.

A caption that is near to many others (a hub) is borrowed by many. One rule corrects its scores,
in the form ``cosine(x, y) + offset(y)``; another limits how often it is lent.

Cosines are exact, corrections are summed in one order, and of equally good captions
the first is borrowed: each rule's pairs and scores are the same on every machine.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from pipeline_lib.compute.exact import ordered_sum
from pipeline_lib.synthesis.neighbours import Neighbours, pair_scores
from pipeline_lib.synthesis.rounding import Gridded
from pipeline_lib.synthesis.spread_neighbours import nearest, nearest_both_ways

_EDGES = 2**20
"""Pairs that become Python numbers at a time."""


@dataclass(frozen=True)
class Matches:
    """Pairs of a borrowing and a lent caption.

    Attributes:
        borrowing: Rows of the borrowing captions, ascending ``int64 [pairs]``.
        lent: Rows of the captions they borrow ``int64 [pairs]``.
        scores: What the rule maximised ``float64 [pairs]``.
        cosines: Of the two captions ``float64 [pairs]``.
    """

    borrowing: np.ndarray
    lent: np.ndarray
    scores: np.ndarray
    cosines: np.ndarray


def nearest_cosine(borrowing: Tensor, lent: Tensor) -> Matches:
    """Borrow the caption with the highest cosine (Kádár et al. 2019, §2.2)."""
    return _first_of(nearest(borrowing, lent, 1), borrowing, lent)


def csls(borrowing: Tensor, lent: Tensor, neighbours: int) -> Matches:
    """Borrow by cross-domain similarity local scaling (Conneau et al. 2018, Eq. 3).

    The score is half of ``CSLS(x, y) = 2 cos(x, y) - r(x) - r(y)``, where r is the mean cosine of
    a caption and its nearest ones of the other side.
    """
    density, lent_density = (
        ordered_sum(found.scores.T) / neighbours
        for found in nearest_both_ways(borrowing, lent, neighbours)
    )
    found = nearest(borrowing, lent, 1, -lent_density.to(lent.device) / 2)
    scores = found.scores - density[:, None] / 2
    return _first_of(Neighbours(found.indices, scores), borrowing, lent)


def one_to_one(borrowing: Tensor, lent: Tensor, neighbours: int, reuse_cap: int) -> Matches:
    """Take the pair with the highest cosine whose captions are both free, again and again.

    Each caption borrows once, from its nearest ``neighbours``; each lends ``reuse_cap`` times.
    """
    found = nearest(borrowing, lent, neighbours)
    place = torch.from_numpy(_greedy(found, np.full(len(lent), reuse_cap)))
    rows = (place >= 0).nonzero()[:, 0]
    chosen = (rows, place[rows])
    scores = found.scores[chosen].numpy()
    return Matches(rows.numpy(), found.indices[chosen].numpy(), scores, scores)


RETRIEVALS: dict[str, Callable[..., Matches]] = {
    "nearest": nearest_cosine,
    "csls": csls,
    "one_to_one": one_to_one,
}
"""From vectors of the borrowing and of the lent captions and the rule's settings to pairs."""


def _first_of(found: Neighbours, borrowing: Tensor, lent: Tensor) -> Matches:
    rows, chosen = torch.arange(len(borrowing)), found.indices[:, 0]
    cosines = pair_scores(Gridded(borrowing), rows, Gridded(lent), chosen)
    return Matches(rows.numpy(), chosen.numpy(), found.scores[:, 0].numpy(), cosines.numpy())


def _greedy(found: Neighbours, free: np.ndarray) -> np.ndarray:
    """Return the place of each query's partner among its neighbours, -1 for none.

    Args:
        found: The neighbours; of equal scores the first query's comes first.
        free: How often each vector of the base can still be taken ``[base]``; is used up.
    """
    place, left = [-1] * len(found.indices), free.tolist()
    for query, neighbour, partner in _descending(found):
        if place[query] < 0 and left[partner]:
            place[query] = neighbour
            left[partner] -= 1
    return np.array(place)


def _descending(found: Neighbours) -> Iterator[tuple[int, int, int]]:
    """Yield query, place of the neighbour and neighbour of all pairs, the best pair first."""
    order = found.scores.flatten().argsort(descending=True, stable=True)
    for pairs in order.split(_EDGES):
        queries, places = pairs // found.scores.shape[1], pairs % found.scores.shape[1]
        partners = found.indices[queries, places]
        yield from zip(queries.tolist(), places.tolist(), partners.tolist(), strict=True)
