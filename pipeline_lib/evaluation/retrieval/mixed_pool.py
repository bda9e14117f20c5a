"""Images that search the captions of all languages at once: which language comes first."""

from collections.abc import Mapping

import numpy as np

from pipeline_lib.evaluation.retrieval.pools import RankedPool
from pipeline_lib.evaluation.retrieval.ranking import Scores, ranks
from pipeline_lib.evaluation.retrieval.recalls import direction_scores, recall_bounds

_CHUNK = 1024
"""Images that are scored against all captions at a time."""


def shared_images(pools: Mapping[str, RankedPool]) -> set[str]:
    """Return the ids of the images that all pools have."""
    return set.intersection(*(set(pool.image_ids) for pool in pools.values()))


def mixed_pool_scores(
    pools: Mapping[str, RankedPool],
    scores: Scores,
    *,
    resamples: int,
    confidence: float,
    seed: int,
) -> dict[str, object]:
    """Rank the captions of all languages together for each image that all pools have.

    A space whose languages lie apart puts all captions of one before those of the others.

    Args:
        pools: Pool of each language; they share images (:func:`shared_images`).
        scores: Scores of all pairs of some images and some captions.
        resamples: Bootstrap draws of the images.
        confidence: Level of the intervals.
        seed: Of the draws.

    Returns:
        The scores of :func:`recalls.direction_scores`, where any caption of the image is right,
        and ``first_language``: the share in per cent of images whose first caption is in each;
        languages whose best captions score alike share the image.
    """
    first = next(iter(pools.values()))
    kept = np.isin(first.image_ids, [*shared_images(pools)])
    images, place = first.images[kept], {name: i for i, name in enumerate(first.image_ids[kept])}
    captions, owners, languages = [], [], []
    for number, pool in enumerate(pools.values()):
        owner = np.array([place.get(name, -1) for name in pool.captions["image_id"]])
        captions.append(pool.sentences[owner >= 0])
        owners.append(owner[owner >= 0])
        languages.append(np.full(len(owners[-1]), number))
    sentences, language = np.concatenate(captions), np.concatenate(languages)
    found = ranks(images, sentences, np.arange(len(images)), np.concatenate(owners), scores)
    each = np.arange(len(found))
    bounds = recall_bounds(found, each, resamples=resamples, confidence=confidence, seed=seed)
    won = _first_languages(scores, images, sentences, language).mean(axis=0)
    shares = {name: 100 * float(share) for name, share in zip(pools, won, strict=True)}
    return {**direction_scores(found, bounds, len(sentences)), "first_language": shares}


def _first_languages(
    scores: Scores, images: np.ndarray, captions: np.ndarray, language: np.ndarray
) -> np.ndarray:
    """Return the language of each image's first caption as 1, or shares ``[images, languages]``."""
    starts, shares = np.unique(language, return_index=True)[1], []
    for start in range(0, len(images), _CHUNK):
        found = scores(images[start : start + _CHUNK], captions)
        best = np.maximum.reduceat(found, starts, axis=1)
        first = best == best.max(axis=1, keepdims=True)
        shares.append(first / first.sum(axis=1, keepdims=True))
    return np.concatenate(shares)
