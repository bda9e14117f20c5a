import json

import pytest
import tiny
import torch

from pipeline_lib.models.joint_space import JointSpace
from pipeline_lib.training.corpus import build_vocabulary


def model(**changes):
    recipe = tiny.recipe(**changes)
    return JointSpace(recipe, build_vocabulary(tiny.pairs(), recipe), 10, seed=3).eval()


IDS, LENGTHS = torch.tensor([[4, 5, 6, 0], [5, 0, 0, 0], [7, 6, 5, 4]]), torch.tensor([3, 1, 4])


@pytest.mark.parametrize("vocabulary", ["pooled", "per_language"])
def test_a_saved_model_loads_and_scores_the_same(tmp_path, vocabulary):
    made = model(vocabulary=vocabulary)
    made.save(tmp_path / "m", tiny.PREPROCESSING)
    loaded = JointSpace.load(tmp_path / "m")
    assert loaded.recipe == made.recipe
    features = torch.randn(5, 10)
    assert torch.equal(loaded.image_vectors(features), made.image_vectors(features))
    for language in ("en", "de"):
        a, b = (m.sentence_vectors(IDS, LENGTHS, language) for m in (made, loaded))
        assert torch.equal(a, b)
    names = {path.name for path in (tmp_path / "m").iterdir()}
    assert names == {
        "weights.safetensors",
        "recipe.json",
        "vocabulary.json",
        "preprocessing.json",
    }
    json.loads((tmp_path / "m" / "vocabulary.json").read_text())


def test_vectors_are_units_and_scores_their_cosines():
    made = model()
    images, sentences = (
        made.image_vectors(torch.randn(5, 10)),
        made.sentence_vectors(IDS, LENGTHS, "en"),
    )
    torch.testing.assert_close(images.norm(dim=1), torch.ones(5))
    expected = torch.cosine_similarity(images[:, None], sentences[None, :], dim=2)
    torch.testing.assert_close(made.scores(images, sentences), expected)


def test_pooled_languages_share_words_and_separate_ones_do_not():
    for vocabulary, same in (("pooled", True), ("per_language", False)):
        made = model(vocabulary=vocabulary)
        en, de = (made.sentence_vectors(IDS, LENGTHS, language) for language in ("en", "de"))
        assert torch.equal(en, de) == same


def test_embedding_in_batches_keeps_order():
    made = model()
    whole = made.embed_tokens(IDS, LENGTHS, "en")
    torch.testing.assert_close(made.embed_tokens(IDS, LENGTHS, "en", batch_size=1), whole)
    torch.testing.assert_close(made.sentence_vectors(IDS, LENGTHS, "en"), whole)
    features = torch.randn(7, 10)
    torch.testing.assert_close(
        made.embed_features(features, batch_size=3), made.image_vectors(features)
    )


def test_unit_features_are_a_choice_of_the_recipe():
    features = torch.randn(5, 10)
    for normalize, same in ((True, True), (False, False)):
        encoder = model(normalize_features=normalize).image_encoder
        with torch.no_grad():
            encoder.linear.bias.fill_(0.5)
        vectors = [encoder(scale * features) for scale in (1, 7)]
        assert torch.allclose(*vectors, atol=1e-6) == same
