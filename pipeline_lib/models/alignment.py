"""Orthogonal maps between the word spaces of two languages: Procrustes, then steps of RCSLS.

A map is a matrix ``W`` ``[dim, dim]`` that takes a source word ``x`` to ``W x``, so the rows of a
matrix of words to ``words @ W.T``. Word vectors have unit length throughout.
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from pipeline_lib.compute.arithmetic.matrices import polar_factor

_CHUNK = 1024
"""Words whose neighbours are searched at a time."""


@dataclass(frozen=True)
class Translations:
    """Two vocabularies and what translates to what.

    Attributes:
        source: Unit vectors of all source words, neighbours are found among them ``[source, dim]``.
        target: Unit vectors of all target words ``[target, dim]``.
        pairs: Rows of ``source`` and ``target`` that translate each other, ``int64 [pairs, 2]``.
    """

    source: Tensor
    target: Tensor
    pairs: Tensor

    def __post_init__(self) -> None:
        """Refuse a lexicon that no map can be learnt from."""
        if not len(self.pairs):
            raise ValueError(
                "no pair of the lexicon has both its words in the vocabulary: expected one or more"
            )


@dataclass(frozen=True)
class AlignmentStep:
    """What a step leads to.

    Attributes:
        rotation: The map W ``[dim, dim]``.
        step_size: Of the map's next step; it must survive a checkpoint with the map.
        loss: RCSLS loss of ``rotation``.
    """

    rotation: Tensor
    step_size: float
    loss: float


def procrustes(source: Tensor, target: Tensor) -> Tensor:
    """Return the orthogonal ``W`` with the least ``||source @ W.T - target||`` (Schönemann 1966).

    Args:
        source: Vectors ``[pairs, dim]``.
        target: Vectors of their translations ``[pairs, dim]``.
    """
    return nearest_orthogonal(target.T @ source)


def nearest_orthogonal(matrix: Tensor) -> Tensor:
    """Return the orthogonal matrix nearest to ``matrix`` ``[dim, dim]``: its polar factor.

    Of a singular matrix it is the nearest one that is nearest to the identity, too: vectors that
    are aligned already stay so where the pairs say nothing.
    """
    if matrix.dtype == torch.float64:
        return polar_factor(matrix)
    left, values, right = torch.linalg.svd(matrix)
    free = values <= values[0] * len(matrix) * torch.finfo(matrix.dtype).eps
    if free.any():
        a, _, b = torch.linalg.svd(left[:, free].T @ right[free].T)
        right[free] = a @ b @ right[free]
    return left @ right


def rcsls_loss(rotation: Tensor, words: Translations, neighbours: int) -> Tensor:
    """Return the relaxed CSLS loss, Eq. 4 of Joulin et al. 2018, its mean over pairs.

    For each pair ``-2 (W x).y``, plus the mean of ``(W x).y'`` over the target words nearest to
    ``W x``, plus the mean of ``(W x').y`` over the source words nearest to ``y``. The gradient
    takes the neighbours as fixed.

    Args:
        rotation: The map W ``[dim, dim]``.
        words: Both vocabularies and the lexicon.
        neighbours: Nearest words that count, k; all if there are fewer.
    """
    source_rows, target_rows = words.pairs.T
    mapped = (words.source @ rotation.T).detach()
    near_target = _mean_of_nearest(mapped, source_rows, words.target, words.target, neighbours)
    near_source = _mean_of_nearest(words.target, target_rows, mapped, words.source, neighbours)
    x, y = words.source[source_rows], words.target[target_rows]
    pull_and_push = (x @ rotation.T) * (near_target - 2 * y)
    return (pull_and_push + (near_source @ rotation.T) * y).sum(dim=1).mean()


def rcsls_step(
    rotation: Tensor, words: Translations, neighbours: int, step_size: float
) -> AlignmentStep:
    """Take one step down the RCSLS loss and back to the orthogonal group.

    A step that would raise the loss is not taken: the map stays what it was, and the next step is
    half as long, as in the code of Joulin et al. Before and after are compared on the same words,
    because a model that tunes its words changes the loss between two steps too.

    Args:
        rotation: The map W, orthogonal ``[dim, dim]``; is left as it is.
        words: Both vocabularies and the lexicon.
        neighbours: Nearest words that count, k.
        step_size: The ``step_size`` of the last step of this map, not of another one.

    Returns:
        The new map, which shares no memory with ``rotation``, and how to go on.
    """
    start = rotation.detach().clone()
    variable = start.clone().requires_grad_()
    before = rcsls_loss(variable, words, neighbours)
    (gradient,) = torch.autograd.grad(before, variable)
    moved = nearest_orthogonal(start - step_size * gradient)
    after = rcsls_loss(moved, words, neighbours)
    if after <= before:
        return AlignmentStep(moved, step_size, float(after.detach()))
    return AlignmentStep(start, step_size / 2, float(before.detach()))


def _mean_of_nearest(
    queries: Tensor, rows: Tensor, candidates: Tensor, vectors: Tensor, neighbours: int
) -> Tensor:
    """Return the mean of the ``vectors`` of the candidates nearest to some queries.

    Args:
        queries: Vectors ``[queries, dim]``.
        rows: Which of them, with repetitions ``[rows]``.
        candidates: Vectors that are searched ``[candidates, dim]``.
        vectors: What is averaged, row for row with them ``[candidates, dim]``.
        neighbours: So many candidates are near; all if there are fewer.

    Returns:
        ``[rows, dim]``.
    """
    count = min(neighbours, len(candidates))
    unique, occurrence = rows.unique(return_inverse=True)
    nearest = torch.cat(
        [
            (queries[chunk] @ candidates.T).topk(count).indices.detach()
            for chunk in unique.split(_CHUNK)
        ]
    )
    return F.embedding_bag(nearest, vectors, mode="mean")[occurrence]
