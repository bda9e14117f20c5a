"""Retrieval in explicit pools: one split, one language, one kind of caption each."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from pipeline_lib.contract.problems import ContractError
from pipeline_lib.evaluation.retrieval.ranking import Scores, bidirectional_ranks
from pipeline_lib.evaluation.retrieval.recalls import RetrievalRanks, retrieval_ranks
from pipeline_lib.evaluation.vectors import Embeddings


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
        language: ranked_pool(vectors, _pool(captions, language, kind), scores)
        for language, kind in sorted(pools.items())
    }


def ranks_in_folds(pool: RankedPool, fold_images: int, scores: Scores) -> RetrievalRanks:
    """Rank a pool in folds: consecutive parts of about equally many images, each on its own.

    COCO's 5,000 test images are often scored by the average over five folds of 1,000. Recall over
    all queries is that average, where folds have equally many.

    Args:
        pool: The pool.
        fold_images: About so many images make a fold.
        scores: Scores of all pairs of some images and some captions.
    """
    owner = pool.ranks.caption_image
    parts = max(1, round(len(pool.images) / fold_images))
    folds = np.array_split(np.arange(len(pool.images)), parts)
    image_to_text, text_to_image = np.zeros(len(pool.images), int), np.zeros(len(owner), int)
    for rows in folds:
        captions = np.flatnonzero(np.isin(owner, rows))
        image_to_text[rows], text_to_image[captions] = bidirectional_ranks(
            pool.images[rows], pool.sentences[captions], owner[captions] - rows[0], scores
        )
    return RetrievalRanks(image_to_text, text_to_image, owner, len(folds))


def _pool(captions: pd.DataFrame, language: str, kind: str) -> pd.DataFrame:
    pool = captions[(captions["language"] == language) & (captions["annotation"] == kind)]
    if not len(pool):
        raise ContractError(
            f"pools.{language}: the split has no {language} sentence of kind {kind!r}; found "
            f"{sorted(set(captions.loc[captions['language'] == language, 'annotation']))}"
        )
    return pool


def ranked_pool(vectors: Embeddings, pool: pd.DataFrame, scores: Scores) -> RankedPool:
    """Rank the captions of a pool and the images that they describe, in both directions."""
    described = np.isin(vectors.image_ids.astype(str), pool["image_id"].unique().astype(str))
    image_ids, images = vectors.image_ids[described], vectors.images[described]
    sentences = vectors.captions_of(pool["caption_id"])
    ranks = retrieval_ranks(images, list(image_ids), sentences, list(pool["image_id"]), scores)
    return RankedPool(image_ids, images, pool, sentences, ranks)
