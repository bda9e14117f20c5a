"""BLEU from sums over segments, so that tuning, intervals and tests can form it anew in numpy.

sacrebleu tokenises and counts; the score of the counts is computed here for many sums at once.
"""

from collections.abc import Sequence

import numpy as np
import torch
from sacrebleu.metrics import BLEU

from pipeline_lib.compute.arithmetic import functions

ORDERS = 4
"""Longest n-grams that are matched."""


def bleu_statistics(
    hypotheses: Sequence[str], references: Sequence[str], tokenize: str
) -> np.ndarray:
    """Count what each segment adds to corpus BLEU.

    Args:
        hypotheses: Translations ``[segments]``.
        references: One reference each ``[segments]``.
        tokenize: sacrebleu's name of a tokenizer, ``none`` for text that is tokenised.

    Returns:
        Integers ``[segments, 10]``: n-grams that match (n = 1..4), n-grams of the hypothesis
        (n = 1..4), length of the hypothesis, length of the reference.
    """
    metric = BLEU(tokenize=tokenize, effective_order=True, force=True)
    found = (
        metric.sentence_score(hypothesis, [reference])
        for hypothesis, reference in zip(hypotheses, references, strict=True)
    )
    rows = [(*score.counts, *score.totals, score.sys_len, score.ref_len) for score in found]
    return np.array(rows, np.int64).reshape(-1, 2 * ORDERS + 2)


def bleu(totals: np.ndarray) -> np.ndarray:
    """Return corpus BLEU in per cent of summed statistics ``[..., 10] -> [...]``.

    Papineni et al. (2002); an order without a match is smoothed as sacrebleu does by default, by
    halving once more for each such order (method 3 of Chen and Cherry 2014).
    """
    matches, possible = totals[..., :ORDERS], totals[..., ORDERS : 2 * ORDERS]
    halvings = np.cumsum(matches == 0, axis=-1)
    smoothed = np.where(matches == 0, 0.5**halvings, matches)
    defined = (possible > 0).all(axis=-1) & (matches > 0).any(axis=-1)
    precisions = log(np.where(possible > 0, smoothed / np.maximum(possible, 1), 1))
    score = exp(precisions.mean(axis=-1) + log_brevity_penalty(totals))
    return 100 * np.where(defined, score, 0)


def log(x: np.ndarray) -> np.ndarray:
    """Return natural logarithms of positive numbers; numpy's differ between CPUs."""
    return functions.log(torch.from_numpy(np.asarray(x, np.float64))).numpy()


def exp(x: np.ndarray) -> np.ndarray:
    """Return powers of e; numpy's differ between CPUs."""
    return functions.exp(torch.from_numpy(np.asarray(x, np.float64))).numpy()


def log_brevity_penalty(totals: np.ndarray) -> np.ndarray:
    """Return the logarithm of BLEU's brevity penalty ``[..., 10] -> [...]``."""
    length, reference = totals[..., -2], totals[..., -1]
    return np.minimum(0, 1 - reference / np.maximum(length, 1))
