"""What is embedded is what a model's own layers give, by id."""

import numpy as np
import pandas as pd
import pytest
import tiny
import torch

from pipeline_lib.evaluation.embedding import embed_evaluated, scored_sentences
from pipeline_lib.models.joint_space import JointSpace
from pipeline_lib.settings.evaluations import StsEvaluation
from pipeline_lib.settings.text import Tokenizer
from pipeline_lib.training.corpus import build_vocabulary

WORDS = Tokenizer(tokenizer="whitespace", lowercase=True, normalize=False)


def model(objective="alternating", **changes):
    recipe = tiny.recipe(objective, **changes)
    return JointSpace(recipe, build_vocabulary(tiny.pairs(), recipe), 10, seed=3).eval()


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


def test_scored_sets_of_known_languages_are_tokenised_once(tmp_path):
    (tmp_path / "a.tsv").write_text("1.0\tA dog\tA cat\n2\tA dog\tTwo cats\n")
    (tmp_path / "b.tsv").write_text("3\tA dog\tA bird\n")
    sets = {name: {"file": f"{name}.tsv", "language": "en"} for name in "ab"}
    sets["absent"] = {"file": "absent.tsv", "language": "fr"}
    sts = StsEvaluation.model_validate({"source": str(tmp_path), "sets": sets})
    found = scored_sentences(sts, {"en": WORDS}, ["en", "de"])
    assert found == {
        "en": {
            "A dog": ["a", "dog"],
            "A cat": ["a", "cat"],
            "Two cats": ["two", "cats"],
            "A bird": ["a", "bird"],
        }
    }
    assert scored_sentences(sts, {"en": WORDS}, ["de"]) == {}


@pytest.mark.real_data
def test_sentences_of_semeval_are_each_tokenised(real_data):
    sets = {str(y): {"file": f"sts{y}.images.tsv", "language": "en"} for y in (2014, 2015)}
    sts = StsEvaluation.model_validate({"source": str(real_data / "sts"), "sets": sets})
    moses = Tokenizer(tokenizer="moses", lowercase=True, normalize=True)
    found = scored_sentences(sts, {"en": moses}, ["en"])["en"]
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
