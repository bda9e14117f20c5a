"""Parts of a recipe are named in settings and made elsewhere; a new one needs these two places."""

from typing import get_args

import numpy as np
import pytest
import tiny
import torch
from pydantic import Field
from tiny_models import moved, named
from torch import nn

from pipeline_lib.evaluation.scores import SCORES
from pipeline_lib.models import encoders, initialization, losses, recurrent, similarity
from pipeline_lib.settings import architecture, recipes
from pipeline_lib.settings import losses as loss_settings
from pipeline_lib.settings import objectives as objective_settings
from pipeline_lib.settings.strict import Count, Rate, SettingsError, Strict
from pipeline_lib.training import objectives
from pipeline_lib.training.examples import build_examples
from pipeline_lib.training.fitting import HIGHER_IS_BETTER, fit
from pipeline_lib.training.tasks import (
    IMAGE_CAPTION,
    Objective,
    Task,
    embed_rows,
    images_of,
    plan_batches,
    uniform_choice,
)

PLACES = {
    "objective": (objective_settings.OBJECTIVES, objectives.BUILDERS),
    "loss": (loss_settings.LOSSES, losses.LOSSES),
    "text_encoder": (architecture.TEXT_ENCODERS, encoders.TEXT_ENCODERS),
    "image_head": (architecture.IMAGE_HEADS, encoders.IMAGE_HEADS),
}


@pytest.mark.parametrize("part", PLACES)
def test_what_can_be_named_can_be_made(part):
    named_, made = PLACES[part]
    assert named_.keys() == made.keys()


@pytest.mark.parametrize(
    ("form", "key", "made"),
    [
        (recipes.Recipe, "similarity", similarity.SIMILARITIES),
        (recipes.Recipe, "similarity", SCORES),
        (recipes.Recipe, "initialization", initialization.INITIALIZATIONS),
        (recipes.Recipe, "select_by", HIGHER_IS_BETTER),
        (architecture.RecurrentText, "recurrent", recurrent.LAYERS),
    ],
)
def test_what_a_key_allows_is_there(form, key, made):
    assert {*get_args(form.model_fields[key].annotation)} == {*made}


class PooledText(Strict):
    """Keys of the mean of a sentence's words."""

    pooled_scale: Rate

    @property
    def text_width(self):
        return self.embed_dim


class PooledEncoder(encoders.TextEncoder):
    """The mean of a sentence's words, mapped into the joint space."""

    def __init__(self, vocabulary, keys):
        super().__init__(vocabulary, keys)
        self.scale, self.linear = keys.pooled_scale, nn.Linear(keys.word_dim, keys.embed_dim)

    def forward(self, token_ids, lengths, language):
        inside = torch.arange(token_ids.shape[1]) < lengths[:, None]
        words = self.embed(token_ids, language) * inside[..., None]
        return self.linear(self.scale * words.sum(1) / lengths[:, None])


class StandardizedImage(Strict):
    """Keys of an affine map of standardised features."""

    standardized_eps: Rate


class StandardizedHead(nn.Module):
    """An affine map of standardised features."""

    def __init__(self, feature_dim, keys):
        super().__init__()
        self.norm = nn.BatchNorm1d(feature_dim, keys.standardized_eps, affine=False)
        self.linear = nn.Linear(feature_dim, keys.embed_dim)

    def forward(self, features):
        return self.linear(self.norm(features))


class Logistic(Strict):
    """Keys of a loss of two terms."""

    sharpness: Rate = Field(le=100)


class LogisticLoss(nn.Module):
    """Pairs score high, others low; siblings count as neither."""

    def __init__(self, sharpness):
        super().__init__()
        self.sharpness = nn.Parameter(torch.tensor(sharpness))

    def forward(self, scores, group, negatives=None):
        logits, wrong = self.sharpness * scores, group[:, None] != group[None, :]
        pull, push = nn.functional.softplus(-logits.diag()), nn.functional.softplus(logits[wrong])
        return {"pull": pull.sum(), "push": push.sum() / len(scores)}


class OneSet(Strict):
    """Keys of an objective with a layer of its own."""

    probe_classes: Count


def one_set(learner, examples, seed):
    """Train on the first captions alone."""
    (name, language), sentences = next(iter(examples.sentences.items()))

    def terms(model, rows):
        images = images_of(sentences, rows)
        texts = embed_rows(model, sentences, rows, language)
        found = learner.loss(
            model.scores(model.image_vectors(examples.features[images]), texts), images
        )
        return {**found, "probe": learner.layers["probe"](texts).square().mean()}

    stream = plan_batches(sentences.lengths.numpy(), learner.recipe, (seed, 0))
    task = Task(IMAGE_CAPTION, name, stream, terms)
    return Objective([task], uniform_choice([task]), stream.batches_per_epoch)


NEW = {
    "objective": (OneSet, one_set),
    "loss": (Logistic, LogisticLoss),
    "text_encoder": (PooledText, PooledEncoder),
    "image_head": (StandardizedImage, StandardizedHead),
}
OWN_KEYS = {
    "objective": {"probe_classes": 3},
    "loss": {"sharpness": 5.0},
    "text_encoder": {"pooled_scale": 2.0},
    "image_head": {"standardized_eps": 1e-5},
}


@pytest.fixture
def new_parts(monkeypatch):
    for part, (form, made) in NEW.items():
        monkeypatch.setitem(PLACES[part][0], "new", form)
        monkeypatch.setitem(PLACES[part][1], "new", made)
    monkeypatch.setitem(
        objectives.LAYERS,
        "new",
        lambda recipe: {"probe": nn.Linear(recipe.embed_dim, recipe.probe_classes)},
    )


def without_own_keys(part):
    """Return the values of a tiny recipe, but for those of one of its parts."""
    values = tiny.recipe(caption_caption_probability=0.0).model_dump()
    form = PLACES[part][0][values[part]]
    foreign = form.model_fields.keys() - recipes.Recipe.model_fields.keys()
    return {key: value for key, value in values.items() if key not in foreign}


@pytest.mark.parametrize("parts", [*([part] for part in NEW), [*NEW]], ids="-".join)
def test_a_new_part_trains_saves_and_loads(new_parts, tmp_path, parts):
    values = without_own_keys(parts[0])
    for part in parts:
        kept = without_own_keys(part).keys()
        values = {key: value for key, value in values.items() if key in kept}
    values |= {"max_epochs": 1, "validate_every_updates": 2}
    for part in parts:
        values |= {part: "new", **OWN_KEYS[part]}
    recipe = recipes.make_recipe(values)
    learner = tiny.learner(recipe)
    words = learner.space.vocabulary
    examples = build_examples(tiny.pairs(), "train", tiny.features(), words, recipe)
    before = named(learner)
    history = fit(
        learner, examples, lambda _: dict.fromkeys(HIGHER_IS_BETTER, 1.0), 1, tmp_path, ""
    )
    assert {name for name in before if name.startswith(("space", "loss"))} <= moved(
        before, named(learner)
    ) | {name for name in before if ".bias" in name}
    columns = {column for column in history[0] if column.startswith("loss_")}
    terms = {"pull", "push"} if "loss" in parts else set()
    terms |= {"probe"} if "objective" in parts else set()
    if terms and "loss" not in parts:
        terms.add("hinge")
    assert columns == {"loss_image_caption"} | {f"loss_image_caption_{term}" for term in terms}
    if terms:
        added = sum(history[0][f"loss_image_caption_{term}"] for term in terms)
        assert history[0]["loss_image_caption"] == pytest.approx(added, abs=1e-5)
    learner.space.save(tmp_path / "m", tiny.PREPROCESSING, recipe.model_dump())
    loaded = type(learner.space).load(tmp_path / "m")
    features = torch.from_numpy(np.ones((2, 10), np.float32))
    assert torch.equal(loaded.embed_features(features), learner.space.embed_features(features))


def test_a_part_that_nobody_made_is_named():
    with pytest.raises(SettingsError, match=r"no loss is called 'hing'\. Did you mean 'hinge'"):
        recipes.make_recipe(tiny.recipe().model_dump() | {"loss": "hing"})


def test_a_papers_keys_of_another_part_do_not_concern_a_recipe():
    paper = tiny.recipe().model_dump()
    row = {"loss": "infonce", "temperature": 0.1, "tune_temperature": True}
    form, values = recipes.merge(paper, {"margin": 0.3, "batch_size": 3}, row)
    made = form.model_validate(values)
    assert (made.temperature, made.batch_size) == (0.1, 3)
    assert not hasattr(made, "margin")
    form, values = recipes.merge(paper, {}, {**row, "margin": 0.3})
    with pytest.raises(ValueError, match="margin"):
        form.model_validate(values)


def test_infonce_trains_its_temperature(tmp_path):
    row = {"loss": "infonce", "temperature": 0.1, "tune_temperature": True, "max_epochs": 30}
    form, values = recipes.merge(tiny.recipe().model_dump(), {}, row)
    learner = tiny.learner(form.model_validate(values))
    examples = build_examples(
        tiny.pairs(), "train", tiny.features(), learner.space.vocabulary, learner.recipe
    )
    scores = dict.fromkeys(HIGHER_IS_BETTER, 1.0)
    scripted = iter(range(100))
    history = fit(
        learner, examples, lambda _: scores | {"recall_sum": next(scripted)}, 1, tmp_path, ""
    )
    assert learner.loss.log_scale.item() != pytest.approx(-np.log(0.1), abs=1e-3)
    assert history[-1]["loss_image_caption"] < history[0]["loss_image_caption"] / 2
    assert {"loss_image_caption_rows", "loss_caption_caption_columns"} <= history[-1].keys()
