"""Word vectors from photos: against a singular value decomposition, and what comes together."""

import hashlib

import numpy as np
import pandas as pd
import pytest
import torch
from shell import python

from pipeline_lib.contract.problems import ContractError
from pipeline_lib.contract.word_vectors import WordVectors, check_word_vectors
from pipeline_lib.settings.text import LatentSemanticVectors
from pipeline_lib.text.latent_semantics import latent_semantic_vectors
from pipeline_lib.text.pieces import MARK

TOPICS = {
    "dog": ("hund", "bark", "fur", "tail", "paw", "leash"),
    "sea": ("meer", "wave", "sand", "salt", "ship", "gull"),
    "car": ("auto", "road", "wheel", "door", "seat", "horn"),
}


def captions(photos=60, seed=0):
    random, rows = np.random.default_rng(seed), []
    for photo in range(photos):
        topic = list(TOPICS)[photo % 3]
        german, *near = TOPICS[topic]
        noise = [f"x{random.integers(40)}", f"y{random.integers(40)}"]
        rows.append((f"p{photo}", "en", [topic] * (8 if photo % 5 == 4 else 1) + [*near, *noise]))
        rows.append((f"p{photo}", "de", [german, *noise[::-1]]))
    return pd.DataFrame(rows, columns=["image_id", "language", "tokens"])


def options(dim=3, min_count=1):
    return LatentSemanticVectors(
        method="latent_semantic", source="x", pairs="none", dim=dim, min_count=min_count
    )


def similarities(vectors, a, b):
    (of_a, word_a), (of_b, word_b) = a, b
    x = vectors[of_a][1][vectors[of_a][0].index(word_a)]
    y = vectors[of_b][1][vectors[of_b][0].index(word_b)]
    return float(x @ y / np.linalg.norm(x) / np.linalg.norm(y))


def test_translations_are_nearer_than_other_words():
    vectors = latent_semantic_vectors(captions(), options())
    for word, (german, *_) in TOPICS.items():
        scores = [similarities(vectors, ("en", word), ("de", g)) for g, *_ in TOPICS.values()]
        assert np.argmax(scores) == [g for g, *_ in TOPICS.values()].index(german)
        assert max(scores) > 0.9


def test_the_space_is_that_of_a_singular_value_decomposition():
    pairs = captions()
    vectors = latent_semantic_vectors(pairs, options())
    # Every word's row, all of one length; the products of words do not depend on the basis.
    rows, words = [], []
    photos = list(dict.fromkeys(pairs["image_id"]))
    for language, group in pairs.groupby("language"):
        for word in sorted({w for tokens in group["tokens"] for w in tokens}):
            counts = np.zeros(len(photos))
            for image, tokens in zip(group["image_id"], group["tokens"], strict=True):
                counts[photos.index(image)] += tokens.count(word)
            row = np.where(counts, 1 + np.log(np.maximum(counts, 1)), 0)
            rows.append(row / np.linalg.norm(row))
            words.append((language, word))
    matrix = np.array(rows)
    _, sizes, right = np.linalg.svd(matrix)
    expected = matrix @ right[:3].T * np.sqrt(3)
    found = np.array([vectors[k][1][vectors[k][0].index(w)] for k, w in words])
    assert sizes[2] > 1.2 * sizes[3]  # else the space is not one
    np.testing.assert_allclose(found @ found.T, expected @ expected.T, atol=0.15)


def test_pieces_have_vectors_of_the_words_that_are_cut_into_them():
    pairs = captions()
    pairs["tokens"] = [
        [f"{word}{n % 5}ing" if word == "dog" else word for word in tokens]
        for n, tokens in enumerate(pairs["tokens"])
    ]
    vectors = latent_semantic_vectors(pairs, options())
    assert MARK + "<dog" in vectors["en"][0]
    assert similarities(vectors, ("en", MARK + "<dog"), ("de", "hund")) > 0.8


def test_rare_words_have_vectors_but_decide_none():
    pairs = captions()
    pairs.loc[0, "tokens"].extend(["twice", "twice"])  # of one photo
    found = latent_semantic_vectors(pairs, options(min_count=2))
    words, matrix = found["en"]
    rare = words.index("twice")
    without = {**found, "en": (words[:rare] + words[rare + 1 :], np.delete(matrix, rare, axis=0))}
    expected = latent_semantic_vectors(captions(), options(min_count=2))
    for language in ("de", "en"):
        assert without[language][0] == expected[language][0]
        np.testing.assert_allclose(without[language][1], expected[language][1], atol=1e-6)


def test_words_that_meet_no_frequent_one_have_no_vector():
    """Zeros have no direction, and would stop the study; such words are drawn as unknown ones."""
    pairs = captions()
    pairs.loc[len(pairs)] = ("alone", "en", ["zebra", "zebras"])
    vectors = latent_semantic_vectors(pairs, options(min_count=2))
    assert {"zebra", "zebras"}.isdisjoint(vectors["en"][0])
    assert "dog" in vectors["en"][0]
    assert list(check_word_vectors(WordVectors(vectors, [], {}))) == []


def test_too_large_vectors_are_refused():
    with pytest.raises(ContractError, match=r"at least 100 photos, as many as dim, found 60"):
        latent_semantic_vectors(captions(), options(dim=100))


def test_other_kernels_and_threads_give_the_same_bytes():
    program = (
        "import hashlib\n"
        "import test_latent_semantics as t\n"
        "found = t.latent_semantic_vectors(t.captions(200), t.options(dim=20))\n"
        "print(hashlib.sha256(b''.join(v.tobytes() for _, v in found.values())).hexdigest())"
    )
    others = {"OMP_NUM_THREADS": "1"}
    if torch.cpu.get_capabilities().get("avx2"):
        others["OPENBLAS_CORETYPE"] = "Haswell"
    found = {python(program, tests=True, **each).stdout for each in ({}, others)}
    assert len(found) == 1
    assert len(found.pop().strip()) == hashlib.sha256().digest_size * 2
