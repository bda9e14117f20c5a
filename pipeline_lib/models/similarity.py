"""Similarities between vectors of the joint space, as matrices of all pairs.

Called by the training loop and by evaluation, so that a model is scored as it was trained.
"""

from collections.abc import Callable

from torch import Tensor


def cosine(a: Tensor, b: Tensor) -> Tensor:
    """Return the cosine of every pair of unit vectors ``[n, dim]``, ``[m, dim]``: ``[n, m]``."""
    return a @ b.T


SIMILARITIES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {"cosine": cosine}
