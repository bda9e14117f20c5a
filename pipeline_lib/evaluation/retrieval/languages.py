"""Pools that can be compared over languages: the same images, one caption of each.

A language may have five captions of an image, another a translation of one of them. Of each image
that caption is taken which is known in most languages.
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from pipeline_lib.contract.tables import meanings
from pipeline_lib.evaluation.probes import highest
from pipeline_lib.evaluation.retrieval.pools import RankedPool
from pipeline_lib.evaluation.retrieval.ranking import Scores
from pipeline_lib.evaluation.significance import bootstrap_interval, bootstrap_totals
from pipeline_lib.evaluation.similarity.correlation import (
    bootstrapped_spearman,
    correlation_interval,
    spearman,
)

NEAREST = 10
"""Images that are compared for each caption."""

_RARE = 0.1
"""Share of the sentences of the language with most, below which one has too few to compare; and
of the images with a translated sentence, below which those that all languages have are too few."""

_CAPTIONS = 1024
"""Captions that are scored at once."""


def translated_alike(captions: pd.DataFrame) -> pd.Series:
    """Return which captions are translations of each other in all languages that have any.

    One sentence of each image, of the images for which every such language has it. If these are
    fewer than a tenth of the images with a translated sentence, all of the latter are taken
    instead. Languages with fewer than a tenth of the translated sentences of the largest are left
    out, since all others would be cut down to as few.

    Args:
        captions: Rows of one split (contract.tables.CAPTIONS).

    Returns:
        Booleans by the index of ``captions``.
    """
    translated = captions[_spoken(captions) > 1]
    sizes = translated["language"].value_counts()
    common = sizes.index[sizes >= _RARE * sizes.max()]
    own = captions[captions["language"].isin(common)]
    spoken = _spoken(own)
    known = (spoken > 1) & _first_of_image(own, spoken)
    chosen = known & (spoken == len(common))
    images = [own.loc[rows, "image_id"].nunique() for rows in (chosen, known)]
    shared = chosen if images[0] >= _RARE * images[1] else known
    return shared.reindex(captions.index, fill_value=False)


def one_per_image(captions: pd.DataFrame, kinds: Mapping[str, str]) -> pd.DataFrame:
    """Take one caption of each language and image, of the images that all languages have.

    Args:
        captions: Rows of one split (contract.tables.CAPTIONS).
        kinds: The kind of annotation that is ranked, by language: people's translations are taken
            beside it.
    """
    captions = captions[captions["language"].isin(kinds)]
    ranked = captions["annotation"] == captions["language"].map(kinds)
    captions = captions[ranked | (captions["annotation"] != "machine")]
    order = captions.assign(spoken=-_spoken(captions), meaning=meanings(captions))
    order = order.sort_values(["spoken", "meaning", "position", "caption_id"], kind="stable")
    chosen = order.drop_duplicates(["language", "image_id"]).index
    captions = captions.loc[captions.index.isin(chosen)]
    complete = captions.groupby("image_id")["language"].transform("nunique") == len(kinds)
    return captions[complete]


def consistency(
    one: RankedPool,
    other: RankedPool,
    scores: Scores,
    *,
    resamples: int,
    confidence: float,
    seed: int,
) -> dict[str, object]:
    """Compare what an image's captions in two languages find.

    Args:
        one: Pool of one caption per image.
        other: Of another language, same images in the same order.
        scores: Scores of all pairs of some images and some captions.
        resamples: Bootstrap draws of the images.
        confidence: Level of the intervals.
        seed: Of the draws.

    Returns:
        ``overlap``, the share in per cent of the :data:`NEAREST` images of a caption that are also
        among those of the other, and ``rank_correlation``, Spearman's, of the ranks of their own
        images, each with its interval; ``n_queries``. JSON-serialisable. The correlation is None
        where all ranks of one language are the same, as where it finds every image.
    """
    found = [_nearest(pool, scores) for pool in (one, other)]
    both = (found[0][:, :, None] == found[1][:, None, :]).any(axis=2)
    shares = 100 * both.sum(axis=1) / both.shape[1]
    ranks = [_by_image(pool, pool.ranks.text_to_image) for pool in (one, other)]
    overlaps = bootstrap_totals(shares[:, None], resamples, seed)[:, 0] / len(shares)
    return {
        "overlap": float(shares.mean()),
        "overlap_interval": bootstrap_interval(overlaps, confidence).tolist(),
        **_rank_correlation(*ranks, resamples=resamples, confidence=confidence, seed=seed),
        "n_queries": len(shares),
    }


def _rank_correlation(
    one: np.ndarray, other: np.ndarray, *, resamples: int, confidence: float, seed: int
) -> dict[str, object]:
    if min(np.ptp(one), np.ptp(other)) == 0:
        return {"rank_correlation": None}
    draws = bootstrapped_spearman(one, other, resamples, seed)
    interval = correlation_interval("rank_correlation", draws, confidence)
    return {"rank_correlation": spearman(one, other), **interval}


def _nearest(pool: RankedPool, scores: Scores) -> np.ndarray:
    """Return the nearest images to the caption of each image, integers ``[images, nearest]``."""
    count = min(NEAREST, len(pool.images))
    parts = (
        highest(scores(pool.images, pool.sentences[first : first + _CAPTIONS]).T, count)
        for first in range(0, len(pool.sentences), _CAPTIONS)
    )
    found = [np.nonzero(part)[1].reshape(len(part), count) for part in parts]
    return _by_image(pool, np.concatenate(found))


def _by_image(pool: RankedPool, values: np.ndarray) -> np.ndarray:
    """Put values of captions, one of each image, into the order of the images."""
    return values[np.argsort(pool.ranks.caption_image)]


def _spoken(captions: pd.DataFrame) -> pd.Series:
    """Return in how many languages each sentence is known."""
    return captions["language"].groupby(meanings(captions)).transform("nunique")


def _first_of_image(captions: pd.DataFrame, spoken: pd.Series) -> pd.Series:
    """Return whether a sentence is the first of those of its image that most languages know."""
    order = pd.DataFrame(
        {"image": captions["image_id"], "spoken": -spoken, "meaning": meanings(captions)}
    )
    first = order.sort_values(["spoken", "meaning"]).drop_duplicates("image")
    return order["meaning"] == order["image"].map(first.set_index("image")["meaning"])
