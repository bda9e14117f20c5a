"""Where a run starts: from draws, from word vectors, or from what another recipe trained."""

import pytest
import tiny
import torch
from tiny_models import moved, named, pairs_in

from pipeline_lib.contract.problems import ContractError
from pipeline_lib.models import encoders
from pipeline_lib.training.examples import build_vocabulary
from pipeline_lib.training.preparation import (
    initial_vocabulary,
    parameter_counts,
    start_learner,
)

DIM = 10
FINE_TUNED = {"initial": "teacher", "learning_rate": 0.001, "seeds": [1, 2]}


def save_teacher(folder, seeds=(1, 2), pairs=None, **changes):
    """Save a teacher of each seed, away from its draws, and return them by seed."""
    recipe = tiny.recipe(seeds=list(seeds), **changes)
    teachers = {seed: tiny.space(recipe, seed, pairs) for seed in seeds}
    for seed, teacher in teachers.items():
        with torch.no_grad():  # or they would be the draws that a student makes itself
            for weight in teacher.parameters():
                weight += 0.1
        teacher.save(folder / f"seed-{seed}", tiny.PREPROCESSING, {})
    return teachers


def start(folder, seed=1, **changes):
    recipe = tiny.recipe(**FINE_TUNED | changes)
    vocabulary = initial_vocabulary(recipe, folder, seed)
    return start_learner(recipe, vocabulary, DIM, seed, None, folder).space


@pytest.mark.parametrize("objective", ["alternating", "joint", "mixed", "two_branch"])
def test_fine_tuning_starts_from_the_teachers_weights_of_the_same_seed(tmp_path, objective):
    teachers = save_teacher(tmp_path, objective=objective)
    for seed, teacher in teachers.items():
        student = start(tmp_path, seed, objective=objective)
        assert not moved(named(teacher), named(student))
        assert student.training
    assert moved(named(teachers[1]), named(teachers[2]))


def test_fine_tuning_keeps_the_teachers_words(tmp_path):
    """Pseudopairs bring words that the teacher has no vector for: they stay unknown."""
    teacher = save_teacher(tmp_path)[1]
    vocabulary = initial_vocabulary(tiny.recipe(**FINE_TUNED), tmp_path, 1)
    assert vocabulary == teacher.vocabulary
    assert initial_vocabulary(tiny.recipe(), tmp_path, 1) is None


def test_a_model_that_continues_none_is_drawn_from_its_seed(tmp_path):
    recipe = tiny.recipe()
    vocabulary = build_vocabulary(tiny.pairs(), recipe)
    none = tmp_path / "none"
    models = [start_learner(recipe, vocabulary, DIM, seed, None, none).space for seed in (1, 1, 2)]
    assert not moved(named(models[0]), named(models[1]))
    drawn = {name for name in named(models[0]) if name != "image_encoder.linear.bias"}
    assert moved(named(models[0]), named(models[2])) == drawn


def test_other_sizes_are_refused_with_the_layers_that_differ(tmp_path):
    save_teacher(tmp_path)
    with pytest.raises(ContractError) as error:
        start(tmp_path, hidden_dim=24, embed_dim=24)
    message = str(error.value)
    for part in (
        "initial: teacher has other layers",
        "image_encoder.linear.bias, image_encoder.linear.weight",
        "sentence_encoder.recurrent.all.layer.weight_hh_l0",
        "same sizes, languages and vocabulary",
    ):
        assert part in message
    assert "words" not in message, "the words have one size in both"


def test_other_layers_are_refused_by_name(tmp_path):
    save_teacher(tmp_path)
    with pytest.raises(ContractError, match=r"projections\.all\.bias.*projections\.all\.weight"):
        start(tmp_path, projection="shared")


def test_a_seed_that_the_teacher_lacks_starts_from_its_first(tmp_path):
    teachers = save_teacher(tmp_path, seeds=(3, 7))
    assert not moved(named(teachers[3]), named(start(tmp_path, seed=5)))


def test_the_first_of_the_teachers_seeds_is_the_lowest_number(tmp_path):
    teachers = save_teacher(tmp_path, seeds=(9, 10))
    assert not moved(named(teachers[9]), named(start(tmp_path, seed=5)))


def test_parameters_are_counted_by_branch():
    """By hand: 10 x 16 + 16, GRU 3 (8 + 16 + 2) 16, 12 words and 2 of all with 4 specials, x 8."""
    expected = {"image_branch": 176, "language_branches": 1248, "words": 18 * 8}
    found = parameter_counts(tiny.learner(tiny.recipe()))
    assert found == {"all": sum(expected.values()), **expected}


def test_only_tuned_parameters_are_counted():
    pairs = pairs_in("en", "de")
    counts = []
    for tune in (True, False):
        learner = tiny.learner(tiny.recipe("mixed", tune_words=tune), captions=pairs)
        counts.append(parameter_counts(learner))
        tuned = sum(p.numel() for p in learner.parameters() if p.requires_grad)
        assert counts[-1]["all"] == tuned
    assert counts[1]["words"] == 0
    assert counts[0]["language_branches"] == counts[1]["language_branches"]
    assert torch.equal(learner.space.sentence_encoder.rotations["de"], torch.eye(8))


class ConvolvedHead(torch.nn.Module):
    """A head of layers that no initialization knows."""

    def __init__(self, feature_dim, architecture):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.rand(feature_dim))
        self.convolved = torch.nn.Conv1d(1, 2, 3)
        self.linear = torch.nn.Linear(feature_dim, architecture.embed_dim)


def test_weights_of_layers_that_no_initialization_knows_follow_the_seed_alone(monkeypatch):
    monkeypatch.setitem(encoders.IMAGE_HEADS, "mlp", ConvolvedHead)
    first = named(tiny.learner(tiny.recipe(), 1))
    before = torch.random.get_rng_state()
    torch.manual_seed(7)
    again, other = (named(tiny.learner(tiny.recipe(), seed)) for seed in (1, 2))
    assert not moved(first, again)
    unlike = {name for name in moved(first, other) if "image_encoder" in name}
    assert {name.rpartition("image_encoder.")[2] for name in unlike} >= {
        "scale", "convolved.weight", "linear.weight",
    }  # fmt: skip
    torch.random.set_rng_state(before)
    tiny.learner(tiny.recipe(), 3)
    assert torch.equal(torch.random.get_rng_state(), before), "draws of others were disturbed"
