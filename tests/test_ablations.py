"""The ablations of our own recipe: each leaves out its part, and no other."""

import pytest
import tiny
import torch
from study import ROOT
from torch import nn

from benchmarks import ablations
from pipeline_lib.settings.loading import load_settings


def test_every_key_is_one_of_the_recipe_and_is_changed(monkeypatch):
    monkeypatch.chdir(ROOT / "studies/flickr8k")
    whole = load_settings().recipe("polyview").model_dump()
    for part, changes in ablations.CHANGED.items():
        assert {key for key in changes if changes[key] == whole[key]} == set(), part
        assert changes.keys() <= whole.keys(), part


@pytest.mark.parametrize("part", ablations.SILENCED)
def test_a_silenced_part_is_heard_no_more(part):
    learner = tiny.learner(tiny.polyview(), captions=tiny.pairs(), dim=20).eval()
    layer = ablations.SILENCED[part](learner)
    ids, lengths = torch.tensor([[3, 4, 5]]), torch.tensor([3])
    inputs = {"words": lambda: learner.space.sentence_vectors(ids, lengths, "en")}
    inputs["photos"] = lambda: learner.space.image_vectors(torch.ones(1, 20))
    side = "words" if "words" in part else "photos"
    heard = inputs[side]()
    for weights in layer.parameters():
        nn.init.zeros_(weights)
    silent = inputs[side]()
    layer.register_forward_pre_hook(lambda module, values: (values[0] + 1.0,))
    assert not torch.equal(heard, silent)
    assert torch.equal(silent, inputs[side]())


def test_differences_are_between_runs_of_a_seed():
    assert ablations.difference([3.0, 5.0], [1.0, 2.0]) == "+2.5 ± 0.7"
    assert ablations.spread([1.0, 3.0]) == "2.0 ± 1.4"
