"""What runs on a CUDA device gives what the CPU gives in float32."""

import numpy as np
import pytest
import tiny
import torch
from tiny_models import Killed, killed_at, no_scores, prepare

from pipeline_lib.compute.device import best_device
from pipeline_lib.models.similarity import SIMILARITIES
from pipeline_lib.synthesis.matching import RETRIEVALS
from pipeline_lib.synthesis.neighbours import nearest, nearest_both_ways
from pipeline_lib.training.examples import build_examples
from pipeline_lib.training.fitting import fit
from pipeline_lib.training.loop import CHECKPOINT

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]
CPU = torch.device("cpu")
UNIQUE = {"word_dim": 4}
"""Fewer dimensions than translations in the lexicon: of more, many rotations fit it alike."""


def train(folder, device, objective, validate=no_scores, **changes):
    """Return a trained model, and the mean losses of each kind of task before each validation."""
    changes = {"validate_every_updates": 1, "max_epochs": 3} | changes
    recipe = tiny.recipe(objective, **changes, **UNIQUE)
    learner = tiny.learner(recipe).to(device)
    words = learner.space.vocabulary
    examples = build_examples(tiny.pairs(), "train", tiny.features(), words, recipe, tiny.lexicon())
    folder.mkdir(exist_ok=True)
    history, _ = fit(learner, examples, validate, 1, folder, "test")
    losses = {
        (row["update"], key): value
        for row in history
        for key, value in row.items()
        if key.startswith("loss")
    }
    return learner.space, losses


# Weights that differ by 2e-7 end up to 4e-6 apart in the loss, by 5e-4 (as in TF32) 4e-4 or more.
@pytest.mark.parametrize("objective", tiny.OWN)
@pytest.mark.parametrize(("precision", "tolerance"), [("f32", 1e-4), ("bf16", 5e-2)])
def test_updates_have_the_losses_of_the_cpu(tmp_path, objective, precision, tolerance):
    _, expected = train(tmp_path / "cpu", CPU, objective)
    model, found = train(tmp_path / "gpu", best_device(), objective, precision=precision)
    assert model.device.type == best_device().type
    assert len(found) == len(expected) >= 3
    assert found == pytest.approx(expected, rel=tolerance)


@pytest.mark.parametrize("objective", tiny.OWN)
def test_a_run_continues_where_it_was(tmp_path, objective):
    device, every = best_device(), {"validate_every_updates": 3}
    _, expected = train(tmp_path / "whole", device, objective, **every)
    with pytest.raises(Killed):
        train(tmp_path / "parts", device, objective, killed_at(1), **every)
    assert (tmp_path / "parts" / CHECKPOINT).is_file()
    _, found = train(tmp_path / "parts", device, objective, **every)
    assert found == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("objective", tiny.OWN)
def test_vectors_are_those_of_the_cpu(objective):
    model, corpus, _ = prepare(objective)
    (_, language), sentences = next(reversed(corpus.sentences.items()))

    def embedded():
        there = sentences.to(model.device)
        yield model.embed_features(corpus.features).numpy()
        yield model.embed_tokens(there.token_ids, there.lengths, language).numpy()
        yield model.embed_words(language)[1]

    expected = [*embedded()]
    model.to(best_device())
    for found, wanted in zip(embedded(), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", SIMILARITIES)
def test_similarities_and_their_gradients_are_those_of_the_cpu(name):
    def values_and_gradients(device):
        generator = torch.Generator().manual_seed(1)
        sides = [torch.randn(rows, 8, generator=generator).abs() for rows in (5, 7)]
        sides = [
            torch.nn.functional.normalize(side, dim=1).to(device).requires_grad_() for side in sides
        ]
        scores = SIMILARITIES[name](*sides)
        scores.square().sum().backward()
        return [tensor.detach().cpu() for tensor in (scores, *(side.grad for side in sides))]

    for found, wanted in zip(*map(values_and_gradients, (best_device(), CPU)), strict=True):
        torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)


def test_drawn_negatives_are_trained_on(tmp_path):
    """They are drawn on the device, others than on the CPU."""
    _, losses = train(tmp_path, best_device(), "joint", contrastive_terms=2)
    assert all(np.isfinite(value) and value > 0 for value in losses.values())


@pytest.mark.parametrize(("precision", "cosine"), [("f32", 0.999999), ("bf16", 0.999)])
def test_image_features_are_those_of_the_cpu(precision, cosine):
    pytest.importorskip("pipeline_lib.images.networks")
    from pipeline_lib.images.backbones import BACKBONES
    from pipeline_lib.images.networks import ImageEncoder
    from pipeline_lib.images.runtimes import RUNTIMES

    torch.manual_seed(0)
    backbone = BACKBONES["resnet50"]
    encoder = ImageEncoder(backbone.build(96), backbone.mean, backbone.std).eval()
    pixels = np.random.default_rng(0).integers(0, 256, (4, 96, 96, 3), dtype=np.uint8)
    with torch.inference_mode():
        expected = encoder(torch.from_numpy(pixels))
    found = RUNTIMES[best_device().type, precision](encoder, 4, 96).encode(pixels)
    assert torch.cosine_similarity(torch.from_numpy(found), expected).min() > cosine


# Translators


@pytest.fixture
def translation():
    return pytest.importorskip("tiny_translation", reason="a package of translators is missing")


def translator_of(translation, architecture, **changes):
    from pipeline_lib.models.translator import Translator

    recipe = translation.recipe(architecture, dropout=0.0, **changes)
    return Translator(recipe, translation.toy_subwords())


def loss_and_gradient(translator, pairs):
    from pipeline_lib.training.translation_batches import encode_pairs

    encoded = encode_pairs(translator, *(list(side) for side in zip(*pairs, strict=True)))
    source, target = encoded.batch(np.arange(len(pairs)), translator.device)
    translator.train()
    translator.zero_grad()
    loss = translator.loss(source, target)
    loss.backward()
    return loss.item(), torch.cat([p.grad.flatten().cpu() for p in translator.parameters()])


@pytest.mark.parametrize("architecture", ["transformer", "gru_attention"])
@pytest.mark.parametrize(("precision", "tolerance"), [("f32", 1e-4), ("bf16", 5e-2)])
def test_a_translators_loss_is_that_of_the_cpu(translation, architecture, precision, tolerance):
    pairs = translation.toy_pairs(20)
    exact = translator_of(translation, architecture)
    expected, gradient = loss_and_gradient(exact, pairs)
    rounded = translator_of(translation, architecture, precision=precision).to(best_device())
    found, of_it = loss_and_gradient(rounded, pairs)
    assert found == pytest.approx(expected, rel=tolerance)
    assert (of_it - gradient).norm() <= tolerance * gradient.norm()


@pytest.mark.parametrize("architecture", ["transformer", "gru_attention"])
def test_translations_are_those_of_the_cpu(translation, architecture):
    translator = translator_of(translation, architecture)
    sentences = [source for source, _ in translation.toy_pairs(12)]

    def scores():
        lists = translator.translate(sentences, beam=3, n_best=2, alpha=1.0)
        return [[hypothesis.score for hypothesis in found] for found in lists]

    expected = scores()
    translator.to(best_device())
    np.testing.assert_allclose(scores(), expected, rtol=1e-4)


# Neighbours


def on_grid(count, seed, dim=48):
    """Draw vectors of multiples of 2^-11: float32 adds their products exactly in any order."""
    vectors = torch.randn(count, dim, generator=torch.Generator().manual_seed(seed))
    return (vectors / vectors.norm(dim=1, keepdim=True) * 2**11).round() / 2**11


def test_neighbours_are_those_of_the_cpu():
    a, b, device = on_grid(300, 1), on_grid(40_000, 2), best_device()
    offset = torch.randint(-900, 900, (len(b),), generator=torch.Generator().manual_seed(3)) / 2**11
    searches = (
        lambda there: [nearest(a, b.to(there), 10)],
        lambda there: [nearest(a, b.to(there), 10, offset.to(there))],
        lambda there: nearest_both_ways(a, b.to(there), 3),
    )
    for search in searches:
        for found, expected in zip(search(device), search(CPU), strict=True):
            assert torch.equal(found.scores, expected.scores)
            assert torch.equal(found.indices, expected.indices)


RULES = {
    "nearest": {},
    "csls": {"neighbours": 10},
    "one_to_one": {"neighbours": 10, "reuse_cap": 1},
}


@pytest.mark.parametrize("rule", RETRIEVALS)
def test_pseudopairs_are_those_of_the_cpu(rule):
    a, b = on_grid(500, 1), on_grid(2000, 2)
    here = RETRIEVALS[rule](a, b, **RULES[rule])
    there = RETRIEVALS[rule](a, b.to(best_device()), **RULES[rule])
    # Sums of exponentials and means differ in their last bits, and so may the best of near equals.
    assert (here.lent == there.lent).mean() > 0.99
    np.testing.assert_allclose(here.scores, there.scores, atol=1e-5)
