"""How much more a re-ranked corpus scores, over the seeds of what ranked it and over sentences."""

from collections.abc import Mapping

import numpy as np

from pipeline_lib.evaluation.seed_noise import noise_draws, seed_noise
from pipeline_lib.evaluation.significance import (
    Score,
    bootstrap_interval,
    bootstrap_totals,
    randomisation_test,
)


def gain(
    before: np.ndarray, after: np.ndarray, score: Score, drawn: Mapping[str, float]
) -> dict[str, object]:
    """Test what re-ranking changes in a score of summed statistics.

    Every seed's model chooses for every sentence, as in :mod:`pipeline_lib.evaluation.seed_noise`:
    draws of the sentences, with the scores of the seeds averaged, and the seeds' own part besides.
    The test swaps a sentence's choices of all seeds for the one before at once.

    Args:
        before: Statistics of each sentence's choice ``[sentences, statistics]``.
        after: The same as each seed's model chooses ``[seeds, sentences, statistics]``.
        score: Turns sums over sentences into scores.
        drawn: ``resamples``, ``confidence`` and ``seed``.

    Returns:
        ``difference``, after less before in the score's unit, a mean over seeds, its ``interval``
        and two-sided ``p``; None where one seed, or one sentence, tells nothing of others.
        JSON-serialisable.
    """
    seeds = len(after)
    ways = [np.hstack([before] * seeds), np.hstack([*after])]

    def mean(totals: np.ndarray) -> np.ndarray:
        return score(totals.reshape(*totals.shape[:-1], seeds, -1)).mean(axis=-1)

    difference = float(mean(ways[1].sum(axis=0)) - score(before.sum(axis=0)))
    if min(seeds, len(before)) < 2:
        return {"difference": difference, "interval": None, "p": None}
    draws, seed = int(drawn["resamples"]), int(drawn["seed"])
    own = seed_noise([np.stack([contributions(each, score) for each in after])])
    noises = noise_draws(own, 1 / seeds, draws, seed)
    old = score(bootstrap_totals(before, draws, seed))
    new = mean(bootstrap_totals(ways[1], draws, seed))
    interval = bootstrap_interval(new - old + noises, drawn["confidence"])
    p = randomisation_test(*ways, mean, draws, seed, noises)
    return {"difference": difference, "interval": interval.tolist(), "p": p}


def contributions(statistics: np.ndarray, score: Score) -> np.ndarray:
    """Return what each sentence adds to a score ``[sentences]``.

    The jackknife's pseudo-values over their number (Efron and Tibshirani 1993, chapter 11): their
    sum is the score less its bias.

    Args:
        statistics: Of each sentence ``[sentences, statistics]``.
        score: Turns sums over sentences into scores.
    """
    total, sentences = statistics.sum(axis=0), len(statistics)
    return score(total) - (sentences - 1) / sentences * score(total - statistics)
