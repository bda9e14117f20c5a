"""What is tested, by which noise of seeds, corrected for how many tests; and intervals of means."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from study import ROOT

from pipeline_lib.evaluation.retrieval.hits import HITS, image_hits
from pipeline_lib.evaluation.retrieval.recalls import RetrievalRanks, summarise
from pipeline_lib.reporting.comparisons import p_value, signed
from pipeline_lib.reporting.differences import (
    ONE_SEED,
    Asked,
    Measured,
    differences,
    pooled_degrees,
)
from pipeline_lib.reporting.figures import COLUMNS, KEY
from pipeline_lib.reporting.intervals import over_seeds
from pipeline_lib.settings.loading import load_settings

EVALUATIONS = load_settings(ROOT / "params.yaml").evaluations
PHOTOS = 600


def hits_of(rows, queries="q", language="de"):
    """Return the hits of seeds whose photos, of one caption each, have these hits both ways."""
    texts = ["".join(map(str, row)) for row in rows]
    table = [
        [language, seed, len(text), "1", queries, text, text] for seed, text in enumerate(texts, 1)
    ]
    return pd.DataFrame(table, columns=HITS)


def random_hits(seeds, number, mean=1.5):
    return np.random.default_rng(number).binomial(3, mean / 3, (seeds, PHOTOS))


def study(rows, initial=(), **figures):
    """Return what is measured of recipes with these hits ``{name: [seeds, photos]}``."""
    initial = {name: "none" for name in rows} | dict(initial)
    recipes = {
        name: SimpleNamespace(initial=initial[name], seeds=list(range(1, len(own) + 1)))
        for name, own in rows.items()
    }
    lines = []
    for name, own in rows.items():
        sums = 200 * own.mean(axis=1)
        sd = sums.std(ddof=1) if len(sums) > 1 else np.nan
        line = [name, "retrieval", "de", "", "sum_of_recalls", len(own), sums.mean(), sd]
        lines.append([*line, sums.mean() - 9, sums.mean() + 9, PHOTOS])
    hits = {name: hits_of(own) for name, own in rows.items()}
    return Measured(pd.DataFrame(lines, columns=COLUMNS), hits, recipes, EVALUATIONS)


def one_test(measured, a="a", b="b"):
    asked = Asked.sums(a, b, "de")
    return differences([asked], measured)[asked]


def test_a_difference_is_that_of_means_over_seeds():
    rows = {"a": random_hits(3, 1), "b": random_hits(2, 2)}
    found = one_test(study(rows))
    points = 200 * (rows["a"].mean() - rows["b"].mean())
    assert found.difference == pytest.approx(points)
    assert found.low < points < found.high
    turned = one_test(study(rows), "b", "a")
    assert (turned.difference, turned.low, turned.high, turned.p) == pytest.approx(
        (-points, -found.high, -found.low, found.p)
    )


def test_seeds_that_start_from_one_model_are_no_runs_of_their_own():
    """Their deviation is that of the rest of the training alone."""
    rows = {"a": random_hits(3, 1), "b": random_hits(3, 2), "start": random_hits(1, 3)}
    measured = study(rows, {"a": "start"})
    assert one_test(measured).untested == "seeds that start from one model: not tested"
    [pool] = measured.pools
    assert measured.pooled[pool] == study({"b": rows["b"]}).pooled[pool]


def test_captions_that_two_engines_translated_are_no_same_queries():
    """They are of the same photos, as many of each."""
    measured = study({"a": random_hits(3, 1), "b": random_hits(3, 2), "c": random_hits(3, 3)})
    measured = replace(measured, datasets={"a": "by_one", "b": "by_another", "c": "by_one"})
    assert one_test(measured).untested == "different test queries: not tested"
    assert one_test(measured, "a", "c").untested == ""
    assert sorted(map(sorted, measured.pools.values())) == [["a", "c"], ["b"]]


def test_only_a_clear_difference_is_no_chance():
    alike = one_test(study({"a": random_hits(3, 1), "b": random_hits(3, 2)}))
    better = one_test(study({"a": random_hits(3, 1, 2.2), "b": random_hits(3, 2)}))
    assert alike.p > 0.05
    assert better.p < 0.001
    assert one_test(study({"a": random_hits(3, 1), "b": random_hits(3, 1)})).p == 1


def lift(own, by):
    """Raise each seed's sum by a number of points, by the hits of as many photos."""
    moved = own.copy()
    for row, points in zip(moved, by, strict=True):
        room = np.flatnonzero(row < 3)
        row[room[: round(points * PHOTOS / 200)]] += 1
    return moved


def test_p_knows_of_seeds():
    """Rows that agree on nearly all photos but whose seeds lie far apart do not differ."""
    base = np.repeat(random_hits(1, 1), 3, axis=0)
    apart = {"a": lift(base, (20, 4, 12)), "b": lift(base, (0, 16, 4))}
    near = {"a": lift(base, (12, 12, 12)), "b": lift(base, (7, 6, 7))}
    points = [one_test(study(rows)) for rows in (apart, near)]
    assert [found.difference for found in points] == pytest.approx([5.3, 5.3], abs=0.3)
    assert points[0].p > 0.2
    assert points[1].p < 0.01


def test_seeds_are_paired_where_rows_share_their_initial_weights():
    base = np.repeat(random_hits(1, 1), 3, axis=0)
    rows = {"b": lift(base, (0, 10, 20)), "a": lift(base, (5, 15, 25))}
    apart, *tuned = (study(rows, initial) for initial in ({}, {"a": "b"}, {"b": "a"}))
    assert one_test(apart).p > 0.3
    assert all(one_test(each).p < 0.01 for each in tuned)
    both = study({**rows, "start": rows["b"]}, {"a": "start", "b": "start"})
    assert one_test(both).p < 0.01


def test_differences_of_one_family_have_the_degrees_of_their_rows():
    """A − B, A − C and B − C know no more than two of them, A − B and A − C yet less."""
    pairs = [("a", "b", 3), ("a", "c", 3), ("b", "c", 3)]
    assert [pooled_degrees(pairs[:count]) for count in (0, 1, 3)] == [0, 2, 4]
    assert pooled_degrees(pairs[:2]) == pytest.approx(16 / 5)
    assert pooled_degrees([("x", "y", 3), ("u", "v", 3)]) == 4
    assert pooled_degrees([("x", "y", 3), ("u", "v", 5)]) == 2 + 4


@pytest.mark.parametrize("others", [2, 3, 8])
def test_degrees_of_a_star_are_those_of_its_pooled_variance(others):
    """By 100,000 draws of rows that deviate alike: degrees of a chi² are 2 mean² / variance."""
    pairs = [("hub", f"row {number}", 3) for number in range(others)]
    rows = np.random.default_rng(others).standard_normal((100_000, others + 1, 3))
    pooled = (rows[:, 1:] - rows[:, :1]).var(axis=2, ddof=1).mean(axis=1)
    assert pooled_degrees(pairs) == pytest.approx(2 * pooled.mean() ** 2 / pooled.var(), rel=0.03)


def test_seeds_that_came_down_through_another_recipe_count_once():
    """The seeds of c are those of a, from which b started, of which no hits are there."""
    rows = {name: random_hits(3, seed) for seed, name in enumerate("acd")}
    measured = study(rows, {"c": "b", "b": "a", "d": "b"})
    unmeasured = {"b": SimpleNamespace(initial="a", seeds=[1, 2, 3])}
    measured = replace(measured, recipes={**measured.recipes, **unmeasured})
    assert measured._first({"a", "c", "d"}) == ["a"]
    assert measured._first({"c", "d"}) == ["c"]


def test_hits_of_other_seeds_are_not_paired():
    base = np.repeat(random_hits(1, 1), 3, axis=0)
    rows = {"b": lift(base, (0, 10, 20)), "a": lift(base, (5, 15, 25))}
    measured = study(rows, {"a": "b"})
    assert one_test(measured).p < 0.01
    hits = dict(measured.hits)
    hits["a"] = hits["a"].assign(seed=hits["a"]["seed"] + 6)
    assert one_test(replace(measured, hits=hits)).p > 0.3


def test_a_family_of_three_is_tested_by_the_degrees_of_two_differences():
    """All photos of a seed have as many hits: seeds alone move the differences."""
    hits = {"a": (0, 1, 3), "b": (1, 1, 2), "c": (3, 2, 2)}
    rows = {name: np.repeat(np.array(own)[:, None], PHOTOS, axis=1) for name, own in hits.items()}
    measured = study({**rows, "start": rows["a"]}, dict.fromkeys("abc", "start"))
    asked = [Asked.sums(*pair, "de") for pair in ("ab", "ac", "bc")]
    variance = np.mean([np.subtract(hits[a], hits[b]).var(ddof=1) for a, b in ("ab", "ac", "bc")])
    width = 2 * stats.t(4).ppf(0.975) * 200 * np.sqrt(variance / 3)
    for found in differences(asked, measured).values():
        assert found.high - found.low == pytest.approx(width, rel=0.03)


def test_seeds_that_go_on_from_others_count_once_in_the_pooled_deviation():
    rows = {"a": random_hits(3, 1), "b": random_hits(3, 2)}
    apart, more = study(rows), study({**rows, "tuned": lift(rows["a"], (9, 0, 0))}, {"tuned": "a"})
    assert more.pooled == apart.pooled
    assert noise_of_sums(more) == noise_of_sums(apart)
    assert noise_of_sums(study({**rows, "c": rows["a"]})).degrees == 6
    # Two that go on from the same row, which itself was tested on other photos.
    twins = study({**rows, "c": random_hits(3, 3)}, {"a": "elsewhere", "b": "elsewhere"})
    assert noise_of_sums(twins).degrees == 4


def test_seeds_of_a_figure_are_pooled_over_rows_tested_alike():
    rows = {"a": random_hits(3, 1), "b": random_hits(3, 2)}
    one, both, apart = (recalls_of(each) for each in ({"a": rows["a"]}, rows, rows))
    apart.figures.loc[apart.figures["recipe"] == "b", "queries"] = PHOTOS // 2
    alone, alike, other = (over_seeds(each).query("recipe == 'a'") for each in (one, both, apart))
    assert other.equals(alone)
    assert not alike.equals(alone)


def recalls_of(rows):
    """Return what is measured where the figures are recalls, of which no hits are stored."""
    measured = study(rows)
    measured.figures["metric"] = "r1"
    measured.figures[["value", "sd", "low", "high"]] /= 6
    return measured


def test_the_bounds_of_a_longer_list_are_those_of_a_shorter_one_or_higher():
    """Of the longer list, others deviate more: alone its interval would begin below."""
    figures = pd.concat([recalls_of({"a": random_hits(3, 1)}).figures] * 2, ignore_index=True)
    figures = pd.concat([figures, figures.assign(recipe="b")], ignore_index=True)
    figures["metric"] = ["r1", "r5"] * 2
    figures[["value", "low", "high"]] = [[99, 98, 100]] * 2 + [[1, 0, 2], [50, 45, 55]]
    figures["sd"] = [0, 0, 1, 20]
    recipes = {name: SimpleNamespace(initial="none", seeds=[1, 2, 3]) for name in "ab"}
    found = over_seeds(Measured(figures, {}, recipes, EVALUATIONS))
    first, fifth, _, wide = found[["low", "high"]].to_numpy()
    assert 90 < first[0] == fifth[0]
    assert wide[0] < 40
    turned = figures.assign(value=100 - figures["value"], metric=["r5", "r1"] * 2)
    turned = turned.assign(low=100 - figures["high"], high=100 - figures["low"])
    found = over_seeds(Measured(turned, {}, recipes, EVALUATIONS))
    assert found.loc[0, "high"] == found.loc[1, "high"] < 10


def noise_of_sums(measured):
    return measured.figure_noise(("retrieval", "de", "", "sum_of_recalls"), PHOTOS)


def with_noise_of(other, measured):
    """Return what is measured with the pooled deviation of something else that is."""
    measured.__dict__["pooled"] = other.pooled
    return measured


def test_seeds_are_not_paired_while_one_recipe_has_hits_of_fewer():
    rows = {"a": random_hits(3, 1), "b": random_hits(2, 2)}
    apart, measured = study(rows), study(rows, {"a": "b"})
    measured.recipes["b"].seeds = measured.recipes["a"].seeds
    assert one_test(with_noise_of(apart, measured)) == one_test(apart)


def test_seeds_of_other_numbers_are_not_paired():
    rows = {"a": random_hits(3, 1), "b": random_hits(3, 2)}
    apart, tuned, others = (study(rows, initial) for initial in ({}, {"a": "b"}, {"a": "b"}))
    others.recipes["b"].seeds = [4, 5, 6]
    found = [one_test(with_noise_of(apart, each)) for each in (others, tuned)]
    assert found[0] == one_test(apart) != found[1]


def test_the_interval_of_a_difference_is_as_wide_as_its_seeds_say():
    """The rows agree on nearly all photos, which so add little to it."""
    base = np.repeat(random_hits(1, 1), 3, axis=0)
    apart = study({"a": lift(base, (0, 15, 30)), "b": lift(base[:2], (0, 20))})
    tuned = study({"a": lift(base, (0, 15, 30)), "b": base}, {"a": "b"})
    variance = (2 * 15**2 + 20**2 / 2) / 3
    for measured, degrees, expected in (
        (apart, 3, variance / 3 + variance / 2),
        (tuned, 2, 15**2 / 3),
    ):
        found = one_test(measured)
        width = 2 * stats.t(degrees).ppf(0.975) * np.sqrt(expected)
        assert found.high - found.low == pytest.approx(width, rel=0.1)


def test_the_error_of_p_is_how_far_other_draws_move_it():
    rows = {"a": random_hits(3, 1, 1.6), "b": random_hits(3, 2), "c": random_hits(3, 3)}
    asked = [Asked.sums(*pair, "de") for pair in ("ab", "ac")]
    measured, found = study(rows), []
    for seed in range(1, 31):
        retrieval = measured.settings.retrieval.model_copy(update={"seed": seed})
        settings = measured.settings.model_copy(update={"retrieval": retrieval})
        found.append([*differences(asked, replace(measured, settings=settings)).values()])
    for each in zip(*found, strict=True):
        spread = np.std([test.holm for test in each], ddof=1)
        assert 0.01 < np.mean([test.holm for test in each]) < 0.99
        assert np.mean([test.error for test in each]) == pytest.approx(spread, rel=0.5)


def test_p_is_corrected_for_every_other_test_of_the_study_once():
    rows = {name: random_hits(2, number) for number, name in enumerate("abcd")}
    asked = [Asked.sums(a, b, "de") for a, b in ("ab", "ac", "ba", "ad", "ab")]
    found = differences(asked, study(rows))
    assert len(found) == 4
    assert found[asked[0]].holm == found[asked[2]].holm
    p = sorted({each.p for each in found.values()})
    smallest = next(each for each in found.values() if each.p == p[0])
    assert smallest.holm == pytest.approx(min(1, 3 * p[0]))


def test_what_cannot_be_tested_says_why():
    rows = {"a": random_hits(3, 1), "b": random_hits(3, 2), "one": random_hits(1, 3)}
    measured = study(rows)
    assert one_test(measured, "a", "one").untested == ONE_SEED
    assert one_test(measured, "a", "one").difference == pytest.approx(
        200 * (rows["a"].mean() - rows["one"].mean())
    )
    assert one_test(measured, "a", "nobody").untested == "nobody is not trained"
    french = Asked.sums("a", "b", "fr")
    assert differences([french], measured)[french].untested == "a has no such figure"
    measured.hits["b"] = hits_of(rows["b"], "other photos")
    assert one_test(study(rows)).untested == ""
    assert one_test(measured).untested == "different test queries: not tested"
    del measured.hits["b"]
    found = one_test(measured)
    assert found.untested == "hits of seeds not stored: not tested"
    assert np.isnan([found.low, found.high, found.p, found.holm]).all()


def figure_lines(values):
    """Return the figures of recipes ``{name: (seeds, value, sd, half of the interval)}``."""
    lines = [
        [name, "sts", "sts2015", "without_overlap", "pearson", n, value, sd, value - half,
         value + half, 300]
        for name, (n, value, sd, half) in values.items()
    ]  # fmt: skip
    return pd.DataFrame(lines, columns=COLUMNS)


def test_other_figures_are_tested_by_their_models_intervals_and_deviation():
    figures = figure_lines({"a": (3, 0.80, 0.02, 0.049), "b": (3, 0.70, 0.02, 0.049)})
    asked = Asked("a", "b", *figures.loc[0, KEY[1:]])
    recipes = {name: SimpleNamespace(initial="none", seeds=[1, 2, 3]) for name in "ab"}
    found = differences([asked], Measured(figures, {}, recipes, EVALUATIONS))[asked]
    # Photos: two intervals of ± .049, so a deviation of .025 each; seeds: Student's t of 4 degrees.
    generator = np.random.default_rng(0)
    drawn = 0.025 * np.sqrt(2) * generator.standard_normal(100_000)
    drawn += 0.02 * np.sqrt(2 / 3) * stats.t(4).rvs(100_000, random_state=generator)
    assert found.difference == pytest.approx(0.1)
    assert found.p == pytest.approx((abs(drawn) >= 0.1).mean(), abs=0.006)
    bounds = 0.1 + np.quantile(drawn, [0.025, 0.975])
    assert [found.low, found.high] == pytest.approx(bounds, abs=0.004)


@pytest.mark.parametrize(("queries", "tested"), [(275, True), (260, False)])
def test_figures_of_other_words_or_pairs_are_not_tested(queries, tested):
    """Vocabularies decide which words of a lexicon are tested; a tenth of them may differ."""
    figures = figure_lines({"a": (3, 0.80, 0.02, 0.049), "b": (3, 0.70, 0.02, 0.049)})
    figures.loc[1, "queries"] = queries
    asked = Asked("a", "b", *figures.loc[0, KEY[1:]])
    recipes = {name: SimpleNamespace(initial="none", seeds=[1, 2, 3]) for name in "ab"}
    found = differences([asked], Measured(figures, {}, recipes, EVALUATIONS))[asked]
    assert found.untested == ("" if tested else "different test queries: not tested")
    assert np.isnan(found.p) != tested


def test_the_interval_of_a_mean_covers_seeds_and_photos():
    base = np.repeat(random_hits(1, 1), 3, axis=0)
    rows = {"still": base, "moved": lift(base, (0, 15, 30)), "one": base[:1]}
    table = over_seeds(study(rows)).set_index("recipe")
    width = table["high"] - table["low"]
    photos = 2 * 1.96 * 200 * base[0].std() / np.sqrt(PHOTOS)
    assert width["one"] == 18  # its model's own
    # Noise is pooled: rows of one pool have equally wide intervals.
    assert width["still"] == pytest.approx(width["moved"], rel=0.1)
    squares = sum(200**2 * own.mean(axis=1).var(ddof=1) for own in (base, rows["moved"])) / 2
    seeds = 2 * stats.t(4).ppf(0.975) * np.sqrt(squares / 3)
    assert width["still"] == pytest.approx(np.hypot(photos, seeds), rel=0.1)
    assert width["still"] > 1.2 * photos


def test_how_many_captions_a_photo_has_is_no_noise():
    """The sum is a ratio: without noise of seeds its interval is that of a model (summarise)."""
    generator = np.random.default_rng(0)
    owner = np.repeat(np.arange(PHOTOS), generator.integers(1, 10, PHOTOS))
    ranks = RetrievalRanks(
        *(np.where(generator.random(n) < 0.9, 1, 30) for n in (PHOTOS, len(owner))), owner
    )
    queries = {"image_to_text": np.arange(PHOTOS), "text_to_image": owner}
    rows = [
        (seed, "de", way, f"{n}", f"{image:04}", rank)
        for seed in (1, 2, 3)
        for way, images in queries.items()
        for n, (image, rank) in enumerate(zip(images, getattr(ranks, way), strict=True))
    ]
    names = ["seed", "language", "direction", "query_id", "image_id", "rank"]
    measured = study({"a": random_hits(3, 1)})
    measured.hits["a"] = image_hits(pd.DataFrame(rows, columns=names))
    one = summarise(ranks, **EVALUATIONS.retrieval.bootstrap)["sum_of_recalls_interval"]
    found = over_seeds(measured).iloc[0]
    assert [found["low"], found["high"]] == pytest.approx(one, abs=0.3)


def test_a_mean_whose_hits_are_not_stored_has_wider_bounds_than_its_models():
    measured = study({"a": lift(np.repeat(random_hits(1, 1), 3, axis=0), (0, 15, 30))})
    measured.hits.clear()
    row = over_seeds(measured).iloc[0]
    reach = stats.t(2).ppf(0.975) * row["sd"] / np.sqrt(3)
    assert row["high"] - row["value"] == pytest.approx(np.hypot(9, reach), rel=0.03)


@pytest.mark.parametrize(
    ("task", "metric", "least", "greatest"),
    [
        ("retrieval", "sum_of_recalls", 0, 600),
        ("sentence_retrieval", "sum_of_recalls", 0, 300),
        ("probes", "r10", 0, 100),
        ("word_translation", "p1", 0, 100),
        ("sts", "pearson", -1, 1),
    ],
)
def test_no_bound_lies_where_no_value_can(task, metric, least, greatest):
    both = [
        ["a", task, "en", "x", metric, 3, value, sd, value, value, 9]
        for value, sd in ((least, 40.0), (greatest, 40.0))
    ]
    both[1][0] = "b"
    table = pd.DataFrame(both, columns=COLUMNS)
    found = over_seeds(Measured(table, {}, {}, EVALUATIONS))
    assert found["low"].tolist()[0] == least
    assert found["high"].tolist()[1] == greatest
    assert (found["low"] <= found["high"]).all()


@pytest.mark.parametrize("metric", ["sum_of_recalls", "mean_recall"])
def test_a_mean_recall_is_a_sixth_of_the_sum(metric):
    measured = study({"a": random_hits(3, 1), "b": random_hits(3, 2)})
    share = {"sum_of_recalls": 1, "mean_recall": 6}[metric]
    sums = over_seeds(measured)
    bounds = ["value", "sd", "low", "high"]
    figures = measured.figures.assign(metric=metric)
    figures[bounds] /= share
    again = over_seeds(Measured(figures, measured.hits, measured.recipes, EVALUATIONS))
    np.testing.assert_allclose(again[bounds] * share, sums[bounds])


@pytest.mark.parametrize(
    ("p", "shown"),
    [(0.00099, "< .001"), (0.04999, ".050"), (0.05, ".050"), (0.05003, "> .050"), (0.0506, ".051"),
     (1.0, "1.000")],
)  # fmt: skip
def test_no_p_above_the_level_looks_like_it(p, shown):
    assert p_value(p) == shown


@pytest.mark.parametrize(
    ("points", "shown"), [(-0.04, "0.0"), (0.04, "0.0"), (-0.06, "−0.1"), (0.06, "+0.1")]
)
def test_what_rounds_to_nothing_has_no_sign(points, shown):
    assert signed(points) == shown
