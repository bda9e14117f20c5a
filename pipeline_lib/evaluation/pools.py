"""Retrieval in explicit pools: one split, one language, one kind of caption each."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from pipeline_lib.contract.embeddings import Embeddings
from pipeline_lib.contract.problems import ContractError
from pipeline_lib.evaluation.ranking import Scores
from pipeline_lib.evaluation.retrieval import RetrievalRanks, retrieval_ranks


@dataclass(frozen=True)
class RankedPool:
    """The images and captions of one language under one model, and the ranks of all queries.

    Attributes:
        image_ids: Images that have a caption in the pool ``[images]``.
        images: Their vectors ``[images, dim]``.
        captions: Rows of the pool (contract.tables.CAPTIONS).
        sentences: Their vectors ``[captions, dim]``.
        ranks: Of images and captions, in these orders.
    """

    image_ids: np.ndarray
    images: np.ndarray
    captions: pd.DataFrame
    sentences: np.ndarray
    ranks: RetrievalRanks


def rank_pools(
    vectors: Embeddings, captions: pd.DataFrame, pools: Mapping[str, str], scores: Scores
) -> dict[str, RankedPool]:
    """Rank the pool of every language in both directions.

    Args:
        vectors: Of the evaluated split, under one model.
        captions: Captions of the split.
        pools: The kind of annotation that is ranked, by language.
        scores: Scores of all pairs of some images and some captions.

    Raises:
        ContractError: A pool is empty, or one of its captions has no vector.
    """
    return {
        language: _ranked(vectors, _pool(captions, language, kind), scores)
        for language, kind in sorted(pools.items())
    }


def _pool(captions: pd.DataFrame, language: str, kind: str) -> pd.DataFrame:
    pool = captions[(captions["language"] == language) & (captions["annotation"] == kind)]
    if not len(pool):
        raise ContractError(
            f"pools.{language}: the split has no {language} sentence of kind {kind!r}; found "
            f"{sorted(set(captions.loc[captions['language'] == language, 'annotation']))}"
        )
    return pool


def _ranked(vectors: Embeddings, pool: pd.DataFrame, scores: Scores) -> RankedPool:
    described = np.isin(vectors.image_ids.astype(str), pool["image_id"].unique().astype(str))
    image_ids, images = vectors.image_ids[described], vectors.images[described]
    sentences = vectors.captions_of(pool["caption_id"])
    ranks = retrieval_ranks(images, list(image_ids), sentences, list(pool["image_id"]), scores)
    return RankedPool(image_ids, images, pool, sentences, ranks)
