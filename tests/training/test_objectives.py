"""Losses of whole batches against plain loops over captions, images and languages."""

import dataclasses
from itertools import product

import numpy as np
import pandas as pd
import pytest
import tiny
import torch
from tiny_models import (
    GAPS,
    double_loop,
    image,
    moved,
    named,
    no_scores,
    pairs_in,
    prepare,
    prepare_learner,
    sentence,
    summed_hinge,
    without,
)

from pipeline_lib.training import fitting
from pipeline_lib.training.alternating import CAPTION_CAPTION
from pipeline_lib.training.fitting import fit
from pipeline_lib.training.objectives import BUILDERS, build_objective
from pipeline_lib.training.tasks import IMAGE_CAPTION
from pipeline_lib.training.two_branch import PRETRAINING

JOINT = {"hidden_dim": 16, "recurrent_sharing": "per_language", "projection": "shared"}


def tuples_by_loops(corpus):
    """Return image and {language: caption} of each tuple, in the order of the joint objective."""
    rows = {
        language: [
            [row for row in range(len(s)) if s.image_index[row] == i] for i in range(tiny.IMAGES)
        ]
        for (_, language), s in corpus.sentences.items()
    }
    return [
        (i, {name: of[i][k % len(of[i])] for name, of in rows.items() if of[i]})
        for i in range(tiny.IMAGES)
        for k in range(max(len(of[i]) for of in rows.values()))
    ]


def joint_by_loops(model, corpus, items, beta, margin, count="once"):
    """Return Eq. 3 of Calixto et al. 2017, one language or pair of them at a time."""
    batch = [tuples_by_loops(corpus)[item] for item in items]
    languages = [language for _, language in corpus.sentences]
    image_sentence = sentence_sentence = 0.0
    for k in languages:
        there = [(i, rows[k]) for i, rows in batch if k in rows]
        vectors = [sentence(model, corpus, ("tiny", k), row) for _, row in there]
        images = [image(model, corpus, i) for i, _ in there]
        image_sentence += summed_hinge(images, vectors, [i for i, _ in there], margin)
    for k, other in product(languages, languages):
        both = [(i, rows[k], rows[other]) for i, rows in batch if k in rows and other in rows]
        if k < other or (k > other and count == "both_orders"):
            a = [sentence(model, corpus, ("tiny", k), row) for _, row, _ in both]
            b = [sentence(model, corpus, ("tiny", other), row) for _, _, row in both]
            sentence_sentence += summed_hinge(a, b, [i for i, _, _ in both], margin)
    return beta * image_sentence + (1 - beta) * sentence_sentence


@pytest.mark.parametrize("count", ["once", "both_orders"])
@pytest.mark.parametrize("languages", [["en"], ["de", "en"], ["de", "en", "fr"]], ids=len)
@pytest.mark.parametrize("beta", [1.0, 0.75, 0.0])
def test_joint_equals_a_double_loop_over_languages(languages, beta, count):
    """The switch of Calixto et al.'s sentence term did the opposite of its name (audit, §3.4)."""
    changes = {"languages": languages, "beta": beta, "margin": 0.4, "language_pairs": count}
    model, corpus, made = prepare("joint", pairs_in(*languages), **changes)
    items = torch.tensor([0, 1, 3, 4, 9, 11])  # 0 and 1 are of one image
    expected = joint_by_loops(model, corpus, items, beta, 0.4, count)
    assert made.tasks[0].loss(model, items).item() == pytest.approx(expected, rel=1e-4, abs=1e-6)
    assert (expected > 0) == (len(languages) > 1 or beta > 0)


def test_joint_in_both_orders_keeps_the_order_of_sentences():
    """Of two sentences the first language's lies above, in training as in evaluation."""
    rows, losses = torch.tensor([0, 1, 3, 4, 9, 11]), {}
    for count, beta in (("once", 1.0), ("once", 0.5), ("both_orders", 0.5)):
        changes = {"language_pairs": count, "beta": beta, "similarity": "squared_order"}
        model, _, made = prepare("joint", pairs_in("de", "en"), **changes)
        losses[count, beta] = made.tasks[0].loss(model, rows).item()
    of_images = losses["once", 1.0] / 2
    once, twice = (losses[count, 0.5] - of_images for count in ("once", "both_orders"))
    assert once > 0.01
    assert twice == pytest.approx(2 * once, rel=1e-4)


@pytest.mark.parametrize("beta", [1.0, 0.25])
def test_joint_leaves_out_languages_that_an_image_lacks(beta):
    languages = ["en", "de", "fr"]
    model, corpus, made = prepare("joint", GAPS, languages=languages, beta=beta)
    items = torch.arange(2 * tiny.IMAGES)
    expected = joint_by_loops(model, corpus, items, beta, 0.2)
    assert made.tasks[0].loss(model, items).item() == pytest.approx(expected, rel=1e-4)
    lonely = torch.tensor([4, 5])  # both of image 2, so that German has no caption at all
    assert made.tasks[0].loss(model, lonely).item() == 0


def test_joint_of_one_language_is_vse():
    """§2 of Calixto et al. 2017: with K = 1 and beta = 1 it is the loss of Kiros et al. 2014."""
    same = {"languages": ["en"], "violations": "sum", "vocabulary": "per_language", **JOINT}
    pairs = pairs_in("en")
    joint, _, of_joint = prepare("joint", pairs, beta=1.0, **same)
    vse, _, of_vse = prepare("alternating", pairs, caption_caption_probability=0.0, **same)
    assert not moved(named(joint), named(vse))
    for rows in (torch.tensor([0, 3, 5, 8]), torch.arange(12)):
        losses = [made.tasks[0].loss(m, rows) for m, made in ((joint, of_joint), (vse, of_vse))]
        assert losses[0].item() > 0
        torch.testing.assert_close(losses[0], losses[1])


def test_contrast_with_more_terms_than_there_are_is_the_whole_batch():
    rows = torch.arange(12)
    losses = [
        made.tasks[0].loss(model, rows)
        for model, _, made in (prepare("joint", contrastive_terms=n) for n in ("all", 100, 2))
    ]
    assert torch.equal(losses[0], losses[1])
    assert losses[2] < losses[0]


@pytest.mark.parametrize("beta", [1.0, 0.0])
def test_so_many_contrastive_terms_are_drawn_for_images_and_between_languages(beta):
    whole, drawn = (
        prepare("joint", beta=beta, contrastive_terms=terms, margin=0.5) for terms in ("all", 2)
    )
    rows = torch.arange(0, 2 * tiny.IMAGES, 2)  # one caption of each image: five are wrong
    torch.manual_seed(0)
    mean = torch.stack([drawn[2].tasks[0].loss(drawn[0], rows) for _ in range(500)]).mean()
    expected = whole[2].tasks[0].loss(whole[0], rows).item() * 2 / 5
    assert mean.item() == pytest.approx(expected, rel=0.03)


@pytest.mark.parametrize("objective", BUILDERS)
def test_each_seed_has_batches_of_its_own(objective):
    """Rows of two seeds would deviate by their initial weights alone."""
    learner, examples, _ = prepare_learner(objective)
    streams = [build_objective(learner, examples, seed).tasks[0].stream for seed in (1, 2)]
    first = [torch.cat([stream[number] for number in range(6)]).tolist() for stream in streams]
    assert first[0] != first[1]


@pytest.mark.parametrize("objective", ["joint", "two_branch"])
def test_an_epoch_passes_over_all_sets_which_are_chosen_alike_often(objective):
    both = pd.concat([tiny.pairs("a"), tiny.pairs("b")])
    made, one = (prepare(objective, pairs)[2] for pairs in (both, tiny.pairs()))
    assert made.updates_per_epoch == 2 * one.updates_per_epoch
    after = made.updates_before
    chosen = [made.choose(np.random.default_rng(i), after, []) for i in range(400)]
    assert np.bincount(chosen) / 400 == pytest.approx([0.5, 0.5], abs=0.1)


def test_the_history_shows_the_loss_of_one_caption(tmp_path):
    """Caption-caption batches wait for it, whatever the size of a batch."""
    learner, examples, made = prepare_learner(
        "alternating", pairs_in("en"), languages=["en"], caption_caption_probability=0.0,
        learning_rate=1e-30, max_epochs=1, validate_every_updates=1,
    )  # fmt: skip
    task = made.tasks[0]
    rows = task.stream[0]
    expected = task.loss(learner.space, rows).item() / len(rows)
    history, _ = fit(learner, examples, no_scores, 1, tmp_path, "test")
    assert history[0][f"loss_{IMAGE_CAPTION}"] == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("violations", ["max", "sum", 10])
def test_image_caption_equals_a_double_loop(violations):
    model, corpus, made = prepare("alternating", violations=violations, margin=0.4)
    task, key, rows = made.tasks[0], ("tiny", "de"), torch.tensor([0, 1, 2, 6, 11])
    assert (task.kind, task.name) == (IMAGE_CAPTION, "tiny de")
    group = [int(corpus.sentences[key].image_index[row]) for row in rows]
    captions = torch.stack([sentence(model, corpus, key, row) for row in rows])
    images = torch.stack([image(model, corpus, i) for i in group])
    expected = double_loop(images @ captions.T, group, 0.4, violations)
    assert task.loss(model, rows).item() == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("objective", ["alternating", "joint", "mixed", "two_branch"])
def test_images_stand_above_their_captions_in_every_score(objective, monkeypatch):
    """The order similarity is not symmetric: images are the first side (Vendrov et al. 2016)."""
    model, _, made = prepare(objective, pairs_in("en", "de"), similarity="squared_order")
    kinds, scores = [], model.scores
    monkeypatch.setattr(
        model, "image_vectors", lambda features: torch.full((len(features), 16), 2.0)
    )
    monkeypatch.setattr(model, "sentence_vectors", lambda ids, *_: torch.full((len(ids), 16), 1.0))

    def record(a, b):
        kinds.append("".join("image " if side[0, 0] == 2 else "caption " for side in (a, b)))
        return scores(a, b)

    monkeypatch.setattr(model, "scores", record)
    for task in made.tasks:
        if task.kind != PRETRAINING:
            task.loss(model, torch.arange(4))
    assert "image caption " in kinds
    assert set(kinds) <= {"image caption ", "caption caption "}


def test_caption_caption_keeps_each_sentence_with_its_length():
    """The reference sorted the sentences of pairs, but not their lengths (audit, finding 2)."""
    model, corpus, made = prepare("alternating", margin=0.4)
    task, a, b = made.tasks[-1], ("tiny", "de"), ("tiny", "en")
    assert task.kind == CAPTION_CAPTION
    de, en = (corpus.sentences[key] for key in (a, b))
    pairs = [(i, j) for i in range(12) for j in range(12) if de.image_index[i] == en.image_index[j]]
    items = torch.tensor([0, 1, 2, 7, 13, 22])
    chosen = [pairs[item] for item in items]
    assert len({int(de.lengths[i]) - int(en.lengths[j]) for i, j in chosen}) > 1
    left = torch.stack([sentence(model, corpus, a, i) for i, _ in chosen])
    right = torch.stack([sentence(model, corpus, b, j) for _, j in chosen])
    group = [int(de.image_index[i]) for i, _ in chosen]
    expected = double_loop(left @ right.T, group, 0.4, "max")
    assert task.loss(model, items).item() == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("similarity", ["order", "squared_order"])
def test_of_two_sets_the_side_is_by_the_languages_and_not_by_the_names_of_the_sets(similarity):
    """Evaluation knows languages alone (Recipe.compares_turned)."""
    pairs, items = pairs_in("en", "de"), torch.tensor([0, 1, 2, 7, 13, 22])
    keys = {"similarity": similarity, "absolute": True, "margin": 0.4}
    losses = []
    for sets in ({"en": "tiny", "de": "tiny"}, {"en": "a", "de": "b"}):
        model, _, made = prepare(
            "alternating", pairs.assign(set=pairs["language"].map(sets)), **keys
        )
        assert made.tasks[-1].kind == CAPTION_CAPTION
        losses.append(made.tasks[-1].loss(model, items).item())
    assert losses[0] == losses[1] > 0


def test_no_caption_caption_update_before_the_image_loss_was_low(tmp_path):
    """The warm-up of Kádár et al.'s code: 49.0 per batch of 128 (audit, §3.6)."""
    bound = 0.3
    learner, examples, _ = prepare_learner(
        "alternating", caption_caption_below_loss=bound, validate_every_updates=10, max_epochs=12
    )
    history, _ = fit(learner, examples, no_scores, 1, tmp_path, "test")
    image_losses = [row.get(f"loss_{IMAGE_CAPTION}", float("inf")) for row in history]
    first = next(n for n, value in enumerate(image_losses) if value < bound)
    assert first > 0, "the loss is low from the start: the bound holds nothing back"
    paired = [f"loss_{CAPTION_CAPTION}" in row for row in history]
    assert not any(paired[: first + 1])
    assert all(paired[first + 1 : -1])  # the last row has few updates
    assert len(paired) > first + 2


def test_a_short_task_begins_anew_without_the_others(tmp_path, monkeypatch):
    """In mulisera the first language to end began all of them anew (audit, §3.5)."""
    taken = {}

    def recorded(task):
        def terms(model, rows):
            taken.setdefault(task.name, []).append(rows)
            return task.terms(model, rows)

        return dataclasses.replace(task, terms=terms)

    def build(*arguments):
        made = build_objective(*arguments)
        return dataclasses.replace(made, tasks=[recorded(task) for task in made.tasks])

    build_objective = fitting.build_objective
    monkeypatch.setattr(fitting, "build_objective", build)
    few = without(tiny.pairs(), 5, "de", [1])
    for number in range(5):
        few = without(few, number, "de")
    learner, examples, made = prepare_learner(
        "alternating", few, caption_caption_probability=0.0, max_epochs=4
    )
    assert [task.stream.items for task in made.tasks] == [1, 12]
    fit(learner, examples, no_scores, 1, tmp_path, "test")
    assert len(taken["tiny de"]) > 2
    assert len(taken["tiny en"]) >= 3
    assert sorted(torch.cat(taken["tiny en"][:3]).tolist()) == list(range(12))
