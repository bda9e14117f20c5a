"""A batch embedded some captions at a time: the same training in less memory."""

import pytest
import test_ranks
import torch
from test_ranks import plain_doubles  # noqa: F401

from pipeline_lib.settings.strict import SettingsError
from pipeline_lib.training import chunks
from pipeline_lib.training.chunks import VARIABLE, captions_at_once, in_chunks


@pytest.mark.parametrize("name", ["kadar", "mule", "polyview"])
@pytest.mark.usefixtures("plain_doubles")
def test_chunks_train_as_the_whole_batch(name, tmp_path, monkeypatch):
    expected = test_ranks.train(name, tmp_path / "whole")
    calls = []

    def counted(*arguments, **options):
        calls.append(arguments)
        return checkpoint(*arguments, **options)

    checkpoint = chunks.checkpoint
    monkeypatch.setattr(chunks, "checkpoint", counted)
    monkeypatch.setenv(VARIABLE, "2")
    test_ranks.assert_same_training(test_ranks.train(name, tmp_path / "chunks"), expected)
    assert len(calls) > len(expected[0])


def gradients(layer, values, most):
    """Return the weights' gradient, and how many numbers the forward pass kept for it."""
    layer.zero_grad()
    kept = []

    def keep(tensor):
        kept.append(tensor.numel())
        return tensor

    def embed(rows, _lengths):
        return layer(rows)

    torch.manual_seed(3)
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        vectors = in_chunks(embed, values, torch.full((len(values),), values.shape[1]), most)
    torch.manual_seed(4)
    vectors.square().sum().backward()
    return layer[0].weight.grad.clone(), sum(kept)


def test_less_is_kept_and_dropout_is_the_same_there_and_back():
    """A mask drawn anew on the way back would give the gradient of another vector."""
    layer = torch.nn.Sequential(torch.nn.Linear(6, 64), torch.nn.Tanh(), torch.nn.Dropout(0.5))
    layer.append(torch.nn.Linear(64, 4)).double()
    values = torch.randn(12, 6, dtype=torch.float64)
    found, kept = gradients(layer, values, 4)
    torch.manual_seed(3)  # the chunks' masks, one after the other
    layer.zero_grad()
    torch.cat([layer(part) for part in values.split(4)]).square().sum().backward()
    torch.testing.assert_close(found, layer[0].weight.grad, atol=1e-12, rtol=1e-12)
    assert kept < gradients(layer, values, 12)[1] / 4


def test_f64_has_its_batches_whole(monkeypatch):
    monkeypatch.setenv(VARIABLE, "7")
    assert captions_at_once("f64") is None
    assert captions_at_once("bf16") == 7
    monkeypatch.delenv(VARIABLE)
    assert captions_at_once("bf16") is None


@pytest.mark.parametrize("text", ["0", "some", ""])
def test_a_number_of_captions_is_one(monkeypatch, text):
    monkeypatch.setenv(VARIABLE, text)
    with pytest.raises(SettingsError, match=f"{VARIABLE}: expected a number"):
        captions_at_once("f32")
