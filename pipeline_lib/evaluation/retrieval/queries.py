"""Every query of image-text retrieval on its own: its rank, and what it found."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from pipeline_lib.contract.queries import DIRECTIONS
from pipeline_lib.evaluation.retrieval.pools import RankedPool
from pipeline_lib.evaluation.retrieval.ranking import Scores

_CHUNK = 1024
"""Queries that are scored against all candidates at a time."""


def query_table(ranked: Mapping[int, Mapping[str, RankedPool]], scores: Scores) -> pd.DataFrame:
    """Return the rank and the best right and wrong candidates of every query.

    Args:
        ranked: Pools by seed and language.
        scores: Scores of all pairs of some images (first) and some captions (second).

    Returns:
        A table of contract.queries.QUERIES.
    """
    tables = [
        table.assign(seed=seed, language=language)
        for seed, pools in ranked.items()
        for language, pool in pools.items()
        for table in _both_ways(pool, scores)
    ]
    return pd.concat(tables, ignore_index=True)


def best_candidates(
    queries: np.ndarray,
    candidates: np.ndarray,
    groups: tuple[np.ndarray, np.ndarray],
    scores: Scores,
) -> tuple[np.ndarray, np.ndarray]:
    """Find the right and the wrong candidate of each query that score highest.

    Args:
        queries: Vectors ``[queries, dim]``.
        candidates: Vectors ``[candidates, dim]``.
        groups: Integers ``[queries]`` and ``[candidates]``; a candidate of its group is right.
        scores: Scores of all pairs of some queries and some candidates.

    Returns:
        Rows of the candidates ``[queries]``, twice; -1 where there is none.
    """
    found = np.full((2, len(queries)), -1, np.int64)
    for start in range(0, len(queries), _CHUNK):
        rows = slice(start, start + _CHUNK)
        tile = scores(queries[rows], candidates)
        matches = groups[0][rows, None] == groups[1]
        for side, kept in enumerate((matches, ~matches)):
            best = np.where(kept, tile, -np.inf).argmax(axis=1)
            found[side, rows] = np.where(kept.any(axis=1), best, -1)
    return found[0], found[1]


def _both_ways(pool: RankedPool, scores: Scores) -> list[pd.DataFrame]:
    caption_ids = pool.captions["caption_id"].to_numpy()
    images = pool.image_ids, pool.image_ids, np.arange(len(pool.image_ids)), pool.images
    owner = pool.ranks.caption_image
    captions = caption_ids, pool.image_ids[owner], owner, pool.sentences
    ways = (
        (images, captions, scores, pool.ranks.image_to_text),
        (captions, images, lambda a, b: scores(b, a).T, pool.ranks.text_to_image),
    )
    return [
        _direction(*way).assign(direction=direction)
        for direction, way in zip(DIRECTIONS, ways, strict=True)
    ]


def _direction(asked: tuple, offered: tuple, scores: Scores, ranks: np.ndarray) -> pd.DataFrame:
    query_ids, image_ids, query_group, queries = asked
    candidate_ids, _, candidate_group, candidates = offered
    right, wrong = best_candidates(queries, candidates, (query_group, candidate_group), scores)
    return pd.DataFrame(
        {
            "query_id": query_ids,
            "image_id": image_ids,
            "rank": ranks,
            "right_id": candidate_ids[right],
            "wrong_id": np.where(wrong < 0, None, candidate_ids[wrong]),
        }
    )
