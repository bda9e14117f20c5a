"""What is embedded is what a model's own layers give, by id."""

import numpy as np
import pandas as pd
import pytest
import tiny
import torch
from refusals import refused
from tiny import model

from pipeline_lib.contract.problems import ContractError
from pipeline_lib.corpora.scored_pairs import read_scored_pairs
from pipeline_lib.evaluation.embedding import embed_evaluated, scored_sentences
from pipeline_lib.evaluation.vectors import Embeddings
from pipeline_lib.settings.evaluations import StsEvaluation
from pipeline_lib.settings.text import Tokenizer

WORDS = Tokenizer(tokenizer="whitespace", lowercase=True, normalize=False)


@pytest.mark.parametrize("objective", tiny.OWN)
def test_sentences_have_the_vectors_of_captions_with_the_same_tokens(objective):
    captions = tiny.pairs().query("split == 'val'")
    images = captions[["image_id"]].drop_duplicates().iloc[::-1]
    german = captions[captions["language"] == "de"].drop_duplicates("image_id")
    sentences = {"de": {f"satz {i}": tokens for i, tokens in enumerate(german["tokens"])}}
    made = model(objective)
    found = embed_evaluated(made, captions, images, tiny.features(), sentences)
    expected = found.captions_of(german["caption_id"])
    given = found.sentences_of(pd.Series([*sentences["de"]]), "de")
    np.testing.assert_allclose(given, expected, atol=1e-6)
    assert len(np.unique(given.round(5), axis=0)) == len(given)
    assert found.image_ids.tolist() == images["image_id"].tolist()
    assert set(found.words) == {"en", "de"}


@pytest.mark.parametrize("objective", ["mixed", "two_branch"])
def test_words_are_mapped_as_the_recurrent_layer_reads_them(objective):
    made = model(objective)
    encoder = made.sentence_encoder
    if objective == "mixed":
        turn = torch.linalg.qr(torch.randn(8, 8, generator=torch.Generator().manual_seed(0)))[0]
        encoder.rotations["de"].data.copy_(turn)
    words, vectors = made.embed_words("de")
    assert "de0" in words
    assert "en0" not in words
    table = encoder.words["de"].weight.detach()
    for word, vector in zip(words, vectors, strict=True):
        raw = table[made.vocabulary.word_ids([word], "de")[0]]
        if objective == "mixed":
            expected = turn @ raw
        else:
            universal = encoder.universal_maps["de"]
            expected = universal.weight @ raw + universal.bias
        np.testing.assert_allclose(vector, expected.detach(), atol=1e-6)


def test_a_pooled_vocabulary_has_one_vector_per_word():
    made = model()
    english, german = made.embed_words("en"), made.embed_words("de")
    assert english[0].tolist() == german[0].tolist()
    np.testing.assert_array_equal(english[1], german[1])
    assert {"en0", "de0", "in"} <= set(english[0])


def labelled(*labels):
    vectors = np.random.default_rng(len(labels)).normal(size=(len(labels), 3))
    return np.array(labels, object), vectors.astype(np.float32)


def embeddings(**more):
    return Embeddings(*labelled("i"), *labelled("c", "d"), **more)


def test_vectors_are_found_by_what_they_are_of():
    sentences = {"en": labelled("Ein <Satz> & mehr.", "犬がいる"), "de": labelled("Hund")}
    made = embeddings(sentences=sentences, words={"de": labelled("ß", "a", "b")})
    expected = sentences["en"][1][[1, 0, 1]]
    asked = pd.Series(["犬がいる", "Ein <Satz> & mehr.", "犬がいる"])
    np.testing.assert_array_equal(made.sentences_of(asked, "en"), expected)
    np.testing.assert_array_equal(made.captions_of(["d"]), made.captions[1:])
    with pytest.raises(ContractError, match=r"2 captions have no vector \(first: 'x'\)"):
        made.captions_of(["c", "x", "y"])


def test_all_that_is_wrong_with_vectors_is_said_at_once():
    words = {"de": labelled("a", "a"), "en": (np.array(["b"]), np.full((1, 3), np.nan))}
    sentences = {"fr": (labelled("a", "b")[0], labelled("a")[1])}
    with refused(
        "3 problem",
        "de words: 1 labels are repeated (first: 'a')",
        "en words: vectors contain NaN",
        "fr sentences: expected one row per label; found 2, vectors (1, 3)",
    ):
        embeddings(words=words, sentences=sentences)


def scored_pairs(*pairs):
    return pd.DataFrame(pairs, columns=["first", "second"])


def test_sentences_of_scored_sets_are_tokenised_once_per_language():
    sets = {"a": "en", "b": "en", "c": "de"}
    sts = StsEvaluation.model_validate(
        {"source": "s", "sets": {k: {"file": f"{k}.tsv", "language": v} for k, v in sets.items()}}
    )
    scored = {
        "a": scored_pairs(("A dog", "A cat"), ("A dog", "Two cats")),
        "b": scored_pairs(("A dog", "A bird")),
        "c": scored_pairs(("A dog", "Ein Hund")),
    }
    assert scored_sentences(scored, sts, {"en": WORDS, "de": WORDS}) == {
        "en": {
            "A dog": ["a", "dog"],
            "A cat": ["a", "cat"],
            "Two cats": ["two", "cats"],
            "A bird": ["a", "bird"],
        },
        "de": {"A dog": ["a", "dog"], "Ein Hund": ["ein", "hund"]},
    }
    assert scored_sentences({}, sts, {"en": WORDS}) == {}


@pytest.mark.real_data
def test_sentences_of_semeval_are_each_tokenised(real_data):
    sets = {str(y): {"file": f"sts{y}.images.tsv", "language": "en"} for y in (2014, 2015)}
    sts = StsEvaluation.model_validate({"source": str(real_data / "sts"), "sets": sets})
    moses = Tokenizer(tokenizer="moses", lowercase=True, normalize=True)
    files = {name: chosen.file for name, chosen in sts.sets.items()}
    scored = {name: read_scored_pairs(real_data / "sts" / file) for name, file in files.items()}
    found = scored_sentences(scored, sts, {"en": moses})["en"]
    lines = [
        line.rstrip("\n").split("\t")
        for name in sets
        for line in (real_data / "sts" / f"sts{name}.images.tsv").read_text("utf-8").split("\n")
    ]
    judged = [columns[1:] for columns in lines if columns[0]]
    assert len(judged) == 1500
    assert set(found) == {text for pair in judged for text in pair}
    plain = [text for text in found if text.replace(" ", "").isalpha()]
    assert len(plain) > 100
    assert all(found[text] == text.lower().split() for text in plain)
