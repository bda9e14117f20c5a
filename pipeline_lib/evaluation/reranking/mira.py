"""Re-ranking of n-best lists: batch k-best MIRA, and the bounds between which it works.

Hypotheses are rows; the lists of all sentences stand one after the other. ``sentence`` numbers the
list of each row and never decreases.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from pipeline_lib.contract.problems import raise_problems
from pipeline_lib.evaluation.machine_translation.bleu import (
    ORDERS,
    bleu,
    exp,
    log,
    log_brevity_penalty,
)

_DRAWS = 100
"""Random choices at a time: bounds memory."""


@dataclass(frozen=True)
class Tuning:
    """Weights that batch MIRA found.

    Attributes:
        weights: One per feature ``[features]``; a hypothesis scores ``features @ weights``.
        epoch: The epoch they are from; 0 are the initial ones.
        bleu: BLEU of the re-ranked lists after each epoch, in per cent ``[1 + epochs]``.
    """

    weights: np.ndarray
    epoch: int
    bleu: list[float]


def tune_weights(
    features: np.ndarray,
    statistics: np.ndarray,
    sentence: np.ndarray,
    initial: np.ndarray,
    *,
    step_cap: float,
    decay: float,
    epochs: int,
    seed: int,
) -> Tuning:
    """Find the weights under which the best hypotheses of all lists have high corpus BLEU.

    Batch k-best MIRA (Cherry and Foster 2012, §2.3): for one list at a time, the hope hypothesis,
    high in model score and BLEU, must beat the fear one, high in score and low in BLEU, by their
    difference in BLEU. BLEU of one segment is that of the segment in a decaying background corpus,
    scaled by its length (Chiang et al. 2008). Weights are averaged over all steps, and the epoch
    with the best corpus BLEU wins. Features are scaled to unit spread within their lists, so that
    a step is as long in each; the weights are for the features as given.

    Args:
        features: ``[hypotheses, features]``, such as log-likelihood and similarities.
        statistics: BLEU statistics ``[hypotheses, 10]`` (:func:`bleu.bleu_statistics`).
        sentence: Number of each hypothesis's list ``[hypotheses]``.
        initial: Weights to start from ``[features]``; ``[1, 0, ...]`` is the translator's own.
        step_cap: Longest step, C.
        decay: What a step leaves of the background corpus.
        epochs: Passes over all lists, each in a new order.
        seed: Seed of the orders.

    Raises:
        ContractError: The arguments do not fit together; every problem is listed.
    """
    raise_problems("n-best lists", _problems(features, statistics, sentence, initial))
    scale = _spread(features, sentence)
    scaled, weights = features / scale, initial * scale
    candidates = [initial.astype(np.float64)]
    for average in _averaged_weights(
        scaled, statistics, sentence, weights, step_cap, decay, epochs, seed
    ):
        candidates.append(average / scale)
    scores = [list_bleu(weighted(features, each), statistics, sentence) for each in candidates]
    best = int(np.argmax(scores))
    return Tuning(candidates[best], best, scores)


def weighted(features: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the weighted sums of ``features [..., features]``, added in their order.

    A matrix product of BLAS adds them in an order of the CPU's.
    """
    return sum(feature * weight for feature, weight in zip(features.T, weights, strict=True))


def best_rows(scores: np.ndarray, sentence: np.ndarray) -> np.ndarray:
    """Return the row of the best hypothesis of each list ``[lists]``; of equals the first."""
    order = np.lexsort((-scores, sentence))
    return order[np.diff(sentence, prepend=sentence[0] - 1) > 0]


def list_bleu(scores: np.ndarray, statistics: np.ndarray, sentence: np.ndarray) -> float:
    """Return corpus BLEU in per cent of the hypotheses that score best."""
    return float(bleu(statistics[best_rows(scores, sentence)].sum(axis=0)))


def oracle_rows(statistics: np.ndarray, sentence: np.ndarray) -> np.ndarray:
    """Choose from each list so that corpus BLEU is as high as changing one choice can make it.

    Starts from the best BLEU per segment and changes one choice at a time while BLEU rises: a
    bound that re-ranking hardly reaches, if not the maximum over all combinations.

    Args:
        statistics: BLEU statistics ``[hypotheses, 10]``.
        sentence: Number of each hypothesis's list ``[hypotheses]``.

    Returns:
        One row per list ``[lists]``.
    """
    lists = _lists(sentence)
    chosen = best_rows(bleu(statistics), sentence)
    total = statistics[chosen].sum(axis=0)
    improved = True
    while improved:
        improved = False
        for number, rows in enumerate(lists):
            totals = total - statistics[chosen[number]] + statistics[rows]
            scores = bleu(totals)
            best = int(np.argmax(scores))
            if scores[best] > bleu(total):
                chosen[number], total, improved = rows.start + best, totals[best], True
    return chosen


def random_bleu(statistics: np.ndarray, sentence: np.ndarray, draws: int, seed: int) -> np.ndarray:
    """Return corpus BLEU in per cent of choices at random ``[draws]``.

    Args:
        statistics: BLEU statistics ``[hypotheses, 10]``.
        sentence: Number of each hypothesis's list ``[hypotheses]``.
        draws: How often to choose one hypothesis of each list.
        seed: Seed of the choices.
    """
    _, starts, sizes = np.unique(sentence, return_index=True, return_counts=True)
    generator = np.random.default_rng(seed)
    totals = []
    for start in range(0, draws, _DRAWS):
        shape = (min(_DRAWS, draws - start), len(starts))
        totals.append(statistics[starts + generator.integers(0, sizes, shape)].sum(axis=1))
    return bleu(np.concatenate(totals))


def _averaged_weights(
    features: np.ndarray,
    statistics: np.ndarray,
    sentence: np.ndarray,
    weights: np.ndarray,
    step_cap: float,
    decay: float,
    epochs: int,
    seed: int,
) -> Iterator[np.ndarray]:
    """Yield the mean of the weights of all steps so far, after each epoch."""
    generator = np.random.default_rng(seed)
    lists = _lists(sentence)
    # One segment of four words, translated perfectly: no order of the background is ever zero.
    background = np.array([4, 3, 2, 1, 4, 3, 2, 1, 4, 4], np.float64)
    total = np.zeros_like(weights)
    for epoch in range(epochs):
        for number in generator.permutation(len(lists)):
            rows = lists[number]
            gain = background_gain(statistics[rows], background)
            hope, step = mira_step(features[rows], gain, weights, step_cap)
            weights = weights + step
            background = decay * background + statistics[rows][hope]
            total += weights
        yield total / ((epoch + 1) * len(lists))


def mira_step(
    features: np.ndarray, gain: np.ndarray, weights: np.ndarray, step_cap: float
) -> tuple[int, np.ndarray]:
    """Return the hope hypothesis of one list and the change of the weights that it asks for.

    Args:
        features: ``[hypotheses, features]``.
        gain: BLEU of each hypothesis in the background ``[hypotheses]``.
        weights: ``[features]``.
        step_cap: Largest multiple of the difference between hope and fear.
    """
    scores = weighted(features, weights)
    hope, fear = int(np.argmax(scores + gain)), int(np.argmax(scores - gain))
    difference = features[hope] - features[fear]
    squared_length = weighted(difference, difference)
    loss = gain[hope] - gain[fear] - weighted(difference, weights)
    if loss <= 0 or not squared_length:
        return hope, np.zeros_like(weights)
    return hope, min(step_cap, loss / squared_length) * difference


def background_gain(statistics: np.ndarray, background: np.ndarray) -> np.ndarray:
    """Return BLEU of each segment joined to a background corpus, times the length of both.

    Args:
        statistics: BLEU statistics ``[hypotheses, 10]``.
        background: Those of the background, all positive ``[10]``.
    """
    totals = statistics + background
    logarithms = log(totals[:, :ORDERS] / totals[:, ORDERS : 2 * ORDERS])
    return exp(logarithms.mean(axis=1) + log_brevity_penalty(totals)) * totals[:, -1]


def _lists(sentence: np.ndarray) -> list[slice]:
    _, starts, sizes = np.unique(sentence, return_index=True, return_counts=True)
    return [slice(a, a + size) for a, size in zip(starts.tolist(), sizes.tolist(), strict=True)]


def _spread(features: np.ndarray, sentence: np.ndarray) -> np.ndarray:
    """Return each feature's standard deviation about the mean of its list; 1 where it is 0."""
    _, index, sizes = np.unique(sentence, return_inverse=True, return_counts=True)
    sums = np.zeros((len(sizes), features.shape[1]))
    np.add.at(sums, index, features)
    spread = np.sqrt(((features - (sums / sizes[:, None])[index]) ** 2).mean(axis=0))
    return np.where(spread > 0, spread, 1)


def _problems(
    features: np.ndarray, statistics: np.ndarray, sentence: np.ndarray, initial: np.ndarray
) -> Iterator[str]:
    if features.ndim != 2 or initial.shape != features.shape[1:]:
        yield f"expected a weight per feature, found {initial.shape} for {features.shape}"
    if not len(features) or not len(features) == len(statistics) == len(sentence):
        yield (
            "expected features, BLEU statistics and list of each hypothesis, found "
            f"{len(features)}, {len(statistics)} and {len(sentence)}"
        )
    if (np.diff(sentence) < 0).any():
        yield "expected lists one after the other, found a smaller number after a larger one"
    if not np.isfinite(features).all() or not np.isfinite(initial).all():
        yield "expected finite features and weights, found NaN or infinity"
