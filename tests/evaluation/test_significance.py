"""Intervals against the binomial and enumeration; the test against enumeration and its level."""

from itertools import product

import numpy as np
import pytest

from pipeline_lib.evaluation.significance import (
    bootstrap_counts,
    bootstrap_interval,
    bootstrap_ratios,
    bootstrap_totals,
    holm,
    randomisation_test,
    sign_flipped_totals,
)


def interval(sums, counts, seed=0, resamples=4000):
    ratios = bootstrap_ratios(sums[:, None], counts[:, None], resamples, seed)
    return bootstrap_interval(ratios[:, 0], 0.95)


def test_one_query_per_image_has_the_spread_of_the_binomial():
    hits = np.arange(1000) < 300
    low, high = interval(hits, np.ones(1000))
    half = 1.96 * np.sqrt(0.3 * 0.7 / 1000)
    assert (low, high) == pytest.approx((0.3 - half, 0.3 + half), abs=0.003)


def test_captions_of_an_image_go_together():
    """5 captions that hit or miss together carry the information of one, not of five."""
    together = 5 * (np.arange(1000) < 300)
    half = 1.96 * np.sqrt(0.3 * 0.7 / 1000)
    assert interval(together, np.full(1000, 5)) == pytest.approx(
        (0.3 - half, 0.3 + half), abs=0.003
    )


def test_bootstrap_matches_all_resamples_of_three_unequal_images():
    sums, counts = np.array([0, 2, 3]), np.array([1, 2, 5])
    every = [sums[list(i)].sum() / counts[list(i)].sum() for i in product(range(3), repeat=3)]
    ratios = bootstrap_ratios(sums[:, None], counts[:, None], 20_000, 1)[:, 0]
    values, frequency = np.unique(np.round(ratios, 9), return_counts=True)
    expected, weight = np.unique(np.round(every, 9), return_counts=True)
    np.testing.assert_array_equal(values, expected)
    np.testing.assert_allclose(frequency / 20_000, weight / 27, atol=0.015)


def test_statistics_share_their_draws():
    sums = np.random.default_rng(0).integers(0, 2, (50, 1))
    ratios = bootstrap_ratios(np.hstack([sums, 1 - sums]), np.ones((50, 2)), 700, 3)
    np.testing.assert_allclose(ratios.sum(axis=1), 1)


def test_bootstrap_is_seeded():
    sums, counts = np.arange(20) % 2, np.ones(20)
    np.testing.assert_array_equal(interval(sums, counts, 1), interval(sums, counts, 1))
    assert (interval(sums, counts, 1, 30) != interval(sums, counts, 2, 30)).any()


def test_images_without_a_query_are_refused():
    with pytest.raises(ValueError, match="smallest count 0"):
        bootstrap_ratios(np.ones((2, 1)), np.array([[1], [0]]), 10, 0)
    with pytest.raises(ValueError, match=r"\(2, 1\) and \(3, 1\)"):
        bootstrap_ratios(np.ones((2, 1)), np.ones((3, 1)), 10, 0)


def test_signs_are_tossed_unit_by_unit():
    values = np.array([[1.0, 10], [2, 20], [4, 40]])
    totals = sign_flipped_totals(values, 4000, 0)
    np.testing.assert_array_equal(totals[:, 1], 10 * totals[:, 0])
    found, count = np.unique(totals[:, 0], return_counts=True)
    assert found.tolist() == [-7, -5, -3, -1, 1, 3, 5, 7]
    np.testing.assert_allclose(count / 4000, 1 / 8, atol=0.02)


def test_holm_corrects_as_its_paper_does():
    # Holm 1979: the smallest of n by n, the next by n - 1; none below the one before it.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.6, 0.9]) == [1, 1]
    assert holm([]) == []


def ratio(totals):
    """Score two statistics by a ratio of sums, which no sum over units gives."""
    return totals[:, 0] / totals[:, 1]


def test_totals_sum_the_drawn_units():
    statistics = np.random.default_rng(8).integers(0, 9, (13, 4))
    counts = np.vstack(list(bootstrap_counts(13, 1201, 2)))
    assert counts.shape == (1201, 13)
    assert (counts.sum(axis=1) == 13).all()
    drawn = [statistics.repeat(row.astype(int), axis=0).sum(axis=0) for row in counts]
    np.testing.assert_array_equal(bootstrap_totals(statistics, 1201, 2), drawn)


@pytest.mark.parametrize("seed", range(3))
def test_randomisation_of_any_score_matches_all_swaps(seed):
    generator = np.random.default_rng(seed)
    a, b = generator.integers(1, 9, (2, 9, 2)).astype(float)
    b[4] = a[4]
    swaps = np.array(list(product([False, True], repeat=9)))[:, :, None]
    totals = [np.where(swaps, *sides).sum(axis=1) for sides in ((b, a), (a, b))]
    difference = ratio(totals[0]) - ratio(totals[1])
    exact = (abs(difference) >= abs(difference[0]) - 1e-12).mean()
    assert randomisation_test(a, b, ratio, 20_000, 0) == pytest.approx(exact, abs=0.012)


def test_systems_that_agree_on_every_unit_do_not_differ():
    statistics = np.random.default_rng(9).random((20, 2))
    assert randomisation_test(statistics, statistics.copy(), ratio, 99, 0) == 1
    with pytest.raises(ValueError, match=r"\(20, 2\) and \(19, 2\)"):
        randomisation_test(statistics, statistics[1:], ratio, 99, 0)


def test_what_else_moves_the_difference_makes_it_harder_to_show():
    generator = np.random.default_rng(4)
    counts = np.ones(200)
    a, b = (np.stack([generator.binomial(1, share, 200), counts], 1) for share in (0.3, 0.7))
    alone = randomisation_test(a, b, ratio, 999, 0)
    assert alone == randomisation_test(a, b, ratio, 999, 0, np.zeros(999)) < 0.01
    moved = generator.normal(0, 0.5, 999)
    assert randomisation_test(a, b, ratio, 999, 0, moved) > 0.3


def test_every_permutation_has_a_noise_of_its_own():
    a, b = (np.tile([share, 1.0], (50, 1)) for share in (0, 1))
    noises = np.repeat([0, 1e9], 500)
    assert randomisation_test(a, b, ratio, 1000, 0, noises) == 501 / 1001
