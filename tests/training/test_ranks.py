"""One training in several processes: the numbers of one process, and no rank waits for ever."""

import itertools
from dataclasses import replace

import pandas as pd
import pytest
import tiny
import torch
import torch.distributed as dist
from torch import nn
from torch.multiprocessing import start_processes

from pipeline_lib.compute import device
from pipeline_lib.compute.arithmetic import kernels
from pipeline_lib.models.encoders import BatchNorm
from pipeline_lib.training import loop, ranks
from pipeline_lib.training.fitting import fit
from pipeline_lib.training.objectives import build_objective

UPDATES, TEXT_ALONE = 20, "tiny:9"
SHORT = {"batch_size": 5, "validate_every_updates": 1}
RECIPES = {
    "kadar": lambda: tiny.recipe("alternating", **SHORT, max_epochs=4),
    "mlmme": lambda: tiny.recipe("joint", **SHORT, max_epochs=7, contrastive_terms=2),
    "mule": lambda: tiny.recipe("two_branch", **SHORT, max_epochs=10),
    "few captions": lambda: tiny.recipe(
        "multiview", **SHORT | {"batch_size": 2, "max_epochs": 7}, text_photos=0
    ),
    "ame": lambda: tiny.recipe("mixed", **SHORT, max_epochs=6, similarity="order", absolute=True),
    "polyview": lambda: tiny.polyview(
        **SHORT | {"image_crops": 1, "batch_size": 4, "max_epochs": 10}
    ),
}
"""Of each family, and our own: without dropout, of which each rank draws its own."""


@pytest.fixture
def plain_doubles(monkeypatch):
    """Compute f32 in doubles by PyTorch's kernels: the grids of f64 follow a rank's own rows."""
    plain = replace(kernels._FAST_KERNELS, column_sums=lambda x: x.sum(dim=0))
    monkeypatch.setattr(kernels, "_EXACT_KERNELS", plain)
    monkeypatch.setitem(device.TYPES, "f32", torch.float64)
    monkeypatch.setattr(loop, "round", lambda number, _digits: number, raising=False)


def in_ranks(count, folder, function, *arguments):
    """Return what a function returns in each of so many ranks."""
    start_processes(_rank, (count, folder, function, *arguments), nprocs=count, start_method="fork")
    return [torch.load(folder / f"{rank}.pt", weights_only=False) for rank in range(count)]


def _rank(rank, count, folder, function, *arguments):
    store = dist.FileStore(str(folder / "store"), count)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=count)
    torch.save(function(*arguments), folder / f"{rank}.pt")
    dist.destroy_process_group()


def captions():
    """Return captions of which some images have none in German, some fewer, and some no photo."""
    pairs = tiny.pairs()
    german, number = pairs["language"] == "de", pairs["image_id"].str[-1].astype(int)
    kept = ~german | (number > 1) & ~((number == 2) & (pairs["position"] == 1))
    unseen = pairs[number == 5].assign(image_id=TEXT_ALONE)
    return pd.concat([pairs[kept], unseen[unseen["split"] == "train"]], ignore_index=True)


def train(name, folder):
    """Train; return the losses of every update, unrounded, and the final weights."""
    recipe = RECIPES[name]()
    pairs = captions()
    if not recipe.reads_text_alone:
        pairs = pairs[pairs["image_id"] != TEXT_ALONE]
    learner = tiny.learner(recipe, captions=pairs)
    examples = tiny.examples(learner, captions=pairs)
    better = itertools.count()
    validate = lambda _space: {"recall_sum": float(next(better))}  # noqa: E731
    folder.mkdir(exist_ok=True)
    course = fit(learner, examples, validate, 1, folder, "test")
    return course.history, learner.state_dict()


def assert_same_training(found, expected):
    """Assert that losses and weights are equal but for the order of sums."""
    for row, other in zip(found[0], expected[0], strict=True):
        assert row == pytest.approx(other, abs=1e-9, rel=0, nan_ok=True)
    torch.testing.assert_close(found[1], expected[1], atol=1e-9, rtol=0)


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("name", RECIPES)
def test_ranks_train_as_one_process(name, count, tmp_path, plain_doubles):
    """With three ranks the last one has nothing of a short batch, of a language or of all."""
    expected = train(name, tmp_path / "one")
    assert len(expected[0]) >= UPDATES
    for found in in_ranks(count, tmp_path, train, name, tmp_path / "ranks"):
        assert_same_training(found, expected)


FORMS = [{}, {"affine": False}, {"momentum": None}, {"track_running_stats": False}]
"""Of PyTorch's layer, which parts that others add may have."""


def normalized(values, scale, count, **form):
    """Normalise this rank's rows; return them with all that learns from them."""
    layer = BatchNorm(values.shape[1], **form).double()
    if layer.affine:
        nn.init.constant_(layer.weight, 2.0)
    ranks.synchronize_normalization(layer)
    assert (type(layer) is not BatchNorm) == (count > 1)
    leaf = values.clone().requires_grad_()
    found = ranks.gather(layer(ranks.own(leaf)), len(values))
    loss = ranks.share((found * scale).square().sum())
    loss.backward()
    ranks.sum_gradients([leaf, *layer.parameters()])
    kept = {name: value.clone() for name, value in layer.state_dict().items()}
    evaluated = layer.eval()(values).detach()
    learnt = [weight.grad for weight in layer.parameters()]
    return [found.detach(), leaf.grad, *learnt, evaluated], kept


def all_forms(values, scale, count):
    """Return it of each form; one row has no deviation where none are kept from before."""
    forms = FORMS if len(values) > 1 else FORMS[:-1]
    return [normalized(values, scale, count, **form) for form in forms]


@pytest.mark.parametrize("rows", [1, 2, 7])
def test_batch_normalisation_is_pytorchs_over_the_whole_batch(rows, tmp_path):
    """Of two rows, one of three ranks has none; one row is normalised by running statistics."""
    generator = torch.Generator().manual_seed(rows)
    values, scale = torch.randn(2, rows, 4, generator=generator, dtype=torch.float64)
    expected = all_forms(values, scale, 1)
    cases = [
        (one, other)
        for each in in_ranks(3, tmp_path, all_forms, values, scale, 3)
        for one, other in zip(each, expected, strict=True)
    ]
    assert len(cases) >= 9
    for (found, own), (expected, kept) in cases:
        torch.testing.assert_close(found, expected, atol=1e-12, rtol=1e-12)
        torch.testing.assert_close(own, kept, atol=1e-12, rtol=1e-12)


def chances():
    """Draw as an update does: a plan, what falls on images and on captions, and a plan again."""
    torch.manual_seed(5)
    plan = [torch.rand(3)]
    own = []
    for what in ("image", "en"):
        with ranks.own_chance(what):
            own.append(torch.rand(3))
    return torch.stack([*plan, torch.rand(3)]), torch.stack(own)


def test_ranks_plan_alike_and_drop_each_their_own(tmp_path):
    expected, _ = chances()
    found = in_ranks(3, tmp_path, chances)
    for plan, own in found:
        assert torch.equal(plan[0], expected[0])
        assert torch.equal(plan, found[0][0])
        assert not torch.equal(own[0], own[1])
    drawn = torch.cat([own for _, own in found]).flatten()
    assert len(drawn.unique()) == len(drawn)


def masks():
    """Return the images' vectors of each language of an update of MLMME, dropped out by half."""
    learner = tiny.learner(tiny.recipe("joint", image_dropout=0.5, batch_size=12))
    task = build_objective(learner.train(), tiny.examples(learner), 1).tasks[0]
    found, embed = [], learner.space.image_vectors
    learner.space.image_vectors = lambda features: found.append(embed(features)) or found[-1]
    ranks.start_update(5)
    task.terms(learner.space, task.stream[0])
    return torch.stack(found).detach()


def test_ranks_drop_what_is_embedded_twice_in_an_update_anew(tmp_path):
    for first, second in in_ranks(2, tmp_path, masks):
        assert not (first == second).all(dim=1).any()


def rows_read():
    """Return the summed gradient of a table of which the rank reads one word, or none."""
    table = nn.Embedding(6, 2, sparse=True).double()
    nn.init.ones_(table.weight)
    rank = dist.get_rank()
    if rank < 2:
        table(torch.tensor([rank, 4, 4])).sum().backward()
    unused = nn.Parameter(torch.ones(2))
    ranks.sum_gradients([table.weight, unused])
    assert unused.grad is None
    return table.weight.grad.is_sparse, table.weight.grad.to_dense()


def test_gradients_of_words_stay_sparse_and_are_summed(tmp_path):
    """The third rank reads no word, and no rank reads words 2, 3 and 5."""
    expected = torch.zeros(6, 2, dtype=torch.float64)
    expected[[0, 1]], expected[4] = 1, 4
    for sparse, found in in_ranks(3, tmp_path, rows_read):
        assert sparse
        assert torch.equal(found, expected)
