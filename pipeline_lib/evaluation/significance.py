"""How sure a score is: bootstrap confidence intervals and a paired test, both over images.

The captions of one image are not independent, so the image is the unit that is drawn: its queries
stay together. A score is then a ratio of sums over images, such as hits / queries.
"""

import numpy as np

_BATCH = 500
"""Draws per step: bounds memory at ``_BATCH x images`` numbers."""


def bootstrap_ratios(sums: np.ndarray, counts: np.ndarray, resamples: int, seed: int) -> np.ndarray:
    """Draw the images again with replacement, and compute the ratios of each draw.

    Columns share their draws, so sums of columns have the right spread too. See Efron and
    Tibshirani, An Introduction to the Bootstrap, 1993, chapter 13 (percentile intervals).

    Args:
        sums: Sum of a value over the queries of each image ``[images, statistics]``.
        counts: Queries of each image ``[images, statistics]``.
        resamples: How many times to draw.
        seed: Seed of the draws; with equal images, equal draws.

    Returns:
        Ratios of the summed values to the summed counts ``[resamples, statistics]``.

    Raises:
        ValueError: ``sums`` and ``counts`` differ in shape, or an image has no query.
    """
    if sums.ndim != 2 or sums.shape != counts.shape or not (counts > 0).all():
        raise ValueError(
            "expected sums and counts [images, statistics] with a query for each image, found "
            f"{sums.shape} and {counts.shape}, smallest count {counts.min(initial=0)}"
        )
    generator = np.random.default_rng(seed)
    both = np.hstack([sums, counts]).astype(np.float64)
    totals = np.vstack(
        [
            _draws(len(sums), min(_BATCH, resamples - start), generator) @ both
            for start in range(0, resamples, _BATCH)
        ]
    )
    return totals[:, : sums.shape[1]] / totals[:, sums.shape[1] :]


def bootstrap_interval(ratios: np.ndarray, confidence: float) -> np.ndarray:
    """Return the percentile interval ``[2, ...]`` of bootstrapped values ``[resamples, ...]``."""
    tail = (1 - confidence) / 2
    return np.quantile(ratios, [tail, 1 - tail], axis=0)


def paired_test(
    hits_a: np.ndarray,
    hits_b: np.ndarray,
    query_image: np.ndarray,
    permutations: int,
    seed: int,
) -> float:
    """Test whether two recipes differ on the same queries, by randomisation over images.

    Under the null hypothesis the two recipes are interchangeable on every image, so the sign of
    each image's difference is a coin toss. The test is two-sided; the observed labelling counts
    as one of the draws, which keeps p above zero (Phipson and Smyth 2010). Smucker, Allan and
    Carterette (2007) compare it with the other tests of information retrieval.

    Args:
        hits_a: Whether recipe a found each query's right candidate ``[queries]``, boolean.
        hits_b: The same for recipe b, same queries in the same order.
        query_image: Image of each query, integers ``[queries]``.
        permutations: How many times to toss the signs.
        seed: Seed of the tosses.

    Returns:
        The p-value, in (0, 1].

    Raises:
        ValueError: The arguments are not of equal length, or the hits not boolean.
    """
    if not hits_a.shape == hits_b.shape == query_image.shape or hits_a.ndim != 1:
        raise ValueError(
            "expected one entry per query everywhere, found shapes "
            f"{hits_a.shape}, {hits_b.shape} and {query_image.shape}"
        )
    if hits_a.dtype != bool or hits_b.dtype != bool:
        raise ValueError(f"expected boolean hits, found {hits_a.dtype} and {hits_b.dtype}")
    difference = _sums_by_image(hits_a.astype(np.int64) - hits_b, query_image)
    difference = difference[difference != 0]
    generator = np.random.default_rng(seed)
    extreme = 1
    for start in range(0, permutations, _BATCH):
        shape = (min(_BATCH, permutations - start), len(difference))
        flipped = generator.integers(0, 2, shape, dtype=np.int8).astype(np.float64) @ difference
        # Whole numbers in float64 are exact, so equal sums are found equal.
        tossed = difference.sum() - 2 * flipped
        extreme += int((abs(tossed) >= abs(difference.sum())).sum())
    return extreme / (permutations + 1)


def _draws(images: int, resamples: int, generator: np.random.Generator) -> np.ndarray:
    """Return how often each image was drawn, ``float64 [resamples, images]``."""
    drawn = generator.integers(0, images, (resamples, images))
    drawn += np.arange(resamples)[:, None] * images
    counts = np.bincount(drawn.ravel(), minlength=resamples * images)
    return counts.reshape(resamples, images).astype(np.float64)


def _sums_by_image(values: np.ndarray, query_image: np.ndarray) -> np.ndarray:
    _, image = np.unique(query_image, return_inverse=True)
    return np.bincount(image, weights=values)
