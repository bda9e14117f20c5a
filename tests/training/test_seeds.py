"""Seeds: side by side, each a run of its own, and trained alike where they begin alike."""

import hashlib
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
import tiny
import torch
from tiny_models import named

from pipeline_lib.evaluation.validation import validation_scores
from pipeline_lib.models.embedder import Embedder
from pipeline_lib.running.publishing import tree_sha256
from pipeline_lib.training import material as material_module
from pipeline_lib.training import seeds as module
from pipeline_lib.training.material import Material
from pipeline_lib.training.seeds import (
    can_train_ahead,
    curves,
    description,
    side_by_side,
    train_missing,
    train_seeds,
    unpublished,
)

SHORT = {"max_epochs": 2, "validate_every_updates": "epoch"}


def test_only_small_models_share_the_cores():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    small = tiny.recipe(seeds=[1, 2, 3])
    large = tiny.recipe(seeds=[1, 2, 3], hidden_dim=4096, embed_dim=4096, batch_size=128)
    found = side_by_side(small), side_by_side(large), side_by_side(tiny.recipe())
    torch.set_num_threads(before)
    assert found == (2, 1, 1)


def test_only_small_models_of_exact_arithmetic_train_ahead():
    small = tiny.recipe(precision="f64")
    large = tiny.recipe(precision="f64", hidden_dim=4096, embed_dim=4096, batch_size=128)
    assert [can_train_ahead(each) for each in (small, large, tiny.recipe())] == [True, False, False]


def material(seeds, pairs=None, digests=None, **changes):
    recipe = tiny.recipe(seeds=seeds, **SHORT | changes)
    pairs = tiny.pairs() if pairs is None else pairs
    none = tiny.lexicon().iloc[:0]
    digests = {"features": "a"} if digests is None else digests
    return Material(recipe, pairs, tiny.features(), none, {}, "none", digests)


def digest(identity):
    return hashlib.sha256(repr(identity).encode()).hexdigest()


@pytest.fixture
def train(tmp_path, monkeypatch):
    """Return a function that trains what is not trained and returns the seeds that it trained."""
    trained = []

    def counted(learner, examples, validate, seed, *arguments):
        trained.append(seed)
        return fit(learner, examples, validate, seed, *arguments)

    fit = module.fit
    monkeypatch.setattr(module, "fit", counted)
    score = partial(validation_scores, tested={})

    def run(made, work="work", folder="data", ahead=False, preprocessing=tiny.PREPROCESSING):
        home = tmp_path / folder
        seeds = made.recipe.seeds
        folders = {seed: tmp_path / work / digest(made.identity(seed)) for seed in seeds}
        for each in folders.values():
            each.mkdir(parents=True, exist_ok=True)
        before = len(trained)
        places = home / "models", home / "training"
        if ahead:
            missing = unpublished(folders, *places)
            train_missing("tiny", made, score, preprocessing, missing)
        else:
            train_seeds("tiny", made, score, preprocessing, folders, *places)
        return trained[before:]

    return run


def test_a_seed_more_trains_that_one_and_leaves_what_a_clean_run_makes(train, tmp_path):
    assert train(material([1, 2])) == [1, 2]
    assert train(material([1, 2, 3]), work="later") == [3]
    assert train(material([1, 2, 3]), work="anew", folder="clean") == [1, 2, 3]
    assert tree_sha256(tmp_path / "data") == tree_sha256(tmp_path / "clean")
    assert train(material([3, 1]), work="fewer") == []
    assert {path.name for path in (tmp_path / "data/models").iterdir()} == {"seed-1", "seed-3"}


def test_what_was_trained_ahead_is_published_and_not_trained_again(train, tmp_path, capfd):
    assert train(material([1]), work="before") == [1]
    assert train(material([1, 2]), ahead=True) == [2]
    assert not (tmp_path / "data/models/seed-2").exists()
    assert train(material([1, 2])) == []
    assert "tiny seed 2: is trained already" in capfd.readouterr().err
    train(material([1, 2]), work="anew", folder="clean")
    assert tree_sha256(tmp_path / "data") == tree_sha256(tmp_path / "clean")
    assert train(material([1, 2]), work="later", ahead=True) == []


@pytest.mark.parametrize(
    "changed",
    [{"margin": 0.3}, {"digests": {"features": "b"}}, {"pairs": tiny.pairs().iloc[1:]}],
    ids=["a key", "an input", "a caption"],
)
def test_all_seeds_train_anew_when_what_they_depend_on_changes(train, changed):
    train(material([1, 2]))
    assert train(material([1, 2], **changed), work="later") == [1, 2]


def test_a_model_depends_on_the_weights_that_it_continues(tmp_path):
    made = replace(material([1], initial="teacher"), models=tmp_path)
    weights = tmp_path / "seed-1/weights.safetensors"
    weights.parent.mkdir()
    identities = []
    for content in ("old", "new"):
        weights.write_text(content)
        identities.append(made.identity(1))
    assert identities[0] != identities[1]


def test_photos_that_have_moved_train_nothing_and_a_model_says_where_they_are(train, tmp_path):
    extractor = tiny.extractor(images="elsewhere", batch_size=4)
    moved = tiny.PREPROCESSING.model_copy(update={"extractor": extractor})
    train(material([1]))
    assert train(material([1, 2]), work="later", preprocessing=moved) == [2]
    train(material([1, 2]), work="anew", folder="clean", preprocessing=moved)
    assert tree_sha256(tmp_path / "data") == tree_sha256(tmp_path / "clean")
    assert Embedder.load(tmp_path / "data/models/seed-1").preprocessing.extractor == extractor
    assert train(material([1, 2]), work="again", preprocessing=moved) == []


def test_a_model_that_continues_another_does_not_depend_on_how_that_ones_inputs_are_described(
    train, tmp_path
):
    train(material([1]))
    made = replace(material([1], initial="teacher"), models=tmp_path / "data/models")
    before = made.identity(1)
    moved = tiny.PREPROCESSING.model_copy(update={"extractor": tiny.extractor(images="elsewhere")})
    train(material([1]), work="later", preprocessing=moved)
    assert made.identity(1) == before


def test_a_model_that_is_no_longer_what_was_trained_is_trained_anew(train, tmp_path):
    train(material([1, 2]))
    weights = tmp_path / "data/models/seed-1/weights.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"x")
    assert train(material([1, 2]), work="later") == [1]


def test_rows_of_one_seed_concern_that_seed_alone(train):
    pairs = tiny.pairs()
    own = pairs[pairs["split"] == "train"].assign(set="borrowed")
    both = [own.assign(seed=1), own.iloc[2:].assign(seed=2)]
    train(material([1, 2], pairs=pd.concat([pairs, *both])))
    fewer = [both[0], both[1].iloc[2:]]
    again = material([1, 2], pairs=pd.concat([pairs, *fewer]))
    assert train(again, work="later") == [2]


def test_a_kill_between_two_seeds_keeps_the_first(train, monkeypatch):
    fit = module.fit

    def killed(learner, examples, validate, seed, *arguments):
        if seed == 2:
            raise KeyboardInterrupt
        return fit(learner, examples, validate, seed, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(module, "fit", killed)
        with pytest.raises(KeyboardInterrupt):
            train(material([1, 2]))
    assert train(material([1, 2, 3])) == [2, 3]


def test_a_seed_that_is_recorded_leaves_no_checkpoint(train, tmp_path):
    left = []
    written = module._write

    def seen(path, values):
        left.extend(tmp_path.rglob(module.CHECKPOINT))
        written(path, values)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_write", seen)
        train(material([1]))
    assert left  # until it is recorded, a kill loses nothing
    assert not [*tmp_path.rglob(module.CHECKPOINT)]


def test_records_name_each_seeds_curve_and_what_ended_it(train, tmp_path):
    train(material([1, 2]))
    records = tmp_path / "data/training"
    curve = curves(records, [2, 1])
    assert list(curve["seed"]) == [2, 2, 1, 1]
    assert np.isfinite(curve["recall_sum"]).all()
    found = description(records, [2, 1])
    assert found["ended"] == {"2": "cap", "1": "cap"}
    assert found["precision"] == "f32"
    assert found["parameters"]["all"] > 0


@pytest.mark.parametrize(
    "other",
    [
        {"caption_caption_probability": 0.0},
        {"violations": "sum", "margin": 0.1},
        {"learning_rate": 0.5, "batch_size": 2},
        {"schedule": "stall", "decays": 1, "decay_epochs": None},
        {"image_dropout": 0.2, "sentence_dropout": 0.2},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_rows_of_one_architecture_begin_alike_under_the_same_seed(other):
    """Rows are compared seed by seed: what they begin with is no difference between them."""
    for seed in (1, 2):
        first, second = (named(tiny.learner(tiny.recipe(**keys), seed)) for keys in ({}, other))
        assert first.keys() == second.keys()
        assert all(torch.equal(first[name], second[name]) for name in first)


def test_objectives_of_one_architecture_begin_alike_under_the_same_seed():
    keys = {"recurrent_sharing": "shared", "projection": "none", "vocabulary": "per_language"}
    keys |= {"orthogonal_map": False, "universal_dim": "none", "image_hidden_dims": []}
    keys |= {"recurrent": "gru", "alignment_every_updates": "never", "lexicon": "none"}
    begun = []
    for objective in ("alternating", "joint", "mixed", "two_branch"):
        own = tiny.OWN[objective].keys() | tiny.COMMON.keys()
        chosen = {key: value for key, value in keys.items() if key in own}
        extra = {"pretraining_epochs": 0} if objective == "two_branch" else {}
        begun.append(named(tiny.learner(tiny.recipe(objective, **chosen, **extra), 1).space))
    for other in begun[1:]:
        assert begun[0].keys() == other.keys()
        assert all(torch.equal(begun[0][name], other[name]) for name in other)


def test_the_digest_of_captions_is_that_of_their_json_however_many_are_read_at_once(monkeypatch):
    table = tiny.pairs().drop(columns="seed")
    whole = hashlib.sha256(table.to_json(orient="values").encode()).hexdigest()
    for rows in (1, 2, len(table) - 1, len(table), 50_000):
        monkeypatch.setattr(material_module, "_ROWS", rows)
        assert material_module._digest_of_rows(table) == whole
    empty = table.iloc[:0]
    whole = hashlib.sha256(empty.to_json(orient="values").encode()).hexdigest()
    assert material_module._digest_of_rows(empty) == whole
