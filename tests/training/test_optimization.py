"""Optimizers and schedules, against PyTorch's own and by hand."""

import math

import pytest
import tiny
import torch
from tiny_models import named
from torch import nn

from pipeline_lib.compute.arithmetic.mode import arithmetic
from pipeline_lib.settings import optimization as optimization_settings
from pipeline_lib.settings.optimization import Optimizer
from pipeline_lib.settings.recipes import contradictions
from pipeline_lib.training.optimization import SCHEDULES, RowwiseAdamW, make_optimizer


def train(network, optimizer, batches, rate=0.01):
    for ids in batches:
        for group in optimizer.param_groups:
            group["lr"] = rate
        optimizer.zero_grad()
        network(torch.tensor(ids)).square().sum().backward()
        optimizer.step()


def network(sparse=False):
    torch.manual_seed(0)
    return nn.Sequential(nn.Embedding(5, 3, sparse=sparse), nn.Linear(3, 4)).double()


def rowwise(model):
    table, linear = model[0].weight, model[1]
    return RowwiseAdamW([table], [linear.weight, linear.bias], weight_decay=0.1)


@pytest.mark.parametrize("sparse", [False, True])
def test_words_that_every_update_reads_learn_as_by_adamw(sparse):
    batches = [[0, 1, 2, 3, 4, step % 5] for step in range(20)]
    ours, theirs = network(sparse), network()
    train(ours, rowwise(ours), batches)
    decayed = [{"params": [theirs[1].weight], "weight_decay": 0.1}]
    plain = [{"params": [theirs[0].weight, theirs[1].bias], "weight_decay": 0.0}]
    train(theirs, torch.optim.AdamW(decayed + plain), batches)
    torch.testing.assert_close([*ours.parameters()], [*theirs.parameters()])


@pytest.mark.parametrize("sparse", [False, True])
def test_a_word_that_an_update_does_not_read_stays_as_it_is(sparse):
    model, alone = network(sparse), network(sparse)
    for each in (model, alone):
        each[1].requires_grad_(False)  # so that words do not meet in the linear layer
    before = model[0].weight.detach().clone()
    train(model, rowwise(model), [[1], [2], [2], [2], [1]])
    train(alone, rowwise(alone), [[1], [1]])
    torch.testing.assert_close(model[0].weight[1], alone[0].weight[1], rtol=0, atol=0)
    assert torch.equal(model[0].weight[[0, 3, 4]], before[[0, 3, 4]])
    assert not torch.equal(model[0].weight[2], before[2])


def test_exact_arithmetic_gives_the_same_weights():
    model, exact = network(), network()
    train(model, rowwise(model), [[0, 1], [1, 2], [4, 4]])
    with arithmetic("f64"):
        train(exact, rowwise(exact), [[0, 1], [1, 2], [4, 4]])
    found, expected = [*exact.parameters()], [*model.parameters()]
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-7)


def test_matrices_decay_as_the_recipe_says_and_words_and_vectors_do_not():
    learner = tiny.learner(tiny.polyview(weight_decay=0.4))
    words = [table.weight for table in learner.space.sentence_encoder.words.values()]
    for parameter in learner.parameters():
        nn.init.uniform_(parameter, 1, 2)  # biases, which start from 0, could not shrink
        parameter.grad = torch.zeros_like(parameter)
    for table in words:  # all are read, and nothing is learnt of them
        every = torch.arange(len(table))[None]
        table.grad = torch.sparse_coo_tensor(every, torch.zeros_like(table), check_invariants=True)
    before, optimizer = named(learner), make_optimizer(learner.recipe, learner)
    for group in optimizer.param_groups:
        group["lr"] = 0.5
    optimizer.step()
    for name, after in learner.named_parameters():
        decays = after.ndim > 1 and ".words." not in name
        torch.testing.assert_close(after, before[name] * (0.8 if decays else 1.0), msg=name)


def test_state_survives_a_checkpoint():
    whole, halves = network(), network()
    optimizer = rowwise(whole)
    train(whole, optimizer, [[0, 1], [1, 2], [2, 3], [1, 4]])
    first = rowwise(halves)
    train(halves, first, [[0, 1], [1, 2]])
    second = rowwise(halves)
    second.load_state_dict(first.state_dict())
    train(halves, second, [[2, 3], [1, 4]])
    torch.testing.assert_close([*whole.parameters()], [*halves.parameters()], rtol=0, atol=0)


def test_the_cosine_rises_then_falls_to_nothing():
    recipe = tiny.polyview(warmup_epochs=2.0, max_epochs=12)
    share = [SCHEDULES["cosine"](recipe, epoch, 0) for epoch in (0, 1, 2, 7, 12)]
    assert 0 < share[0] < 0.01
    assert share[1:] == pytest.approx([0.5, 1, 0.5, 0], abs=5e-3)
    assert share[3] == pytest.approx((1 + math.cos(math.pi / 2)) / 2)


def test_steps_multiply():
    recipe = tiny.recipe(decay_epochs=[2, 4], decay_factor=0.5)
    epochs = (0, 1.9, 2, 3.9, 4, 9)
    assert [SCHEDULES["steps"](recipe, e, 0) for e in epochs] == [1, 1, 0.5, 0.5, 0.25, 0.25]


def test_each_stall_multiplies():
    recipe = tiny.recipe(schedule="stall", decays=3, decay_epochs=None, decay_factor=0.5)
    assert [SCHEDULES["stall"](recipe, 0, stalls) for stalls in range(4)] == [1, 0.5, 0.25, 0.125]


def problems(**changes):
    return list(contradictions(tiny.polyview(**changes)))


def test_a_bag_of_words_is_not_tuned_by_an_optimizer_that_takes_no_sparse_gradients():
    [problem] = problems(optimizer="adam")
    assert problem.startswith("optimizer: text_encoder bag has sparse gradients")
    assert "adamw" in problem
    for changes in ({"precision": "f64"}, {"tune_words": False}, {"text_encoder": "recurrent"}):
        assert problems(optimizer="adam", **changes) == []
    assert problems() == []


def test_the_rate_has_epochs_to_fall_in():
    [problem] = problems(warmup_epochs=20.0, max_epochs=20)
    assert problem == "warmup_epochs: expected fewer than max_epochs, 20, found 20.0"
    assert problems(warmup_epochs=19.5, max_epochs=20) == []


def test_an_optimizer_takes_no_sparse_gradients_unless_it_says_so(monkeypatch):
    monkeypatch.setitem(optimization_settings.OPTIMIZERS, "other", type("Other", (Optimizer,), {}))
    [problem] = problems(optimizer="other")
    assert problem.endswith("needs adamw, found other")
