"""Exact nearest neighbours between two large sets of vectors, streamed in tiles of scores.

Scores are exact (compute/exact.py), so that neighbours do not depend on the machine. Tiles
are products in bfloat16, of which each query keeps its best candidates; these are scored again,
exactly. What rounding can have done to a score is bounded (rounding.py), so that a neighbour
outside the candidates is excluded by proof. A query whose candidates lie too close together for
that is searched again with tiles in float32, and if those do not tell them apart either, in
float64, where tiles are exact.

The memory beside the inputs is a bfloat16 copy of one side, one tile, and the candidates.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.nn import functional as F
from tqdm import tqdm

from pipeline_lib.compute.device import one_core_each
from pipeline_lib.compute.products import fast_products
from pipeline_lib.contract.problems import raise_problems
from pipeline_lib.synthesis.rounding import (
    Gridded,
    candidate_floor,
    fast_precision,
    score_error,
)

_ROWS, _COLUMNS = 1024, 16384
"""Of a tile: large enough for BLAS, small enough that memory stays flat."""

_GROUP = 32
"""Columns of a tile of which only the best is sorted at first."""

_CANDIDATES = 32
_CANDIDATES_PER_NEIGHBOUR = 2

_QUERIES = 2**13
"""Queries that are searched again, or whose candidates are scored again, at a time."""

_PAIRS = 2**7
"""Pairs of vectors that are multiplied at a time: they stay in the cache."""

_FINER = {torch.bfloat16: torch.float32, torch.float32: torch.float64}
"""In which precision is searched again what one cannot tell apart."""


@dataclass(frozen=True)
class Neighbours:
    """The best neighbours of each query, best first; equal scores in the order of the base.

    Attributes:
        indices: Rows of the base, ``int64 [queries, count]``.
        scores: Their scores, ``float64 [queries, count]``.
    """

    indices: Tensor
    scores: Tensor


def nearest(queries: Tensor, base: Tensor, count: int, offset: Tensor | None = None) -> Neighbours:
    """Find the vectors of ``base`` with the highest ``query · vector + offset``.

    Args:
        queries: Vectors ``[queries, dim]``, float32 or float64.
        base: Vectors ``[base, dim]``, float32 or float64; the search runs on their device.
        count: Neighbours of each query.
        offset: Added to all scores of a base vector, ``[base]``, float32 or float64; nothing if
            None.

    Raises:
        ContractError: Lists everything that is wrong with the shapes, types and values.
    """
    offset = _zeros(base) if offset is None else offset
    raise_problems("nearest neighbours", _problems(queries, base, count, offset))
    return _search(queries, base, offset, count, fast_precision(base.device))


def nearest_both_ways(a: Tensor, b: Tensor, count: int) -> tuple[Neighbours, Neighbours]:
    """Find each vector's neighbours on the other side, for both sides from one set of tiles.

    Args:
        a: Vectors ``[a, dim]``, float32 or float64.
        b: Vectors ``[b, dim]``, float32 or float64; the search runs on their device.
        count: Neighbours of each vector.

    Returns:
        Neighbours of ``a`` in ``b`` and of ``b`` in ``a``.

    Raises:
        ContractError: As in :func:`nearest`.
    """
    problems = [*_problems(a, b, count, _zeros(b)), *_problems(b, a, count, _zeros(a))]
    raise_problems("nearest neighbours both ways", dict.fromkeys(problems))
    precision = fast_precision(b.device)
    best_a, best_b = _Candidates(len(a), len(b), count), _Candidates(len(b), len(a), count)
    for rows, columns, tile in score_tiles(a, b, _zeros(b), precision):
        best_a.add(rows, tile, columns.start)
        best_b.add(columns, tile.T.contiguous(), rows.start)
    return (
        _settle(best_a, a, b, _zeros(b), precision),
        _settle(best_b, b, a.to(b.device), _zeros(a).to(b.device), precision),
    )


def score_tiles(
    queries: Tensor, base: Tensor, offset: Tensor, precision: torch.dtype
) -> Iterator[tuple[slice, slice, Tensor]]:
    """Yield ``query · vector + offset`` of all pairs, tile by tile, and where the tile lies.

    The offset is two more coordinates, the second of which holds what the first one's rounding
    lost; so it is added before the score is rounded.
    """
    extended = torch.empty(len(base), base.shape[1] + 2, dtype=precision, device=base.device)
    extended[:, :-2] = base
    extended[:, -2] = offset
    extended[:, -1] = offset - extended[:, -2].to(offset.dtype)
    for rows in tqdm(_slices(len(queries), _ROWS), "neighbours", disable=None, leave=False):
        block = F.pad(queries[rows].to(base.device, precision), (0, 2), value=1)
        for columns in _slices(len(base), _COLUMNS):
            with fast_products():
                tile = block @ extended[columns].T
            yield rows, columns, tile


def exact_tiles(queries: Tensor, base: Tensor) -> Iterator[tuple[slice, slice, Tensor]]:
    """Yield the exact products of all pairs in float64, as :func:`score_tiles` does.

    All rows come before the next columns, so that the base is put on its grid but once.
    """
    for columns in tqdm(_slices(len(base), _COLUMNS), "exactly", disable=None, leave=False):
        right = Gridded(base[columns])[:].T
        for rows in _slices(len(queries), _ROWS):
            yield rows, columns, Gridded(queries[rows].to(base.device))[:] @ right


def pair_scores(a: Gridded, rows: Tensor, b: Gridded, columns: Tensor) -> Tensor:
    """Return the exact products of ``a[rows[i]]`` and ``b[columns[i]]``, ``float64 [pairs]``."""
    scores = torch.empty(len(rows), dtype=torch.float64)
    with one_core_each():  # blocks are small
        for pairs in _slices(len(rows), _PAIRS):
            left, right = (
                side[chosen[pairs].to(side.vectors.device)]
                for side, chosen in ((a, rows), (b, columns))
            )
            scores[pairs] = (left.to(right.device) * right).sum(dim=1).cpu()
    return scores


@dataclass
class _Candidates:
    """The best-scored vectors for each query among those that were seen.

    Attributes:
        queries: Number of queries.
        base: Number of vectors in all.
        count: Neighbours that are wanted.
        scores: Descending ``float32 [queries, candidates]``.
        indices: ``int32 [queries, candidates]``.
    """

    queries: int
    base: int
    count: int
    scores: Tensor = field(init=False)
    indices: Tensor = field(init=False)

    def __post_init__(self) -> None:
        width = min(max(_CANDIDATES, _CANDIDATES_PER_NEIGHBOUR * self.count), self.base)
        self.scores = torch.full((self.queries, width), -torch.inf)
        self.indices = torch.zeros(self.queries, width, dtype=torch.int32)

    def add(self, rows: slice, tile: Tensor, start: int) -> None:
        """Take in a tile of scores of these queries and the vectors from ``start`` on."""
        width = self.scores.shape[1]
        scores, columns = _best_of_rows(tile, min(width, tile.shape[1]))
        scores = torch.cat([self.scores[rows], scores.float().cpu()], dim=1)
        indices = torch.cat([self.indices[rows], (start + columns).int().cpu()], dim=1)
        self.scores[rows], kept = scores.topk(width, dim=1)
        self.indices[rows] = indices.gather(1, kept)


def _best_of_rows(tile: Tensor, width: int) -> tuple[Tensor, Tensor]:
    """Return the highest scores of each row and their columns, ``[rows, width]`` each.

    They lie in the groups whose own highest score is highest, so only those are sorted.
    """
    rows, columns = tile.shape
    groups, rest = divmod(columns, _GROUP)
    if rest or groups < width:
        return tile.topk(width, dim=1)
    grouped = tile.view(rows, _GROUP, groups)
    group = grouped.amax(dim=1).topk(width, dim=1).indices
    members = grouped.gather(2, group[:, None].expand(-1, _GROUP, -1)).view(rows, -1)
    scores, place = members.topk(width, dim=1)
    return scores, place // width * groups + group.gather(1, place % width)


def _search(
    queries: Tensor, base: Tensor, offset: Tensor, count: int, precision: torch.dtype
) -> Neighbours:
    if precision == torch.float64:
        return _search_exactly(queries, base, offset, count)
    best = _Candidates(len(queries), len(base), count)
    for rows, columns, tile in score_tiles(queries, base, offset, precision):
        best.add(rows, tile, columns.start)
    return _settle(best, queries, base, offset, precision)


def _settle(
    best: _Candidates, queries: Tensor, base: Tensor, offset: Tensor, precision: torch.dtype
) -> Neighbours:
    """Choose among the candidates by exact scores; search again where they may not suffice."""
    error = score_error(queries, base, offset, precision)
    floor = candidate_floor(best.scores[:, best.count - 1].double(), error, precision)
    grids = Gridded(queries), Gridded(base)
    blocks = [
        _rescore(best, rows, floor[rows], *grids, offset)
        for rows in _slices(len(queries), _QUERIES)
    ]
    found = Neighbours(*(torch.cat(parts) for parts in zip(*blocks, strict=True)))
    suffice = (best.scores[:, -1] < floor) | (best.scores.shape[1] == len(base))
    again = (~suffice).nonzero()[:, 0]
    for part in _slices(len(again), _QUERIES):
        rows = again[part]
        repeated = _search(
            queries[rows.to(queries.device)], base, offset, best.count, _FINER[precision]
        )
        found.indices[rows], found.scores[rows] = repeated.indices, repeated.scores
    return found


def _search_exactly(queries: Tensor, base: Tensor, offset: Tensor, count: int) -> Neighbours:
    scores = torch.full((len(queries), count), -torch.inf, dtype=torch.float64)
    indices = torch.zeros(len(queries), count, dtype=torch.int64)
    for rows, columns, tile in exact_tiles(queries, base):
        tile += offset[columns]
        places = _first_of_the_highest(tile, min(count, tile.shape[1]))
        # Earlier columns first, so that a stable sort puts the first of equals first.
        merged = torch.cat([scores[rows], tile.gather(1, places).cpu()], dim=1)
        merged, order = merged.sort(dim=1, descending=True, stable=True)
        both = torch.cat([indices[rows], columns.start + places.cpu()], dim=1)
        scores[rows], indices[rows] = merged[:, :count], both.gather(1, order[:, :count])
    return Neighbours(indices, scores)


def _first_of_the_highest(tile: Tensor, count: int) -> Tensor:
    """Return the columns of each row's highest scores, ascending; of equal ones the first."""
    last = tile.topk(count, dim=1).values[:, -1:]
    above, equal = tile > last, tile == last
    room = count - above.sum(dim=1, keepdim=True)
    kept = above | (equal & (equal.cumsum(dim=1) <= room))
    return kept.nonzero()[:, 1].view(-1, count)


def _rescore(
    best: _Candidates, rows: slice, floor: Tensor, queries: Gridded, base: Gridded, offset: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the indices and exact scores of the neighbours of some queries."""
    # In the order of their indices, so that a stable sort puts the first of equals first.
    columns, order = best.indices[rows].sort(dim=1)
    query, place = (best.scores[rows].gather(1, order) >= floor[:, None]).nonzero(as_tuple=True)
    wanted = columns[query, place].long()
    scores = torch.full(columns.shape, -torch.inf, dtype=torch.float64)
    scores[query, place] = (
        pair_scores(queries, rows.start + query, base, wanted) + offset.cpu()[wanted]
    )
    scores, order = scores.sort(dim=1, descending=True, stable=True)
    kept = order[:, : best.count]
    return columns.gather(1, kept).long(), scores[:, : best.count].contiguous()


def _zeros(vectors: Tensor) -> Tensor:
    return torch.zeros(len(vectors), device=vectors.device)


def _slices(length: int, step: int) -> list[slice]:
    return [slice(start, min(start + step, length)) for start in range(0, length, step)]


def _problems(queries: Tensor, base: Tensor, count: int, offset: Tensor) -> Iterator[str]:
    if queries.ndim != 2 or base.ndim != 2 or queries.shape[1:] != base.shape[1:]:
        yield (
            "expected vectors [queries, dim] and [base, dim], "
            f"found {list(queries.shape)} and {list(base.shape)}"
        )
    if not len(queries):
        yield "expected one query or more, found none"
    if not 1 <= count <= len(base):
        yield f"expected from 1 to {len(base)} neighbours, as many as there are, found {count}"
    if offset.shape != base.shape[:1]:
        yield f"expected {len(base)} offsets, one per base vector, found {list(offset.shape)}"
    for name, values in (("queries", queries), ("base", base), ("offset", offset)):
        if values.dtype not in (torch.float32, torch.float64):
            yield f"expected {name} in float32 or float64, found {values.dtype}"
        elif not all(block.norm().isfinite() for block in values.split(_ROWS)):
            yield f"expected finite {name}, found NaN or infinity: the model did not train"
