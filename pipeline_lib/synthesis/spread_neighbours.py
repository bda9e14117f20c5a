"""Nearest neighbours in blocks of queries, on workers of Ray where the environment asks for them.

Neighbours and scores are exact (neighbours.py), so blocks change neither.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from torch import Tensor

from pipeline_lib.compute.device import best_device
from pipeline_lib.scheduling.each import open_workers, workers_bring_more
from pipeline_lib.synthesis import neighbours
from pipeline_lib.synthesis.neighbours import Neighbours

_QUERIES = 2**13
"""Of a block: 32 MB of 1,024 numbers each."""

_WORTH = 2**33
"""Pairs of vectors: fewer are searched here in less than the time that workers take to start."""


def nearest(queries: Tensor, base: Tensor, count: int, offset: Tensor | None = None) -> Neighbours:
    """Find the neighbours of each query: see :func:`neighbours.nearest`."""
    if _is_done_here(queries, base):
        return neighbours.nearest(queries, base, count, offset)
    blocks = [_on_host(block) for block in queries.split(_QUERIES)]
    load = partial(_searching, _on_host(base), count, None if offset is None else _on_host(offset))
    with open_workers(load, len(blocks), unit="blocks", label="neighbours") as each:
        found = zip(*each(blocks), strict=True)
        return Neighbours(*(torch.from_numpy(np.concatenate(parts)) for parts in found))


def nearest_both_ways(a: Tensor, b: Tensor, count: int) -> tuple[Neighbours, Neighbours]:
    """Find the neighbours of each side: see :func:`neighbours.nearest_both_ways`."""
    if _is_done_here(a, b):
        return neighbours.nearest_both_ways(a, b, count)
    return nearest(a, b, count), nearest(b, a.to(b.device), count)


def _is_done_here(queries: Tensor, base: Tensor) -> bool:
    is_small = len(queries) <= _QUERIES or len(queries) * len(base) < _WORTH
    return is_small or not workers_bring_more()


def _on_host(values: Tensor) -> np.ndarray:
    return values.cpu().numpy()  # which Ray's workers of a node share, as they do no tensor


def _searching(
    base: np.ndarray, count: int, offset: np.ndarray | None
) -> Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """Return the search for the neighbours of a block of queries: their indices and scores."""
    base, offset = (None if part is None else _on_device(part) for part in (base, offset))

    def search(queries: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        found = neighbours.nearest(torch.from_numpy(queries), base, count, offset)
        return found.indices.numpy(), found.scores.numpy()

    return search


def _on_device(values: np.ndarray) -> Tensor:
    return torch.from_numpy(values).to(best_device())
