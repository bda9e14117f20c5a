"""Exact ranks of the right candidates, by counting, without ever holding the whole score matrix.

The rank of a query is 1 + the number of wrong candidates that score at least as high as its best
right one: ties count against the model, so a collapsed embedding space ranks last, not first. A
candidate is right when it has the group of the query; in image-text retrieval a group is an image.

Both sides are split into blocks so that a group never spans two. The tiles on the diagonal then
hold every right pair, and with those done first each remaining score is computed once, compared in
both directions, and forgotten.

Ranks do not depend on the machine: scores are exact (compute/exact.py). Products of float32 vectors
are computed in float32 at first, which BLAS rounds in an order of its own. How far that can lie
from the exact product is bounded; a candidate within the bound is scored again in float64.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import permutations

import numpy as np

from pipeline_lib.compute.exact import (
    dot_products,
    grid_products,
    lengths,
    on_grid,
    paired_grid_products,
)

Scores = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""Scores of all pairs, higher is better: ``[n, dim], [m, dim] -> [n, m]``, new, of a float type.

A score may depend on its two vectors alone, not on where they stand: then neither do ranks.
"""

CHUNK = 5120
"""Vectors per side of a tile: large enough for BLAS, small enough for memory."""

_STRIP = 128
"""Rows of a tile that are compared at a time: they stay in the cache."""

_MOST_UNCERTAIN = 1 / 64
"""Share of a strip's pairs above which one product in float64 is faster than each pair alone."""

_ROUNDING = 1.1 * 2.0**-24
"""Error per term of a float32 sum of products in any order, as a share of both vectors' lengths.

It is 2^-24 by Higham (2002, §3.1) and Cauchy-Schwarz; the tenth is for the terms of higher order,
with up to 2^20 terms, and for what the grid adds to the lengths.
"""


def ranks(
    queries: np.ndarray,
    candidates: np.ndarray,
    query_group: np.ndarray,
    candidate_group: np.ndarray,
    scores: Scores = dot_products,
    chunk: int = CHUNK,
) -> np.ndarray:
    """Rank, for each query, its best right candidate among all wrong ones.

    Args:
        queries: Vectors ``[queries, dim]``, float32 or float64.
        candidates: Vectors ``[candidates, dim]`` of the same type.
        query_group: Integers ``[queries]``.
        candidate_group: Integers ``[candidates]``; groups that no query has are distractors.
        scores: Scores of all pairs of some queries and some candidates.
        chunk: Most vectors of one side that are scored at a time (exceeded by a larger group).

    Returns:
        Ranks ``int64 [queries]``; 1 is best.

    Raises:
        ValueError: Shapes or types disagree, vectors or scores are not finite, or a query has no
            right candidate. All problems of the input are listed at once.
    """
    _raise([*_input_problems(queries, candidates, query_group, candidate_group)])
    _raise([*_unmatched("queries", query_group, candidate_group)])
    return _ranks_both_ways(queries, candidates, query_group, candidate_group, scores, chunk)[0]


def bidirectional_ranks(
    images: np.ndarray,
    captions: np.ndarray,
    caption_image_index: np.ndarray,
    scores: Scores = dot_products,
    chunk: int = CHUNK,
) -> tuple[np.ndarray, np.ndarray]:
    """Rank captions for each image and images for each caption, from one set of scores.

    Args:
        images: Vectors ``[images, dim]``, float32 or float64.
        captions: Vectors ``[captions, dim]`` of the same type.
        caption_image_index: Row of each caption's image in ``images``, integers ``[captions]``.
        scores: Scores of all pairs of some images (first) and some captions (second).
        chunk: Most vectors of one side that are scored at a time.

    Returns:
        Image-to-text ranks ``int64 [images]`` and text-to-image ranks ``int64 [captions]``.

    Raises:
        ValueError: As in :func:`ranks`; here every caption and every image needs a partner.
    """
    image_index = np.arange(len(images))
    _raise([*_input_problems(images, captions, image_index, caption_image_index)])
    _raise(
        [
            *_unmatched("images", image_index, caption_image_index),
            *_unmatched("captions", caption_image_index, image_index),
        ]
    )
    return _ranks_both_ways(images, captions, image_index, caption_image_index, scores, chunk)


def _ranks_both_ways(
    a: np.ndarray,
    b: np.ndarray,
    group_a: np.ndarray,
    group_b: np.ndarray,
    scores: Scores,
    chunk: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Rank both sides; a row without a partner gets a rank without meaning."""
    rank_a, rank_b = np.ones(len(a), np.int64), np.ones(len(b), np.int64)
    best_a, best_b = np.full(len(a), -np.inf), np.full(len(b), -np.inf)
    prepare, tile_of = _scoring(a, b, scores)

    def count(tile: _Tile | _RoundedTile, rows: np.ndarray, columns: np.ndarray) -> None:
        for start in range(0, len(rows), _STRIP):
            strip, part = tile.strip(slice(start, start + _STRIP)), rows[start : start + _STRIP]
            rank_a[part] += _count(strip.at_least(best_a[part, None]), axis=1)
            rank_b[columns] += _count(strip.at_least(best_b[columns]), axis=0)

    blocks = [(i, prepare(a[i]), j, prepare(b[j])) for i, j in _blocks(group_a, group_b, chunk)]
    for rows, left, columns, right in blocks:
        tile = tile_of(left, right)
        i, j = np.nonzero(group_a[rows, None] == group_b[columns])
        own = tile.pairs(i, j)
        np.maximum.at(best_a, rows[i], own)
        np.maximum.at(best_b, columns[j], own)
        tile.scores[i, j] = -np.inf
        count(tile, rows, columns)
    for (rows, left, _, _), (_, _, columns, right) in permutations(blocks, 2):
        count(tile_of(left, right), rows, columns)
    return rank_a, rank_b


@dataclass(frozen=True)
class _Tile:
    """Exact scores of all pairs of some vectors of both sides ``[left, right]``."""

    scores: np.ndarray

    def strip(self, rows: slice) -> "_Tile":
        return _Tile(self.scores[rows])

    def pairs(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        return self.scores[i, j]

    def at_least(self, best: np.ndarray) -> np.ndarray:
        """Return which scores are at least ``best``, ``[left, 1]`` or ``[right]``."""
        return self.scores >= best


@dataclass(frozen=True)
class _RoundedTile:
    """As :class:`_Tile`, but the scores, of vectors on their grids, are rounded.

    Attributes:
        left: Vectors ``float32 [left, dim]``.
        right: Vectors ``float32 [right, dim]``.
        error: Most that a score is from the exact product.
        scores: In float32 ``[left, right]``; minus infinity stays what it is.
    """

    left: np.ndarray
    right: np.ndarray
    error: float
    scores: np.ndarray

    def strip(self, rows: slice) -> "_RoundedTile":
        return replace(self, left=self.left[rows], scores=self.scores[rows])

    def pairs(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        return paired_grid_products(self.left, i, self.right, j)

    def at_least(self, best: np.ndarray) -> np.ndarray:
        """Return which exact scores are at least ``best``, ``[left, 1]`` or ``[right]``."""
        low = np.nextafter((best - self.error).astype(np.float32), np.float32(-np.inf))
        high = np.nextafter((best + self.error).astype(np.float32), np.float32(np.inf))
        found = self.scores >= high
        unsure = np.flatnonzero((self.scores >= low) ^ found)
        if len(unsure) > _MOST_UNCERTAIN * found.size:
            return self._exact >= best
        i, j = np.divmod(unsure, found.shape[1])
        found[i, j] = self.pairs(i, j) >= np.broadcast_to(best, found.shape)[i, j]
        return found

    @cached_property
    def _exact(self) -> np.ndarray:
        exact = grid_products(self.left, self.right)
        exact[np.isneginf(self.scores)] = -np.inf
        return exact


def _scoring(
    a: np.ndarray, b: np.ndarray, scores: Scores
) -> tuple[
    Callable[[np.ndarray], np.ndarray], Callable[[np.ndarray, np.ndarray], _Tile | _RoundedTile]
]:
    """Return how vectors are prepared, and how a tile is made of what that returns."""
    if scores is not dot_products:
        return lambda vectors: vectors, lambda left, right: _Tile(_checked(scores, left, right))
    if a.dtype == np.float64:
        return on_grid, lambda left, right: _Tile(_checked(grid_products, left, right))
    error = _product_error(a, b)
    return on_grid, lambda left, right: _RoundedTile(
        left, right, error, _checked(_rounded_products, left, right)
    )


def _product_error(a: np.ndarray, b: np.ndarray) -> float:
    """Bound how far a float32 product of any pair can be from the exact one."""
    length_a, length_b = (lengths(side).max(initial=0) for side in (a, b))
    underflow = 2 * float(np.finfo(np.float32).tiny)
    return a.shape[1] * (_ROUNDING * length_a * length_b + underflow)


def _rounded_products(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a @ b.T


def _blocks(
    group_a: np.ndarray, group_b: np.ndarray, chunk: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the row indices of both sides, block by block; a group lies in one block."""
    groups, index = np.unique(np.concatenate([group_a, group_b]), return_inverse=True)
    index_a, index_b = np.split(index, [len(group_a)])
    size = np.maximum(*(np.bincount(i, minlength=len(groups)) for i in (index_a, index_b)))
    block = (np.cumsum(size) - size) // chunk
    for number in np.unique(block):
        yield np.flatnonzero(block[index_a] == number), np.flatnonzero(block[index_b] == number)


def _count(mask: np.ndarray, axis: int) -> np.ndarray:
    # Adding bytes into 32 bits is vectorised; numpy's sum of booleans, into 64, is 4 times slower.
    return np.add.reduce(mask.view(np.uint8), axis=axis, dtype=np.uint32)


def _checked(scores: Scores, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    tile = scores(left, right)
    expected = len(left), len(right)
    if tile.shape != expected or not np.issubdtype(tile.dtype, np.floating):
        raise ValueError(
            f"expected scores of shape {expected} in a float type, found {tile.dtype} "
            f"{tile.shape}: the score function must return one score per pair"
        )
    if not np.isfinite(tile).all():
        raise ValueError(
            "expected finite scores, found NaN or infinity although all vectors are finite: "
            "the score function overflows or divides by zero; normalise the vectors"
        )
    return tile


def _input_problems(
    a: np.ndarray, b: np.ndarray, group_a: np.ndarray, group_b: np.ndarray
) -> Iterator[str]:
    if a.ndim != 2 or b.ndim != 2 or a.shape[1:] != b.shape[1:]:
        yield f"expected vectors [n, dim] and [m, dim], found {a.shape} and {b.shape}"
    if a.dtype != b.dtype or a.dtype not in (np.float32, np.float64):
        yield f"expected float32 or float64 on both sides, found {a.dtype} and {b.dtype}"
    for side, vectors, group in (("first", a, group_a), ("second", b, group_b)):
        if group.shape != (len(vectors),) or not np.issubdtype(group.dtype, np.integer):
            yield (
                f"expected {len(vectors)} integers that group the {side} vectors, "
                f"found {group.dtype} {group.shape}"
            )
        bad = np.flatnonzero(~np.isfinite(vectors).all(axis=tuple(range(1, vectors.ndim))))
        if len(bad):
            yield f"{len(bad)} of the {side} vectors have NaN or infinity: rows {_some(bad)}"


def _unmatched(name: str, group: np.ndarray, other: np.ndarray) -> Iterator[str]:
    lonely = np.flatnonzero(~np.isin(group, other))
    if len(lonely):
        yield f"{len(lonely)} {name} have no right candidate in the pool: rows {_some(lonely)}"


def _some(rows: np.ndarray) -> str:
    return ", ".join(map(str, rows[:10])) + (", ..." if len(rows) > 10 else "")


def _raise(problems: list[str]) -> None:
    if problems:
        raise ValueError("ranking: " + "; ".join(problems))
