"""Parts of a recipe are named in settings and made elsewhere; a new one needs these two places."""

from typing import get_args

import numpy as np
import pytest
import tiny
import torch
from pydantic import Field
from tiny_models import moved, named, no_scores
from torch import nn

from pipeline_lib.contract.reports import HIGHER_IS_BETTER
from pipeline_lib.evaluation.retrieval.scores import SCORES
from pipeline_lib.models import encoders, initialization, losses, recurrent, similarity
from pipeline_lib.settings import architecture, recipes
from pipeline_lib.settings import losses as loss_settings
from pipeline_lib.settings import objectives as objective_settings
from pipeline_lib.settings import optimization as optimization_settings
from pipeline_lib.settings.strict import Count, Rate, SettingsError, Strict
from pipeline_lib.training import objectives, optimization
from pipeline_lib.training.batches import Stream
from pipeline_lib.training.fitting import fit
from pipeline_lib.training.tasks import (
    IMAGE_CAPTION,
    Objective,
    Task,
    embed_rows,
    images_of,
    paired,
    uniform_choice,
)

INFONCE = {"loss": "infonce", "temperature": 0.1, "tune_temperature": True}
PLACES = {
    "objective": (objective_settings.OBJECTIVES, objectives.BUILDERS),
    "loss": (loss_settings.LOSSES, losses.LOSSES),
    "optimizer": (optimization_settings.OPTIMIZERS, optimization.OPTIMIZERS),
    "schedule": (optimization_settings.SCHEDULES, optimization.SCHEDULES),
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

    def forward(self, batch):
        scores, wrong = batch.scores, batch.rows[:, None] != batch.columns[None, :]
        logits = self.sharpness * scores
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
        of_images = model.image_vectors(examples.features[images])
        found = learner.loss(paired(model, of_images, texts, images))
        return {**found, "probe": learner.layers["probe"](texts).square().mean()}

    stream = Stream(len(sentences), learner.recipe.batch_size, (seed, 0))
    task = Task(IMAGE_CAPTION, name, stream, terms)
    return Objective([task], uniform_choice([task]), stream.batches_per_epoch)


NEW = {
    "objective": (OneSet, one_set, {"probe_classes": 3}),
    "loss": (Logistic, LogisticLoss, {"sharpness": 5.0}),
    "text_encoder": (PooledText, PooledEncoder, {"pooled_scale": 2.0}),
    "image_head": (StandardizedImage, StandardizedHead, {"standardized_eps": 1e-5}),
}


def probe(recipe):
    return {"probe": nn.Linear(recipe.embed_dim, recipe.probe_classes)}


@pytest.mark.parametrize("parts", [*([part] for part in NEW), [*NEW]], ids="-".join)
def test_a_new_part_trains_saves_and_loads(tmp_path, monkeypatch, parts):
    changes = {"max_epochs": 1, "validate_every_updates": 2}
    for part in parts:
        form, made, keys = NEW[part]
        monkeypatch.setitem(PLACES[part][0], "new", form)
        monkeypatch.setitem(PLACES[part][1], "new", made)
        changes |= {part: "new", **keys}
    monkeypatch.setitem(objectives.LAYERS, "new", probe)
    learner, examples = start(**changes)
    before = named(learner)
    history, _ = fit(learner, examples, no_scores, 1, tmp_path, "")
    tuned = {name for name in before if name.endswith(("weight", "sharpness"))}
    assert tuned <= moved(before, named(learner)) | {"layers.probe.bias"}
    terms = {"loss": ["pull", "push"], "objective": ["probe"]}
    shown = {f"loss_image_caption_{term}" for part in parts for term in terms.get(part, ())}
    assert {"loss_image_caption", *shown} <= history[0].keys()
    if "loss" in parts:
        added = sum(history[0][column] for column in shown)
        assert history[0]["loss_image_caption"] == pytest.approx(added, abs=1e-5)
    learner.space.save(tmp_path / "m", tiny.PREPROCESSING, {})
    loaded = type(learner.space).load(tmp_path / "m")
    assert loaded.architecture == learner.space.architecture
    assert not moved(named(loaded), named(learner.space))


def start(**changes):
    """Return a tiny recipe's learner and examples, some of its parts and keys changed."""
    values = tiny.recipe(caption_caption_probability=0.0)
    form, values = recipes.merge(values.model_dump(), {}, changes)
    learner = tiny.learner(form.model_validate(values))
    return learner, tiny.examples(learner)


def test_a_part_that_nobody_made_is_named():
    with pytest.raises(SettingsError, match=r"no loss is called 'hing'\. Did you mean 'hinge'"):
        recipes.make_recipe(tiny.recipe().model_dump() | {"loss": "hing"})


def test_a_papers_keys_of_another_part_do_not_concern_a_recipe():
    paper = tiny.recipe().model_dump()
    form, values = recipes.merge(paper, {"margin": 0.3, "batch_size": 3}, INFONCE)
    made = form.model_validate(values)
    assert (made.temperature, made.batch_size) == (0.1, 3)
    assert not hasattr(made, "margin")
    form, values = recipes.merge(paper, {}, {**INFONCE, "margin": 0.3})
    with pytest.raises(ValueError, match="margin"):
        form.model_validate(values)


def test_infonce_trains_its_temperature(tmp_path):
    learner, examples = start(**INFONCE, caption_caption_probability=0.5, max_epochs=30)
    scores = ({**no_scores(None), "recall_sum": n} for n in range(100))  # the last weights are best
    history, _ = fit(learner, examples, lambda _: next(scores), 1, tmp_path, "")
    assert learner.loss.log_scale.item() != pytest.approx(-np.log(0.1), abs=1e-3)
    assert history[-1]["loss_image_caption"] < history[0]["loss_image_caption"] / 2
    assert {"loss_image_caption_rows", "loss_caption_caption_columns"} <= history[-1].keys()
