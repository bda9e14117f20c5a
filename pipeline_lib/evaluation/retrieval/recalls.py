"""Scores of image-to-text and text-to-image retrieval in one pool, with confidence intervals."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from pipeline_lib.contract.problems import raise_problems
from pipeline_lib.contract.recalls import CUTOFFS, recalls
from pipeline_lib.evaluation.retrieval.ranking import Scores, bidirectional_ranks, dot_products
from pipeline_lib.evaluation.significance import bootstrap_interval, bootstrap_ratios


@dataclass(frozen=True)
class RetrievalRanks:
    """Rank of the best right candidate of every query of a pool; 1 is best.

    Attributes:
        image_to_text: One rank per image ``[images]``: the best-ranked of its captions.
        text_to_image: One rank per caption ``[captions]``.
        caption_image: Position of each caption's image among the images ``[captions]``.
        folds: Parts of about equal size that the pool was ranked in, each on its own.
    """

    image_to_text: np.ndarray
    text_to_image: np.ndarray
    caption_image: np.ndarray
    folds: int = 1


def retrieval_ranks(
    images: np.ndarray,
    image_ids: Sequence[str],
    captions: np.ndarray,
    caption_image_ids: Sequence[str],
    scores: Scores = dot_products,
) -> RetrievalRanks:
    """Rank a pool in both directions.

    Args:
        images: Image vectors ``[images, dim]``.
        image_ids: Their ids, unique ``[images]``.
        captions: Caption vectors ``[captions, dim]``.
        caption_image_ids: Id of each caption's image ``[captions]``.
        scores: Scores of all pairs of some images (first) and some captions (second).

    Returns:
        The ranks, in the order of the arguments.

    Raises:
        ContractError: Ids and vectors do not fit together; every problem is listed.
        ValueError: The vectors are unusable; see :func:`ranking.bidirectional_ranks`.
    """
    raise_problems("retrieval pool", _pool_problems(images, image_ids, captions, caption_image_ids))
    position = {image_id: i for i, image_id in enumerate(image_ids)}
    caption_image = np.array([position[image_id] for image_id in caption_image_ids], np.int64)
    return RetrievalRanks(
        *bidirectional_ranks(images, captions, caption_image, scores), caption_image
    )


def summarise(
    ranks: RetrievalRanks, *, resamples: int, confidence: float, seed: int
) -> dict[str, object]:
    """Summarise the ranks of a pool.

    Args:
        ranks: Ranks in both directions.
        resamples: Bootstrap draws of the images.
        confidence: Level of the intervals, such as 0.95.
        seed: Seed of the draws.

    Returns:
        By direction: ``r1``, ``r5``, ``r10`` in per cent, each with ``..._interval`` [low, high],
        ``median_rank``, ``mean_rank``, ``n_queries``, ``n_candidates``. Beside them
        ``sum_of_recalls`` of the six and ``mean_recall``, also with intervals. JSON-serialisable.
    """
    n_images, n_captions = len(ranks.image_to_text), len(ranks.text_to_image)
    values = np.array([*recalls(ranks.image_to_text), *recalls(ranks.text_to_image)])
    # Both directions have the same images and seed, so they share their draws.
    draws = np.hstack(
        [
            bootstrapped_recalls(ranks.image_to_text, np.arange(n_images), resamples, seed),
            bootstrapped_recalls(ranks.text_to_image, ranks.caption_image, resamples, seed),
        ]
    )
    intervals = bootstrap_interval(draws, confidence).T.tolist()
    total = bootstrap_interval(draws.sum(axis=1), confidence)
    k = len(CUTOFFS)
    return {
        "image_to_text": direction_scores(
            ranks.image_to_text, intervals[:k], n_captions // ranks.folds
        ),
        "text_to_image": direction_scores(
            ranks.text_to_image, intervals[k:], n_images // ranks.folds
        ),
        "sum_of_recalls": float(values.sum()),
        "sum_of_recalls_interval": total.tolist(),
        "mean_recall": float(values.mean()),
        "mean_recall_interval": (total / len(values)).tolist(),
    }


def recall_bounds(
    ranks: np.ndarray, unit: np.ndarray, *, resamples: int, confidence: float, seed: int
) -> list[list[float]]:
    """Return bounds ``[low, high]`` of the recall at each of :data:`CUTOFFS`, in per cent.

    Args:
        ranks: One rank per query ``[queries]``.
        unit: What each query belongs to and is drawn with, such as its image ``[queries]``.
        resamples: Bootstrap draws of the units.
        confidence: Level of the intervals, such as 0.95.
        seed: Seed of the draws.
    """
    draws = bootstrapped_recalls(ranks, unit, resamples, seed)
    return bootstrap_interval(draws, confidence).T.tolist()


def direction_scores(
    ranks: np.ndarray, intervals: list[list[float]], n_candidates: int
) -> dict[str, object]:
    """Summarise the ranks of one direction.

    Args:
        ranks: One rank per query ``[queries]``.
        intervals: Bounds ``[low, high]`` of the recall at each of :data:`CUTOFFS`.
        n_candidates: Size of the pool that was ranked.
    """
    values = {f"r{k}": value for k, value in zip(CUTOFFS, recalls(ranks), strict=True)}
    bounds = {f"r{k}_interval": bound for k, bound in zip(CUTOFFS, intervals, strict=True)}
    return {
        **values,
        **bounds,
        # The field's convention for an even number of queries: floor, counting from 0, then + 1.
        "median_rank": int(np.floor(np.median(ranks - 1))) + 1,
        "mean_rank": float(ranks.mean()),
        "n_queries": len(ranks),
        "n_candidates": n_candidates,
    }


def bootstrapped_recalls(
    ranks: np.ndarray, query_unit: np.ndarray, resamples: int, seed: int
) -> np.ndarray:
    """Return R@K in per cent ``[resamples, cutoffs]`` of queries drawn unit by unit.

    Args:
        ranks: One rank per query ``[queries]``.
        query_unit: What each query is drawn with, its image as a rule ``[queries]``.
        resamples: Bootstrap draws.
        seed: Seed of the draws.
    """
    _, unit = np.unique(query_unit, return_inverse=True)
    hits = np.stack([np.bincount(unit, weights=ranks <= k) for k in CUTOFFS], axis=1)
    counts = np.repeat(np.bincount(unit)[:, None], len(CUTOFFS), axis=1)
    return 100 * bootstrap_ratios(hits, counts, resamples, seed)


def _pool_problems(
    images: np.ndarray,
    image_ids: Sequence[str],
    captions: np.ndarray,
    caption_image_ids: Sequence[str],
) -> Iterator[str]:
    for name, vectors, ids in (
        ("image", images, image_ids),
        ("caption", captions, caption_image_ids),
    ):
        if len(vectors) != len(ids) or not len(ids):
            yield f"expected one id per {name} vector, found {len(ids)} for {len(vectors)}"
    known, used = set(image_ids), set(caption_image_ids)
    if len(known) < len(image_ids):
        yield f"expected unique image ids, found {len(image_ids)} with {len(known)} distinct"
    if used - known:
        yield f"captions of {len(used - known)} images not in the pool: {_first(used - known)}"
    if known - used:
        yield f"{len(known - used)} images without a caption in the pool: {_first(known - used)}"


def _first(ids: set[str]) -> str:
    return ", ".join(sorted(ids)[:5]) + (", ..." if len(ids) > 5 else "")
