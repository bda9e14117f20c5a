"""Retrieval in explicit pools: one split, one language, one kind of caption each."""

import numpy as np
import pandas as pd

from pipeline_lib.contract.embeddings import Embeddings
from pipeline_lib.contract.problems import ContractError
from pipeline_lib.evaluation.retrieval import retrieval_scores
from pipeline_lib.evaluation.scores import SCORES
from pipeline_lib.settings.evaluations import RetrievalEvaluation

DECIMALS = 4


def retrieval_report(
    embeddings: dict[int, Embeddings],
    captions: pd.DataFrame,
    pools: dict[str, str],
    settings: RetrievalEvaluation,
    similarity: str,
) -> dict[str, object]:
    """Score every seed's vectors in every language's pool.

    Args:
        embeddings: Vectors of the evaluated split, by seed.
        captions: Captions of the data set (contract.CAPTIONS).
        pools: The kind of annotation that is ranked, per language.
        settings: Split and bootstrap settings.
        similarity: A key of :data:`scores.SCORES`.

    Returns:
        ``{"split", "pools", "per_seed": {seed: {language: scores}}}``, where scores are those of
        :func:`retrieval.retrieval_scores`; JSON-serialisable, rounded.
    """
    captions = captions[captions["split"] == settings.split]
    per_seed = {
        str(seed): {
            language: _rounded(
                _score(vectors, _pool(captions, language, kind), settings, similarity)
            )
            for language, kind in sorted(pools.items())
        }
        for seed, vectors in sorted(embeddings.items())
    }
    return {"split": settings.split, "pools": pools, "per_seed": per_seed}


def _pool(captions: pd.DataFrame, language: str, kind: str) -> pd.DataFrame:
    pool = captions[(captions["language"] == language) & (captions["annotation"] == kind)]
    if not len(pool):
        raise ContractError(
            f"pools.{language}: the split has no {language} sentence of kind {kind!r}; found "
            f"{sorted(set(captions.loc[captions['language'] == language, 'annotation']))}"
        )
    return pool


def _score(
    vectors: Embeddings, pool: pd.DataFrame, settings: RetrievalEvaluation, similarity: str
) -> dict[str, object]:
    rows = pd.Index(vectors.caption_ids).get_indexer(pool["caption_id"])
    if (rows < 0).any():
        raise ContractError(f"{(rows < 0).sum()} captions of the pool have no vector: run embed")
    described = np.isin(vectors.image_ids.astype(str), pool["image_id"].unique().astype(str))
    return retrieval_scores(
        vectors.images[described],
        list(vectors.image_ids[described]),
        vectors.captions[rows],
        list(pool["image_id"]),
        resamples=settings.bootstrap_samples,
        confidence=settings.confidence,
        seed=settings.seed,
        scores=SCORES[similarity],
    )


def _rounded(value: object) -> object:
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    return round(value, DECIMALS) if isinstance(value, float) else value
