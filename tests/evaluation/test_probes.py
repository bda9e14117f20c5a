"""Hub counts against sorting, skewness against pandas', recall by bin against plain counts."""

from collections import Counter

import numpy as np
import pandas as pd
import pytest

from pipeline_lib.evaluation import probes
from pipeline_lib.evaluation.probes import (
    hub_counts,
    hubness,
    rarest_word_counts,
    recalls_by_bin,
    skewness,
)

BOOTSTRAP = {"resamples": 300, "confidence": 0.95, "seed": 0}


def by_sorting(queries, candidates, neighbours, own):
    counts = Counter()
    for i, query in enumerate(queries):
        order = sorted(range(len(candidates)), key=lambda j: -(query @ candidates[j]))
        counts.update([j for j in order if not own or i != j][:neighbours])
    return [counts[j] for j in range(len(candidates))]


def test_counts_equal_those_by_sorting(monkeypatch):
    monkeypatch.setattr(probes, "_CHUNK", 16)
    generator = np.random.default_rng(0)
    queries, candidates = generator.standard_normal((50, 5)), generator.standard_normal((33, 5))
    found = hub_counts(queries, candidates, 4)
    assert found.tolist() == by_sorting(queries, candidates, 4, own=False)
    assert hub_counts(queries, None, 4).tolist() == by_sorting(queries, queries, 4, own=True)
    with pytest.raises(ValueError, match="expected 1 to 32 neighbours, found 33"):
        hub_counts(queries, candidates, 33)


def test_of_equally_near_candidates_the_first_are_counted():
    queries = np.ones((3, 2), np.float32)
    candidates = np.array([[0, 1], [1, 1], [0, 0], [1, 0], [0, 1], [1, 0]], np.float32)
    assert hub_counts(queries, candidates, 3).tolist() == [3, 3, 0, 3, 0, 0]
    assert hub_counts(np.ones((4, 2)), None, 2).tolist() == [3, 3, 2, 0]


def test_skewness_equals_that_of_pandas():
    sample = np.random.default_rng(1).exponential(size=50)
    unbiased = pd.Series(sample).skew()
    assert skewness(sample) == pytest.approx(unbiased * 48 / np.sqrt(50 * 49))
    assert skewness(np.full(5, 3)) == 0


def test_hubness_tells_a_space_with_a_hub_from_one_without():
    generator = np.random.default_rng(2)
    angle = np.linspace(0, 2 * np.pi, 101)[:-1]
    circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    assert hubness(circle, None, 2) == {
        "skewness": 0,
        "largest": 2,
        "unseen": 0,
        "neighbours": 2,
        "n_queries": 100,
        "n_candidates": 100,
    }
    blob = generator.standard_normal((300, 50))
    middle = np.vstack([blob + 1, 5 * np.ones(50)])
    found = hubness(blob + 1, middle, 1)
    assert found["largest"] > 200
    assert found["skewness"] > 10
    assert found["unseen"] > 50


def test_recall_by_length_equals_counts_of_each_bin():
    generator = np.random.default_rng(3)
    ranks, lengths = generator.integers(1, 20, 200), generator.integers(3, 25, 200)
    image = np.repeat(np.arange(40), 5)
    found = recalls_by_bin(ranks, lengths, [8, 9, 12, 90], image, 40, **BOOTSTRAP)
    bins = {"0-7": (0, 7), "8": (8, 8), "9-11": (9, 11), "12-89": (12, 89)}
    assert list(found) == list(bins)
    for label, (low, high) in bins.items():
        inside = ranks[(lengths >= low) & (lengths <= high)]
        assert found[label]["n_queries"] == len(inside)
        assert found[label]["r5"] == pytest.approx(100 * np.mean(inside <= 5))
        assert found[label]["r5_interval"][0] < found[label]["r5"] < found[label]["r5_interval"][1]


def test_captions_of_an_image_go_together_in_a_bin():
    image = np.repeat(np.arange(200), 5)
    ranks = np.where(image < 60, 1, 7)
    found = recalls_by_bin(ranks, np.full(1000, 9), [8], image, 200, **BOOTSTRAP)
    half = 196 * np.sqrt(0.3 * 0.7 / 200)  # of 200 images, not of 1,000 captions
    assert found["8-"]["r1_interval"] == pytest.approx([30 - half, 30 + half], abs=1.5)


def test_rarest_words_come_from_training_counts():
    training = Counter(["a", "dog", "runs", "a", "dog", "a"])
    found = rarest_word_counts([["a", "dog"], ["a"], ["dog", "runs"], ["a", "cat"]], training)
    assert found.tolist() == [2, 3, 1, 0]
    assert "cat" not in training


def test_unequal_arguments_and_unordered_edges_are_refused():
    with pytest.raises(ValueError, match="found 2, 3 and 2"):
        recalls_by_bin(np.ones(2), np.ones(3), [1], np.ones(2), 2, **BOOTSTRAP)
    with pytest.raises(ValueError, match=r"found \[3, 3\]"):
        recalls_by_bin(np.ones(2), np.ones(2), [3, 3], np.ones(2), 2, **BOOTSTRAP)
