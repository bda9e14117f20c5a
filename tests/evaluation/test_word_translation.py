"""Word translation against loops over the definition, a hub that CSLS undoes, MUSE's files."""

import json

import numpy as np
import pytest
from refusals import refused

from pipeline_lib.evaluation.words import ranks as word_ranks
from pipeline_lib.evaluation.words.ranks import neighbourhood_density
from pipeline_lib.evaluation.words.translation import translation_precision

SETTINGS = {"csls_neighbours": 10, "resamples": 500, "confidence": 0.95, "seed": 0}


def spaces(seed, source=70, target=90, noise=0.8):
    generator = np.random.default_rng(seed)
    meaning = generator.standard_normal((max(source, target), 12))
    sides = [
        ([f"{name}{i}" for i in range(n)], meaning[:n] + noise * generator.standard_normal((n, 12)))
        for name, n in (("s", source), ("t", target))
    ]
    extra = [(f"s{i}", f"t{j}") for i, j in generator.integers(0, 70, (60, 2))]
    return sides, [(f"s{i}", f"t{i}") for i in range(source)] + extra


def brute_force(source, target, lexicon, neighbours):
    """Return P@K by (method, K) from the formulas, one word and one candidate at a time."""

    def cosine(a, b):
        return a @ b / np.linalg.norm(a) / np.linalg.norm(b)

    def density(vector, others):
        return np.mean(sorted(cosine(vector, other) for other in others)[-neighbours:])

    near_target = [density(vector, target[1]) for vector in source[1]]
    near_source = [density(vector, source[1]) for vector in target[1]]
    gold = {}
    for a, b in lexicon:
        if a in source[0] and b in target[0]:
            gold.setdefault(a, set()).add(b)
    hits = {(method, k): [] for method in ("nearest_neighbour", "csls") for k in (1, 5, 10)}
    for word, right in gold.items():
        i = source[0].index(word)
        cosines = [cosine(source[1][i], vector) for vector in target[1]]
        csls = [2 * c - near_target[i] - r for c, r in zip(cosines, near_source, strict=True)]
        for method, scores in (("nearest_neighbour", cosines), ("csls", csls)):
            ranked = [target[0][j] for j in np.argsort(scores)[::-1]]
            for k in (1, 5, 10):
                hits[method, k].append(bool(right & set(ranked[:k])))
    return {key: 100 * np.mean(values) for key, values in hits.items()}, len(gold)


@pytest.mark.parametrize("seed", range(3))
def test_precision_equals_the_definition(seed, monkeypatch):
    monkeypatch.setattr(word_ranks, "_CHUNK", 32)
    (source, target), lexicon = spaces(seed)
    found = translation_precision(source, target, lexicon, **SETTINGS)
    expected, queries = brute_force(source, target, lexicon, 10)
    assert json.loads(json.dumps(found)) == found
    assert {(m, k): found[m][f"p{k}"] for m, k in expected} == pytest.approx(expected)
    for scores in found.values():
        assert (scores["n_queries"], scores["n_candidates"]) == (queries, 90)
        assert scores["p1_interval"][0] <= scores["p1"] <= scores["p1_interval"][1]
    assert len(set(expected.values())) > 3, "these spaces do not tell the measures apart"


def test_a_word_counts_once_however_many_translations_it_has():
    words = ["a", "b"], np.eye(2)
    targets = ["x", "y", "z"], np.array([[1.0, 0], [0.9, 0.1], [-1, 0]])
    lexicon = [("a", "x"), ("a", "y"), ("b", "z"), ("a", "x")]
    found = translation_precision(words, targets, lexicon, **SETTINGS)["nearest_neighbour"]
    assert (found["p1"], found["n_queries"]) == (50, 2)


def test_words_without_a_vector_lower_the_coverage_not_the_precision():
    words = ["a", "b"], np.eye(2)
    lexicon = [("a", "a"), ("b", "c"), ("d", "a"), ("b", "b")]
    found = translation_precision(words, words, lexicon, **SETTINGS)["csls"]
    assert (found["p1"], found["n_queries"]) == (100, 2)
    assert found["coverage"] == pytest.approx(200 / 3)


def test_csls_undoes_a_hub():
    """A word in the middle of all others is the nearest of each, until its density counts."""
    generator = np.random.default_rng(0)
    source = generator.standard_normal((40, 30)) + 1.5
    target = np.vstack([source + 1.2 * generator.standard_normal((40, 30)), 10 * source.mean(0)])
    sides = [([str(i) for i in range(len(side))], side) for side in (source, target)]
    found = translation_precision(*sides, [(str(i), str(i)) for i in range(40)], **SETTINGS)
    assert found["nearest_neighbour"]["p1"] < 40
    assert found["csls"]["p1"] > 80


def test_equal_vectors_count_against_the_word():
    words = ["a", "b"], np.ones((2, 3))
    found = translation_precision(words, words, [("a", "a")], **SETTINGS)
    assert found["nearest_neighbour"]["p1"] == found["csls"]["p1"] == 0


def test_density_of_few_words_takes_them_all():
    vectors = np.eye(3, dtype=np.float32)
    np.testing.assert_allclose(neighbourhood_density(vectors, vectors[:2], 10), [0.5, 0.5, 0])
    np.testing.assert_allclose(neighbourhood_density(vectors, vectors, 1), 1)


def test_all_that_is_wrong_is_listed():
    source, target = (["a", "a"], np.zeros((2, 3))), (["x"], np.ones((2, 4)))
    shapes = "(2, 4) for 1", "(2, 3) and (2, 4)"
    with refused("5 problem", "zero, NaN", "1 distinct", *shapes, "no pair"):
        translation_precision(source, target, [("b", "x")], **SETTINGS)


@pytest.mark.real_data
def test_muse_test_lexicon_has_1500_source_words(real_data):
    lines = (real_data / "lexicons/muse/en-de.5000-6500.txt").read_text().splitlines()
    lexicon = [tuple(line.split()) for line in lines]
    assert len(lexicon) == 3660
    generator = np.random.default_rng(0)
    sides = [sorted({pair[side] for pair in lexicon}) for side in (0, 1)]
    spaces = [(words, generator.standard_normal((len(words), 20))) for words in sides]
    found = translation_precision(*spaces, lexicon, **SETTINGS)
    for scores in found.values():
        assert (scores["n_queries"], scores["coverage"]) == (1500, 100)
        assert scores["p1"] < 1
