"""Every recipe of every study builds and trains two updates of each of its tasks."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
import tiny
from graph import ROOT, read_yaml
from tiny_models import moved, named

from pipeline_lib.contract.features import Features
from pipeline_lib.contract.reports import MEAN_RANK, RECALL_SUM
from pipeline_lib.settings.loading import load_settings
from pipeline_lib.settings.recipes import make_recipe
from pipeline_lib.training import fitting
from pipeline_lib.training.examples import build_examples, build_vocabulary
from pipeline_lib.training.preparation import initial_vocabulary, start_learner

STUDIES = [ROOT, *(path.parent for path in sorted(ROOT.glob("studies/*/params.yaml")))]
IMAGES, FEATURE_DIM, UPDATES = 6, 20, 2
SIZES = ("word_dim", "universal_dim", "hidden_dim", "image_hidden_dim", "embed_dim")


@pytest.mark.parametrize("folder", STUDIES, ids=lambda path: path.name)
def test_every_recipe_trains(folder, tmp_path, monkeypatch, subtests):
    settings = load_settings(folder / "params.yaml")
    written = read_yaml(folder / "params.yaml")
    ran = []
    for name in settings.recipes:
        with subtests.test(recipe=name):
            recipe = shrunken(settings.recipe(name))
            teachers = tmp_path / name / "teachers"
            if recipe.initial != "none":
                save_teacher(settings, recipe.initial, teachers)
            train(recipe, caption_sets(settings, recipe), teachers, tmp_path / name, monkeypatch)
            ran.append(name)
    assert len(ran) == len(written["recipes"]) > 0


def test_all_studies_are_here():
    assert {path.name for path in STUDIES[1:]} == {"coco", "flickr8k", "multi30k"}


def shrunken(recipe):
    """Return the recipe with a sixteenth of its sizes, aligning at each update if at all."""
    values = recipe.model_dump()
    values |= {key: shrink(values[key]) for key in SIZES if values.get(key, "none") != "none"}
    if "image_hidden_dims" in values:
        values["image_hidden_dims"] = [shrink(size) for size in recipe.image_hidden_dims]
    values |= {"max_epochs": 1, "patience_validations": 1, "validate_every_updates": "epoch"}
    if values.get("alignment_every_updates", "never") != "never":
        values |= {"alignment_every_updates": 1, "alignment_learning_rate": 0.01}
    return make_recipe(values)


def shrink(size):
    return max(4, size // 16)


def caption_sets(settings, recipe):
    """Follow the recipe's pair set: return the name, languages and images of each set."""
    found, name = [], recipe.pairs
    while name != "none":
        if name in settings.pairs:
            chosen = settings.pairs[name]
            dataset = chosen.dataset
            while dataset in settings.translations:
                dataset = settings.translations[dataset].dataset
            found.append((name, set(chosen.captions), dataset))
        else:
            chosen = settings.pseudopairs[name]
            images = settings.pairs[chosen.images_of.pairs].dataset
            found.append((name, {chosen.captions_of.language}, images))
        name = chosen.plus
    return [
        (name, sorted(languages & {*recipe.languages}), dataset)
        for name, languages, dataset in found
    ]


def captions(sets):
    """Return two captions per image, language and set; every word occurs four times or more."""
    rows = [
        {
            "caption_id": f"{split}/{name}/{number}/{language}/{position}",
            "image_id": f"{dataset}:{number}",
            "dataset": dataset,
            "split": split,
            "language": language,
            "position": position,
            "tokens": [f"{language}{number % 3}", f"{language}-{position}"][:: (-1) ** number],
            "set": name,
        }
        for name, languages, dataset in sets
        for split in ("train", "val")
        for number in range(IMAGES)
        for language in languages
        for position in range(2)
    ]
    return pd.DataFrame(rows)


def features(pairs):
    ids = pairs["image_id"].unique()
    vectors = np.random.default_rng(0).random((len(ids), FEATURE_DIM), np.float32)
    return Features(ids, vectors, {})


def lexicon(recipe):
    """Return translations of the words that name an image."""
    return pd.DataFrame(
        [
            {
                "source_language": recipe.languages[0],
                "target_language": language,
                "source_word": f"{recipe.languages[0]}{number}",
                "target_word": f"{language}{number}",
                "fold": "train",
                "protocol": recipe.lexicon_protocol,
            }
            for language in recipe.languages[1:]
            for number in range(3)
        ]
    )


def word_vectors(recipe):
    """Return random vectors of some words of each language, or none where the recipe draws them."""
    if recipe.word_vectors == "random":
        return {}
    random = np.random.default_rng(1)
    return {
        language: (
            [f"{language}{number}" for number in range(3)],
            random.normal(size=(3, recipe.word_dim)).astype(np.float32),
        )
        for language in recipe.languages
    }


def save_teacher(settings, name, folder):
    """Save an untrained model of the recipe that another one continues."""
    recipe = shrunken(settings.recipe(name))
    words = captions(caption_sets(settings, recipe))
    tiny.space(recipe, captions=words, dim=FEATURE_DIM).save(
        folder / "seed-1", tiny.PREPROCESSING, {}
    )


def train(recipe, sets, teachers, folder, monkeypatch):
    """Train two updates of each task by the real loop and look at what they changed."""
    pairs = captions(sets)
    vocabulary = initial_vocabulary(recipe, teachers, 1) or build_vocabulary(pairs, recipe)
    words = lexicon(recipe) if recipe.lexicon != "none" else None
    corpus = build_examples(pairs, "train", features(pairs), vocabulary, recipe, words)
    learner = start_learner(recipe, vocabulary, FEATURE_DIM, 1, word_vectors(recipe), teachers)
    kinds = task_kinds(recipe)

    def build(*arguments):
        made = build_objective(*arguments)
        tasks = [task for task in made.tasks if task.kind in kinds]
        started.update(named(learner))  # an objective may set the maps between languages
        return dataclasses.replace(
            made,
            tasks=tasks,
            choose=lambda random, update, history: update // UPDATES,
            updates_per_epoch=UPDATES * len(tasks),
            updates_before=0,
        )

    started, build_objective = {}, fitting.build_objective
    with monkeypatch.context() as patch:
        patch.setattr(fitting, "build_objective", build)
        scores = {RECALL_SUM: 0.0, MEAN_RANK: 0.0}
        [row], _ = fitting.fit(learner, corpus, lambda _: dict(scores), 1, folder, recipe.paper)
    assert np.isfinite([row[f"loss_{kind}"] for kind in kinds]).all()
    assert moved(started, named(learner)) == {name for name in started if tuned(name, recipe)}


def task_kinds(recipe):
    """Return the kinds of task that the recipe's numbers ask for; each must be there."""
    if recipe.objective == "two_branch":
        return {"two_branch", "pretraining"} if recipe.pretraining_epochs else {"two_branch"}
    if recipe.objective in ("joint", "multiview"):
        return {recipe.objective}
    paired = recipe.objective == "alternating" and recipe.caption_caption_probability
    return {"image_caption", "caption_caption"} if paired else {"image_caption"}


def tuned(name, recipe):
    """Return whether training is to change a weight."""
    if ".words." in name:
        return recipe.tune_words
    if ".rotations." in name:
        return recipe.alignment_every_updates != "never"
    return True
