"""Intervals against the binomial and enumeration; the test against enumeration and its level."""

from itertools import product

import numpy as np
import pytest

from pipeline_lib.evaluation.significance import (
    bootstrap_counts,
    bootstrap_difference,
    bootstrap_interval,
    bootstrap_ratios,
    bootstrap_totals,
    paired_test,
    randomisation_test,
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


def test_identical_recipes_have_p_one():
    hits = np.arange(100) % 3 == 0
    assert paired_test(hits, hits.copy(), np.arange(100) // 5, 999, 0) == 1


def test_clear_difference_has_the_smallest_p():
    hits = np.ones(300, bool)
    assert paired_test(hits, ~hits, np.arange(300), 999, 0) == pytest.approx(1 / 1000)


@pytest.mark.parametrize(("wins", "losses"), [(5, 1), (7, 2), (6, 6)])
def test_p_matches_the_exact_sign_test(wins, losses):
    """One query per image: the randomisation test is the two-sided sign test."""
    a = np.array([1] * wins + [0] * losses + [1] * 10, bool)
    b = np.array([0] * wins + [1] * losses + [1] * 10, bool)
    tosses = np.array(list(product([-1, 1], repeat=wins + losses))).sum(axis=1)
    exact = (abs(tosses) >= abs(wins - losses)).mean()
    assert paired_test(a, b, np.arange(len(a)), 20_000, 0) == pytest.approx(exact, abs=0.012)


def test_p_matches_enumeration_over_images_with_several_captions():
    generator = np.random.default_rng(6)
    image = np.repeat([40, 7, 19, 3, 88, 21, 5, 60], [1, 5, 5, 2, 5, 4, 5, 5])
    a, b = generator.random(32) < 0.7, generator.random(32) < 0.3
    difference = [a[image == i].sum() - float(b[image == i].sum()) for i in set(image)]
    tosses = np.array(list(product([-1, 1], repeat=8))) @ difference
    exact = (abs(tosses) >= abs(sum(difference))).mean()
    assert 0.01 < exact < 0.5
    order = generator.permutation(32)
    found = paired_test(a[order], b[order], image[order], 20_000, 0)
    assert found == pytest.approx(exact, abs=0.012)


def p_without_a_difference(query_image, image):
    """Test 500 pairs of recipes that differ by chance, and whose hits come image by image."""
    generator = np.random.default_rng(7)
    draws = [(generator.random((2, 60)) < 0.5)[:, image] for _ in range(500)]
    return np.array([paired_test(*hits, query_image, 199, i) for i, hits in enumerate(draws)])


def test_p_is_uniform_when_recipes_differ_by_chance_only():
    image = np.repeat(np.arange(60), np.arange(60) % 9 + 1)
    p = p_without_a_difference(image, image)
    for level in (0.1, 0.25, 0.5, 0.75):
        assert (p <= level).mean() == pytest.approx(level, abs=0.06)
    captions_as_units = p_without_a_difference(np.arange(len(image)), image)
    assert (captions_as_units <= 0.1).mean() > 0.3, "these draws do not need images as units"


def test_arguments_of_unequal_length_and_ranks_in_place_of_hits_are_refused():
    hits = np.ones(4, bool)
    with pytest.raises(ValueError, match=r"\(4,\), \(3,\) and \(4,\)"):
        paired_test(hits, hits[:3], np.arange(4), 99, 0)
    with pytest.raises(ValueError, match="expected boolean hits, found int64"):
        paired_test(np.arange(4), hits, np.arange(4), 99, 0)


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


def test_bootstrapped_difference_has_the_p_of_the_normal_distribution():
    """Shared draws: units that are hard for both systems do not blur their difference."""
    generator = np.random.default_rng(10)
    hard, noise = generator.standard_normal((2, 400))
    a, b = 10 * hard, 10 * hard + noise - noise.mean() - 0.1 * noise.std()
    draws = [bootstrap_totals(side[:, None], 20_000, 3)[:, 0] / 400 for side in (a, b)]
    found = bootstrap_difference(*draws, 0.95)
    half = 1.96 * noise.std() / 20
    middle = 0.1 * noise.std()
    assert found["interval"] == pytest.approx([middle - half, middle + half], abs=0.006)
    assert found["p"] == pytest.approx(0.0455, abs=0.008)  # two standard errors, two-sided
    assert bootstrap_difference(draws[0], draws[0], 0.95) == {"interval": [0, 0], "p": 1}
    with pytest.raises(ValueError, match=r"\(20000,\) and \(5,\)"):
        bootstrap_difference(draws[0], draws[1][:5], 0.95)
