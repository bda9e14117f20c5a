"""Orthogonal matrices, made of products."""

import torch
from torch import Tensor

from pipeline_lib.compute.arithmetic.functions import root
from pipeline_lib.compute.arithmetic.grid import precise_product, total

_ALMOST_SINGULAR, _ORTHOGONAL, _MOST_ITERATIONS = 1e-9, 1e-11, 100


def polar_factor(matrix: Tensor) -> Tensor:
    """Return the orthogonal matrix nearest to a square one, float64 ``[dim, dim]``.

    By the iteration of Newton and Schulz (Higham, Functions of Matrices, 2008, §8.3), which is made
    of products; a singular value decomposition is not the same on every machine. A matrix that is
    singular has several nearest ones: of these it is the one nearest to the identity.

    Raises:
        FloatingPointError: If there is no single one, or a number is infinite.
    """
    identity = torch.eye(len(matrix), dtype=matrix.dtype)
    found = matrix.div(root(total(matrix * matrix))) + identity * _ALMOST_SINGULAR
    for _ in range(_MOST_ITERATIONS):
        squared = precise_product(found.T, found)
        if float((squared - identity).abs().amax()) < _ORTHOGONAL:
            return found
        found = precise_product(found, identity * 1.5 - squared * 0.5)
    raise FloatingPointError(
        "expected vectors that an orthogonal map can be fitted to, found some that are orthogonal "
        "to all they belong to, or infinite ones"
    )


def qr(matrix: Tensor, _mode: str = "reduced") -> tuple[Tensor, Tensor]:
    """Return Q and the triangle R with a positive diagonal, by Gram and Schmidt, done twice."""
    q = torch.zeros_like(matrix)
    for column in range(matrix.shape[1]):
        rest = matrix[:, column : column + 1]
        for _ in range(2):
            before = q[:, : max(column, 1)]
            rest = rest - precise_product(before, precise_product(before.T, rest))
        q[:, column : column + 1] = rest / root(total(rest * rest))
    return q, precise_product(q.T, matrix)
