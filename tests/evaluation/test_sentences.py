"""Retrieval between languages: pools and ranks against plain loops, and on Multi30k's own files."""

import json

import numpy as np
import pandas as pd
import pytest
from refusals import refused

from pipeline_lib.contract.tables import CAPTIONS
from pipeline_lib.corpora.readers import READERS
from pipeline_lib.evaluation.retrieval.sentences import (
    PROTOCOLS,
    SentenceRanks,
    sentence_ranks,
    sentence_scores,
)

BOOTSTRAP = {"resamples": 1000, "confidence": 0.95, "seed": 0}


def table(*rows):
    """Make captions of (id, image, language, position, source)."""
    names = ["caption_id", "image_id", "language", "position", "source_caption_id"]
    return pd.DataFrame(rows, columns=names).reindex(columns=CAPTIONS.names)


def random_corpus(seed, images=40):
    """Draw images with some EN and DE captions, and translations of some EN ones to DE and FR."""
    generator = np.random.default_rng(seed)
    rows = []
    for image in (f"i{number}" for number in range(images)):
        for language in ("en", "de"):
            for position in generator.permutation(generator.integers(0, 4)):
                rows.append((f"{image}/{language}/{position}", image, language, position, None))
                if language == "en" and generator.random() < 0.5:
                    source = rows[-1][0]
                    rows += [
                        (f"{source}>{other}", image, other, position + 9, source)
                        for other in ("de", "fr")
                        if generator.random() < 0.7
                    ]
    captions = table(*rows).sample(frac=1, random_state=seed).reset_index(drop=True)
    return captions, generator.standard_normal((len(captions), 6))


def brute_force(captions, vectors, protocol, source, target):
    """Return the rank of every query, by its caption, with plain loops."""
    rows = [(*row, vectors[i]) for i, row in enumerate(captions.itertuples(index=False))]
    name = captions.columns.get_loc
    caption, image, language, position, origin = map(
        name, ["caption_id", "image_id", "language", "position", "source_caption_id"]
    )
    asked = [row for row in rows if row[language] == source]
    pool = [row for row in rows if row[language] == target]

    def meaning(row):
        return row[caption] if pd.isna(row[origin]) else row[origin]

    if protocol == "first":
        key = image
        first = {}
        for row in sorted(asked, key=lambda row: row[position]):
            first.setdefault(row[image], row)
        asked = [row for row in first.values() if any(row[image] == c[image] for c in pool)]
    else:
        key = None
        asked_all = asked
        asked = [row for row in asked if any(meaning(row) == meaning(c) for c in pool)]
        pool = [row for row in pool if any(meaning(row) == meaning(c) for c in asked_all)]
    ranks = {}
    for row in asked:
        right = [(c[key] == row[key]) if key else (meaning(c) == meaning(row)) for c in pool]
        scores = [row[-1] @ c[-1] for c in pool]
        best = max(score for score, is_right in zip(scores, right, strict=True) if is_right)
        wrong = [score for score, is_right in zip(scores, right, strict=True) if not is_right]
        ranks[row[caption]] = 1 + sum(score >= best for score in wrong)
    return ranks, len(pool)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("seed", range(3))
def test_ranks_equal_plain_loops_in_every_direction(protocol, seed):
    captions, vectors = random_corpus(seed)
    found = sentence_ranks(captions, vectors, protocol)
    assert set(found) == {(a, b) for a in ("de", "en", "fr") for b in ("de", "en", "fr") if a != b}
    for (source, target), result in found.items():
        expected, candidates = brute_force(captions, vectors, protocol, source, target)
        assert dict(zip(result.caption_ids, result.ranks.tolist(), strict=True)) == expected
        assert result.n_candidates == candidates
        image = captions.set_index("caption_id")["image_id"]
        assert list(result.image_ids) == list(image[result.caption_ids])


def test_first_and_exact_ask_different_questions():
    """The DE translation is far off, another DE sentence is near: first hits, exact does not."""
    captions = table(
        ("en0", "a", "en", 0, None),
        ("en1", "b", "en", 0, None),
        ("de0", "a", "de", 0, "en0"),
        ("de1", "a", "de", 1, None),
        ("de2", "b", "de", 0, "en1"),
    )
    vectors = np.array([[1.0, 0], [0, 1], [-1, 0], [1, 0], [0.5, 1]])
    found = {
        protocol: sentence_ranks(captions, vectors, protocol)["en", "de"] for protocol in PROTOCOLS
    }
    assert list(found["first"].ranks) == [1, 1]
    assert found["first"].n_candidates == 3
    assert list(found["exact"].ranks) == [2, 1]
    assert found["exact"].n_candidates == 2


def test_scores_of_known_ranks_with_images_as_units():
    image = np.repeat(np.arange(200), 3)
    ranks = np.repeat(np.where(np.arange(200) < 60, 1, 7), 3)
    found = SentenceRanks(np.arange(600), image, ranks, 321)
    scores = sentence_scores(found, **BOOTSTRAP)
    assert json.loads(json.dumps(scores)) == scores
    assert [scores[key] for key in ("r1", "r5", "r10", "sum_of_recalls")] == [30, 30, 100, 160]
    assert (scores["median_rank"], scores["n_queries"], scores["n_candidates"]) == (7, 600, 321)
    half = 196 * np.sqrt(0.3 * 0.7 / 200)  # of 200 images, not of 600 sentences
    assert scores["r1_interval"] == pytest.approx([30 - half, 30 + half], abs=1.5)
    assert scores["sum_of_recalls_interval"] == pytest.approx(
        [100 + 2 * bound for bound in scores["r1_interval"]]
    )


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_sentences_of_different_images_are_not_compared(protocol):
    captions = table(("en0", "a", "en", 0, None), ("de0", "b", "de", 0, None))
    assert sentence_ranks(captions, np.eye(2), protocol) == {}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_one_shared_sentence_measures_nothing(protocol):
    captions = table(("en0", "a", "en", 0, None), ("de0", "a", "de", 0, "en0"))
    assert sentence_ranks(captions, np.eye(2), protocol) == {}


def test_captions_and_vectors_that_do_not_fit_are_refused():
    twice = table(("en0", "a", "en", 0, None), ("en0", "a", "de", 0, None))
    with refused("3 problem", "found 3 for 2", "'firts'"):
        sentence_ranks(twice, np.eye(3), "firts")


@pytest.mark.real_data
def test_multi30k_has_a_thousand_exact_pairs_per_direction(real_data):
    folder = real_data / "multi30k"
    languages = ["en", "de", "fr", "cs"]
    corpus = READERS["multi30k"](folder, "multi30k", languages=languages, splits=["test"])
    captions = corpus.captions
    vectors = np.random.default_rng(0).standard_normal((len(captions), 8))
    exact = sentence_ranks(captions, vectors, "exact")
    assert len(exact) == 12
    for found in exact.values():
        assert (len(found.ranks), found.n_candidates) == (1000, 1000)
        assert found.ranks.mean() == pytest.approx(500, abs=40)
    described = captions[captions["annotation"] == "caption"].index
    first = sentence_ranks(captions.loc[described], vectors[described], "first")
    assert {k: (len(v.ranks), v.n_candidates) for k, v in first.items()} == {
        ("de", "en"): (1000, 5000),
        ("en", "de"): (1000, 5000),
    }
