"""Exact ranks of the right candidates, by counting, without ever holding the whole score matrix.

The rank of a query is 1 + the number of wrong candidates that score at least as high as its best
right one: ties count against the model, so a collapsed embedding space ranks last, not first. A
candidate is right when it has the group of the query; in image-text retrieval a group is an image.

Both sides are split into blocks so that a group never spans two. The tiles on the diagonal then
hold every right pair, and with those done first each remaining score is computed once, compared in
both directions, and forgotten.
"""

from collections.abc import Callable, Iterator
from itertools import permutations

import numpy as np

Scores = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""Scores of all pairs, higher is better: ``[n, dim], [m, dim] -> [n, m]``, new and of one type."""

CHUNK = 5120
"""Vectors per side of a tile: large enough for BLAS, small enough for the last-level cache."""

_BLAS_BLOCK = 64


def dot_products(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the dot product of every pair, ``[n, dim], [m, dim] -> [n, m]``.

    Equal vectors get equal scores wherever they stand. A plain ``a @ b.T`` does not grant that:
    BLAS sums the rows and columns that fill no whole register block in another order.
    """
    return (_whole_blocks(a) @ _whole_blocks(b).T)[: len(a), : len(b)]


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
    best_a, best_b = np.full(len(a), -np.inf, a.dtype), np.full(len(b), -np.inf, b.dtype)

    def count(tile: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> None:
        rank_a[rows] += _count(tile >= best_a[rows, None], axis=1)
        rank_b[columns] += _count(tile >= best_b[columns], axis=0)

    blocks = [(i, a[i], j, b[j]) for i, j in _blocks(group_a, group_b, chunk)]
    for rows, left, columns, right in blocks:
        tile = _tile(scores, left, right)
        i, j = np.nonzero(group_a[rows, None] == group_b[columns])
        np.maximum.at(best_a, rows[i], tile[i, j])
        np.maximum.at(best_b, columns[j], tile[i, j])
        tile[i, j] = -np.inf
        count(tile, rows, columns)
    for (rows, left, _, _), (_, _, columns, right) in permutations(blocks, 2):
        count(_tile(scores, left, right), rows, columns)
    return rank_a, rank_b


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


def _whole_blocks(vectors: np.ndarray) -> np.ndarray:
    missing = -len(vectors) % _BLAS_BLOCK
    return np.pad(vectors, ((0, missing), (0, 0))) if missing else vectors


def _tile(scores: Scores, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    tile = scores(left, right)
    expected = (len(left), len(right)), left.dtype
    if (tile.shape, tile.dtype) != expected:
        raise ValueError(
            f"expected scores of shape and type {expected}, found {(tile.shape, tile.dtype)}: "
            "the score function must return one score per pair, in the type of the vectors"
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
