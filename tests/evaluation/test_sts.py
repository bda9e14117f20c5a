"""Similarity scores: correlations against pandas', intervals against theory, the real sets."""

import gzip
import json

import numpy as np
import pandas as pd
import pytest

from pipeline_lib.contract.problems import ContractError
from pipeline_lib.corpora.scored_pairs import read_scored_pairs
from pipeline_lib.evaluation.significance import bootstrap_counts
from pipeline_lib.evaluation.similarity.correlation import (
    CORRELATIONS,
    correlation_interval,
    correlation_of_totals,
    moments,
)
from pipeline_lib.evaluation.similarity.sts import (
    cosines,
    overlapping,
    sts_scores,
)

BOOTSTRAP = {"resamples": 1000, "confidence": 0.95, "seed": 0}


def samples(seed, pairs=60):
    """Draw human scores with many ties, and cosines that follow them."""
    generator = np.random.default_rng(seed)
    gold = generator.integers(0, 11, pairs) / 2
    return gold, np.round(0.1 * gold + generator.standard_normal(pairs) / 4, 2)


def by_pandas(name, gold, predicted):
    return pd.DataFrame({"gold": gold, "predicted": predicted}).corr(method=name).iloc[0, 1]


@pytest.mark.parametrize("name", CORRELATIONS)
@pytest.mark.parametrize("seed", range(3))
def test_correlations_equal_those_of_pandas(name, seed):
    correlation, _ = CORRELATIONS[name]
    gold, predicted = samples(seed)
    assert correlation(gold, predicted) == pytest.approx(by_pandas(name, gold, predicted))
    assert correlation(gold, 1e6 + 1e-3 * predicted) == pytest.approx(correlation(gold, predicted))


@pytest.mark.parametrize("name", CORRELATIONS)
def test_every_draw_equals_the_correlation_of_the_drawn_pairs(name):
    gold, predicted = samples(3, 25)
    draws = CORRELATIONS[name][1](gold, predicted, 600, 5)
    counts = np.vstack(list(bootstrap_counts(25, 600, 5))).astype(int)
    expected = [by_pandas(name, gold.repeat(c), predicted.repeat(c)) for c in counts]
    np.testing.assert_allclose(draws, expected)


@pytest.mark.parametrize("name", CORRELATIONS)
def test_a_sample_that_does_not_vary_has_no_correlation(name):
    correlation, bootstrapped = CORRELATIONS[name]
    assert correlation(np.full(9, 0.1), np.arange(9)) == 0
    assert np.isnan(bootstrapped(np.full(900, 0.1), np.arange(900), 20, 0)).all()
    rarely = np.array([1.0, 0, 0])  # some draws hold zeros alone
    draws = bootstrapped(rarely, np.arange(3), 500, 0)
    assert 0.2 < np.isnan(draws).mean() < 0.5
    assert correlation_interval(name, draws, 0.9) == {}
    low, high = correlation_interval(name, draws, 0.5)[f"{name}_interval"]
    assert -1 <= low <= high <= 1


def test_interval_of_pearson_has_the_width_of_fishers():
    generator = np.random.default_rng(1)
    x, noise = generator.standard_normal((2, 2000))
    y = 0.6 * x + 0.8 * noise
    scores = sts_scores(x, y, np.zeros(2000, bool), **BOOTSTRAP)["all"]
    expected = np.tanh(np.arctanh(scores["pearson"]) + np.array([-1.96, 1.96]) / np.sqrt(1997))
    assert scores["pearson_interval"] == pytest.approx(expected, abs=0.006)
    low, high = scores["spearman_interval"]
    assert low < scores["spearman"] < high


def test_summed_moments_give_pearson_for_any_split_into_units():
    gold, predicted = samples(4)
    totals = moments(gold, predicted).reshape(12, 5, 6).sum(axis=1).sum(axis=0)
    assert correlation_of_totals(totals) == pytest.approx(np.corrcoef(gold, predicted)[0, 1])


def test_subsets_with_and_without_overlap():
    gold, predicted = samples(5)
    overlap = np.arange(60) < 20
    scores = sts_scores(gold, predicted, overlap, **BOOTSTRAP)
    assert json.loads(json.dumps(scores)) == scores
    assert {name: part["n_pairs"] for name, part in scores.items()} == {
        "all": 60,
        "without_overlap": 40,
        "overlap_only": 20,
    }
    for name, kept in (("without_overlap", ~overlap), ("overlap_only", overlap)):
        expected = by_pandas("pearson", gold[kept], predicted[kept])
        assert scores[name]["pearson"] == pytest.approx(expected)
    nothing = sts_scores(gold, predicted, np.zeros(60, bool), **BOOTSTRAP)
    assert nothing["overlap_only"] == {"n_pairs": 0}
    assert nothing["without_overlap"] == nothing["all"]


def test_overlap_ignores_case_spaces_and_punctuation_only():
    pairs = pd.DataFrame(
        [
            ("A dog, with it's toy.", "x"),
            ("x", "a  fire truck"),
            ("A dog with a toy", "x"),
            ("Straße", "x"),
        ],
        columns=["first", "second"],
    )
    training = ["a dog with its toy", "A firetruck.", "STRASSE"]
    assert overlapping(pairs, training).tolist() == [True, True, False, True]


def test_cosines_equal_the_definition():
    first, second = np.random.default_rng(0).standard_normal((2, 7, 5)).astype(np.float32)
    expected = [
        a @ b / np.linalg.norm(a) / np.linalg.norm(b)
        for a, b in zip(first.astype(float), second.astype(float), strict=True)
    ]
    np.testing.assert_allclose(cosines(first, second), expected)
    with pytest.raises(ValueError, match="zero, NaN or infinity"):
        cosines(first, 0 * second)
    with pytest.raises(ValueError, match=r"\(7, 5\) and \(6, 5\)"):
        cosines(first, second[:6])


def test_scores_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match=r"\(3,\), \(3,\) and \(2,\)"):
        sts_scores(np.ones(3), np.ones(3), np.ones(2, bool), **BOOTSTRAP)
    with pytest.raises(ValueError, match="NaN"):
        sts_scores(np.ones(1), np.array([np.nan]), np.ones(1, bool), **BOOTSTRAP)


def test_reading_keeps_judged_pairs_and_their_lines(tmp_path):
    path = tmp_path / "set.tsv"
    path.write_bytes('3.5\tA "dog\tb\r\n\tunjudged\tx\n0\tcafe\u0301\td\u2028e\n'.encode())
    pairs = read_scored_pairs(path)
    assert pairs.to_dict("list") == {
        "line": [1, 3],
        "score": [3.5, 0],
        "first": ['A "dog', "café"],
        "second": ["b", "d\u2028e"],
    }


def test_every_bad_line_is_listed(tmp_path):
    path = tmp_path / "set.tsv"
    path.write_text("1\ta\tb\nhigh\ta\tb\nnan\ta\tb\n2\ta\n3\ta\t.\n\n")
    with pytest.raises(ContractError) as error:
        read_scored_pairs(path)
    assert [f"set.tsv:{line}:" in str(error.value) for line in range(1, 7)] == [False] + 5 * [True]
    path.write_text("\ta\tb\n")
    with pytest.raises(ContractError, match="found none"):
        read_scored_pairs(path)


def test_a_score_is_written_as_people_write_numbers(tmp_path):
    path = tmp_path / "set.tsv"
    path.write_text("1.5\ta\tb\n1_0\ta\tb\n")  # Python would read 10
    with pytest.raises(ContractError, match=r"set.tsv:2: .* found '1_0'"):
        read_scored_pairs(path)


def lines_of(path):
    return gzip.decompress(path.read_bytes()).decode().split("\n")


@pytest.mark.real_data
def test_real_sets_have_the_counts_that_their_readme_gives(real_data):
    task2 = real_data / "multi30k/data/task2/raw"
    training = [
        line for number in range(1, 6) for line in lines_of(task2 / f"train.{number}.en.gz")
    ]
    expected = {2014: (750, 14), 2015: (750, 702)}
    listed = pd.read_csv(real_data / "sts/overlap_with_multi30k.tsv", sep="\t")
    for year, counts in expected.items():
        pairs = read_scored_pairs(real_data / f"sts/sts{year}.images.tsv")
        overlap = overlapping(pairs, filter(None, training))
        assert (len(pairs), overlap.sum()) == counts
        seen = listed[listed.iloc[:, 3:].apply(lambda row: "train:" in " ".join(row), axis=1)]
        assert set(pairs["line"][overlap]) == set(seen.loc[seen["year"] == year, "line"])


def test_pairs_of_equal_sentences_tie():
    """Their cosines are 1, of which the order of sums would leave one last bit or another."""
    vectors = np.random.default_rng(0).standard_normal((60, 300))
    others = np.where(np.arange(60)[:, None] < 40, vectors, vectors[::-1])
    found = cosines(vectors, others)
    assert (found[:40] == 1).all()
    assert len(np.unique(found)) > 15
