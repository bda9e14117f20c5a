"""The bag of words and the residual image head, against plain loops."""

import pytest
import tiny
import torch

from pipeline_lib.compute.arithmetic.mode import arithmetic
from pipeline_lib.models.joint_space import JointSpace

IDS = torch.tensor([[4, 5, 6, 0], [5, 0, 0, 0], [7, 6, 6, 4]])
LENGTHS = torch.tensor([3, 1, 4])


def space(**changes):
    return tiny.space(tiny.polyview(**changes), seed=3, dim=20)


def test_a_sentence_is_the_mean_of_its_words_and_their_maximum():
    encoder = space().sentence_encoder
    vectors = encoder(IDS, LENGTHS, "en")
    for row, (ids, length) in enumerate(zip(IDS, LENGTHS, strict=True)):
        words = encoder.word_table("en").weight[ids[:length]]
        hidden = torch.stack([torch.relu(encoder.hidden(word)) for word in words])
        expected = encoder.of_mean(words.mean(0)) + encoder.of_maximum(hidden.amax(0))
        torch.testing.assert_close(vectors[row], expected)


def test_the_order_of_words_plays_no_part():
    encoder = space().sentence_encoder
    there, back = torch.tensor([[4, 5, 6]]), torch.tensor([[6, 4, 5]])
    torch.testing.assert_close(
        encoder(there, torch.tensor([3]), "en"), encoder(back, torch.tensor([3]), "en")
    )


def test_gradients_reach_words_by_mean_and_by_maximum():
    encoder = tiny.learner(tiny.polyview(precision="f64"), dim=20).space.sentence_encoder
    weight = encoder.word_table("en").weight

    def sentence(table):
        return torch.func.functional_call(
            encoder.eval(), {"words.en.weight": table}, (IDS[:1], LENGTHS[:1], "en")
        )

    start = weight.detach().clone().requires_grad_()
    assert torch.autograd.gradcheck(sentence, (start,), eps=1e-6, atol=1e-5)


def test_features_of_one_crop_train_and_their_mean_embeds():
    head = space(image_dropout=0.0).image_encoder
    features = torch.randn(4, 20)
    crops = features.unflatten(1, (2, 10))
    embedded = head(features)
    torch.testing.assert_close(embedded, head(crops.mean(1).repeat(1, 2)))
    head.train()
    head.standardize.eval()
    possible = [head(crops[:, k].repeat(1, 2)) for k in range(2)]
    torch.manual_seed(1)
    chosen = set()
    for _ in range(20):
        for row, vector in enumerate(head(features)):
            near = [torch.allclose(vector, each[row], atol=1e-6) for each in possible]
            assert sum(near) == 1
            chosen.add((row, near.index(True)))
    assert len(chosen) == 8


@pytest.mark.parametrize("precision", ["f32", "f64"])
def test_a_saved_model_loads_and_scores_the_same(tmp_path, precision):
    made = space(precision=precision)
    made.save(tmp_path / "m", tiny.PREPROCESSING, {})
    loaded = JointSpace.load(tmp_path / "m")
    features = torch.randn(5, 20, dtype=made.dtype)
    with arithmetic(precision):
        assert torch.equal(loaded.image_vectors(features), made.image_vectors(features))
        a, b = (m.sentence_vectors(IDS, LENGTHS, "en") for m in (made, loaded))
    assert torch.equal(a, b)
