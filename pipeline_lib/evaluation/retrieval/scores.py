"""Scores of all pairs for ranking, in numpy: the same order as models.similarity.SIMILARITIES."""

import numpy as np

from pipeline_lib.compute.exact import dot_products, ordered_sum
from pipeline_lib.evaluation.retrieval.ranking import Scores

_COLUMNS = 256


def order_scores(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return ``-|max(0, b - a)|²`` of every pair, ``[n, dim], [m, dim] -> [n, m]``.

    Computed in the type of the vectors, in one order, so that it is the same on every machine, and
    in blocks that stay in the cache. The root of the similarity changes no rank.
    """
    scores = np.empty((len(a), len(b)), a.dtype)
    for start in range(0, len(b), _COLUMNS):
        block = np.ascontiguousarray(b[start : start + _COLUMNS].T)
        above = np.empty_like(block)
        for row, vector in enumerate(a):
            np.subtract(block, vector[:, None], out=above)
            np.maximum(above, 0, out=above)
            np.square(above, out=above)
            scores[row, start : start + _COLUMNS] = -ordered_sum(above)
    return scores


SCORES: dict[str, Scores] = {
    "cosine": dot_products,
    "euclidean": dot_products,  # of unit vectors: the same ranks
    "order": order_scores,
    "squared_order": order_scores,
}
