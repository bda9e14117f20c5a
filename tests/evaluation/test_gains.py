"""What re-ranking gains, over seeds and sentences: by hand, and in simulated studies."""

import numpy as np
import pytest
from translations import draw_lists

from pipeline_lib.evaluation.machine_translation.bleu import bleu
from pipeline_lib.evaluation.machine_translation.quality import ter
from pipeline_lib.evaluation.reranking.gains import contributions, gain

DRAWN = {"resamples": 400, "confidence": 0.95, "seed": 3}
LENGTH = 12


def edits(values):
    """Return the statistics of sentences with these edits, all equally long."""
    return np.stack([values, np.full(np.shape(values), LENGTH)], axis=-1)


def test_contributions_are_the_jackknifes():
    generator = np.random.default_rng(0)
    statistics = np.stack([generator.integers(0, 9, 40), generator.integers(9, 20, 40)], axis=1)
    without = [ter(np.delete(statistics, number, axis=0).sum(axis=0)) for number in range(40)]
    expected = ter(statistics.sum(axis=0)) - 39 / 40 * np.array(without)
    np.testing.assert_allclose(contributions(statistics, ter), expected)
    assert contributions(statistics, ter).sum() == pytest.approx(ter(statistics.sum(0)), rel=0.01)


def test_the_gain_is_the_mean_of_the_seeds():
    _, _, _, statistics = draw_lists(5, 30, 4)
    lists = statistics.reshape(30, 4, -1)
    before, after = lists[:, 0], np.stack([lists[:, 1], lists[:, 2], lists[:, 3]])
    found = gain(before, after, bleu, DRAWN)
    scores = [bleu(each.sum(axis=0)) for each in after]
    assert found["difference"] == pytest.approx(np.mean(scores) - bleu(before.sum(axis=0)))
    assert found["interval"][0] < found["difference"] < found["interval"][1]


@pytest.mark.parametrize(("seeds", "sentences"), [(1, 8), (2, 1)])
def test_one_seed_or_one_sentence_tells_nothing_of_others(seeds, sentences):
    before = np.arange(sentences)
    found = gain(edits(before), np.stack([edits(before + 1)] * seeds), ter, DRAWN)
    assert found == {"difference": pytest.approx(100 / LENGTH), "interval": None, "p": None}


def simulated(sentences, seeds, by_seed, by_both, generator):
    """Return edits before and after by seeds that gain nothing but what is drawn."""
    base = generator.normal(6, 2, sentences)
    own = generator.normal(0, by_seed, (seeds, 1))
    both = generator.normal(0, by_both, (seeds, sentences))
    before = base + generator.normal(0, 1, sentences)
    return edits(before), edits(base + generator.normal(0, 1, sentences) + own + both)


@pytest.mark.parametrize(("by_seed", "by_both"), [(0.2, 0.5), (0.0, 1.5), (0.5, 0.0)])
def test_equal_rankings_are_seldom_told_apart_and_intervals_hold_what_they_should(by_seed, by_both):
    generator = np.random.default_rng(11)
    found = [
        gain(*simulated(150, 3, by_seed, by_both, generator), ter, DRAWN | {"seed": number})
        for number in range(300)
    ]
    false = np.mean([each["p"] <= 0.05 for each in found])
    covered = np.mean([each["interval"][0] <= 0 <= each["interval"][1] for each in found])
    # Of 300 studies, four standard deviations about what is right.
    assert false <= 0.05 + 4 * np.sqrt(0.05 * 0.95 / 300)
    assert covered >= 0.95 - 4 * np.sqrt(0.05 * 0.95 / 300)


def widths(by_seed, by_both):
    """Return the widths of the intervals of simulated studies of 60 seeds, of the mean's own."""
    generator = np.random.default_rng(7)
    return [
        np.ptp(gain(*simulated(100, 60, by_seed, by_both, generator), ter, DRAWN)["interval"])
        for _ in range(20)
    ]


@pytest.mark.parametrize(("by_seed", "by_both"), [(3.0, 0.0), (0.0, 6.0)])
def test_intervals_are_as_wide_as_the_parts_say(by_seed, by_both):
    """Of many seeds, where no part is uncertain: the sentences', the seeds' own and the mixed."""
    variance = 2 / 100 + by_seed**2 / 60 + by_both**2 / 6000
    expected = 2 * 1.96 * np.sqrt(variance) * 100 / LENGTH
    assert np.median(widths(by_seed, by_both)) == pytest.approx(expected, rel=0.08)


def test_a_clear_gain_is_found():
    generator = np.random.default_rng(2)
    before, after = simulated(150, 3, 0.02, 0.5, generator)
    after = after - np.array([1.5, 0])
    found = gain(before, after, ter, DRAWN)
    assert found["p"] < 0.02
    assert found["interval"][1] < 0
