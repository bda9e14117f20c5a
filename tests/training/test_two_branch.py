"""EmbN and MULE: the parts of Eq. 1-4 of Kim et al. 2020, on whole batches."""

from itertools import permutations
from types import SimpleNamespace

import numpy as np
import pytest
import tiny
import torch
from tiny_models import (
    GAPS,
    image,
    moved,
    named,
    no_scores,
    pairs_in,
    prepare,
    prepare_learner,
    sentence,
)
from torch.nn import functional as F

from pipeline_lib.contract.reports import MEAN_RANK, RECALL_SUM
from pipeline_lib.models.similarity import SIMILARITIES, cosine
from pipeline_lib.settings.objectives import TwoBranch
from pipeline_lib.training.batches import ByImage
from pipeline_lib.training.examples import Examples, Sentences
from pipeline_lib.training.fitting import _Fitting, fit
from pipeline_lib.training.two_branch import (
    CLASSIFIER,
    PRETRAINING,
    TWO_BRANCH,
    choose_captions,
    two_branch,
)

ALONE = {name: 0.0 for name in TwoBranch.model_fields if name.endswith("_weight")}
"""No part of the loss counts but the one whose weight a test sets."""


def hinge(own, wrong, candidates, recipe):
    """Return the mean of a query's K worst violations; what is no negative counts as none."""
    terms = [max(0.0, recipe.margin - float(own) + float(score)) for score in wrong]
    terms += [0.0] * (candidates - len(terms))
    return np.mean(sorted(terms, reverse=True)[: recipe.violations])


def neighbourhood(a, b, recipe):
    """Return Eq. 1 for the queries of ``a`` that have a right candidate; the farthest must win."""
    losses = []
    for i, x in a:
        right = [x @ y for j, y in b if j == i and y is not x]
        wrong = [x @ y for j, y in b if j != i]
        if right:
            losses.append(hinge(min(right), wrong, len(b), recipe))
    return np.mean(losses) if losses else 0.0


def matching(images, captions, recipe):
    """Return Eq. 3 in one language with the weights and the third term of the authors' code."""
    to_image, to_caption = [], []
    for i, caption in captions:
        others = [vector @ caption for j, vector in enumerate(images) if j != i]
        to_image.append(hinge(images[i] @ caption, others, len(images), recipe))
        others = [images[i] @ vector for j, vector in captions if j != i]
        to_caption.append(hinge(images[i] @ caption, others, len(captions), recipe))
    return (
        recipe.caption_image_weight * np.mean(to_image)
        + recipe.image_caption_weight * np.mean(to_caption)
        + recipe.same_language_weight * neighbourhood(captions, captions, recipe)
    )


def between_languages(sides, recipe):
    """Return Eq. 1, averaged over ordered pairs of languages."""
    pairs = list(permutations(sides, 2))
    return np.mean([neighbourhood(a, b, recipe) for a, b in pairs]) if pairs else 0.0


def averaged_words(model, of, row, language):
    """Return the unit mean of a caption's universal word vectors."""
    words = model.sentence_encoder.embed(of.token_ids[row, : of.lengths[row]], language)
    return F.normalize(words.mean(dim=0), dim=0)


def by_loops(learner, corpus, batch):
    """Return the loss of all captions of some images, one query and candidate at a time."""
    recipe, model = learner.recipe, learner.space
    images = [image(model, corpus, i) for i in batch]
    losses, sentences, averages = [], [], []
    for key, of in corpus.sentences.items():
        rows = [r for r in range(len(of)) if of.image_index[r] in batch]
        at = [batch.index(of.image_index[r]) for r in rows]
        captions = [(i, sentence(model, corpus, key, r)) for i, r in zip(at, rows, strict=True)]
        words = [
            model.sentence_encoder.embed(of.token_ids[r, : of.lengths[r]], key[1]) for r in rows
        ]
        if rows:
            losses.append(matching(images, captions, recipe))
            sentences.append(captions)
            means = [F.normalize(vectors.mean(dim=0), dim=0) for vectors in words]
            averages.append(list(zip(at, means, strict=True)))
    return (
        np.mean(losses)
        + recipe.sentence_neighbourhood_weight * between_languages(sentences, recipe)
        + recipe.word_neighbourhood_weight * between_languages(averages, recipe)
    )


@pytest.mark.parametrize("violations", [2, 10, 100])
@pytest.mark.parametrize("batch", [[0, 1, 2, 3], [2, 5], [4, 3, 0, 1, 2, 5]], ids=len)
def test_the_loss_equals_plain_loops_also_where_captions_are_missing(violations, batch):
    weights = {"classifier_weight": 0.0, "anchor_weight": 0.0, "same_language_weight": 0.7}
    languages = {"languages": ["de", "en", "fr"]}
    learner, examples, made = prepare_learner(
        "two_branch", GAPS, violations=violations, margin=0.3, **languages, **weights
    )
    with torch.no_grad():
        found = made.tasks[0].loss(learner.space, torch.tensor(batch)).item()
        assert found == pytest.approx(by_loops(learner, examples, batch), rel=1e-4)


@pytest.mark.parametrize("similarity", ["cosine", "euclidean", "order", "squared_order"])
def test_sentences_of_two_languages_are_compared_as_the_recipe_says(similarity):
    """German lies above English, both ways; averaged words are in no order."""
    weights = ALONE | {"sentence_neighbourhood_weight": 1.0, "word_neighbourhood_weight": 0.5}
    ordered = "order" in similarity
    learner, corpus, made = prepare_learner(
        "two_branch", margin=0.3, similarity=similarity, absolute=ordered, **weights
    )
    recipe, batch = learner.recipe, [0, 1, 2, 3]
    sides, averages = {}, {}
    for key, of in corpus.sentences.items():
        rows = [row for row in range(len(of)) if of.image_index[row] in batch]
        at = [int(of.image_index[row]) for row in rows]
        sides[key[1]] = at, [sentence(learner.space, corpus, key, row) for row in rows]
        averages[key[1]] = at, [averaged_words(learner.space, of, row, key[1]) for row in rows]
    with torch.no_grad():
        found = made.tasks[0].loss(learner.space, torch.tensor(batch)).item()
        own = SIMILARITIES[similarity]
        expected = both_ways(sides, own, recipe)
        expected += 0.5 * both_ways(averages, cosine if ordered else own, recipe)
    assert found == pytest.approx(expected, rel=1e-4)


def both_ways(sides, similarity, recipe):
    """Return Eq. 1 of two languages by loops over a matrix whose rows are the upper one's."""
    (upper, a), (lower, b) = sides["de"], sides["en"]
    scores, losses = similarity(torch.stack(a), torch.stack(b)).tolist(), []
    for table, rows, columns in (
        (scores, upper, lower),
        ([*zip(*scores, strict=True)], lower, upper),
    ):
        for i, line in zip(rows, table, strict=True):
            right = [score for j, score in zip(columns, line, strict=True) if j == i]
            wrong = [score for j, score in zip(columns, line, strict=True) if j != i]
            losses.append((len(rows), hinge(min(right), wrong, len(columns), recipe)))
    return sum(loss / queries for queries, loss in losses) / 2


def test_a_batch_by_hand():
    """Two images, their English captions at cosines .8 and .6, their German ones on the spot.

    English: the wrong one violates the margin of .3 by .1, both ways; of K = 10 there are two
    candidates, the right one counting 0: .05. Weighted (1.5 + 1) * .05 = .125; German costs
    nothing; mean .0625. Between the languages the same .05 in both directions, .05 on average.
    """
    vectors = torch.tensor([[0.8, 0.6], [0.6, 0.8], [1, 0], [0, 1]])
    one, index = torch.ones(2, dtype=torch.int64), torch.arange(2)
    examples = Examples(
        features=torch.eye(2),
        sentences={
            ("s", "en"): Sentences(torch.tensor([[0], [1]]), one, index),
            ("s", "de"): Sentences(torch.tensor([[2], [3]]), one, index),
        },
    )
    model = SimpleNamespace(
        architecture=SimpleNamespace(precision="f32"),
        image_vectors=lambda features: features,
        sentence_vectors_of_all=lambda sentences: {
            language: vectors[ids[:, 0]] for language, (ids, _) in sentences.items()
        },
        scores=cosine,
        sentence_encoder=SimpleNamespace(words={}),
    )
    weights = {"word_neighbourhood_weight": 0.0, "classifier_weight": 0.0, "anchor_weight": 0.0}
    recipe = tiny.recipe("two_branch", margin=0.3, **weights)
    learner = SimpleNamespace(recipe=recipe, space=model)
    loss = two_branch(learner, examples, 1).tasks[0].loss
    assert loss(model, torch.tensor([0, 1])).item() == pytest.approx(0.1125)


def test_captions_of_an_image_are_drawn_uniformly():
    one = torch.ones(10, dtype=torch.int64)
    sentences = Sentences(torch.arange(10)[:, None], one, torch.arange(2).repeat_interleave(5))
    by_image = ByImage(sentences.image_index.numpy(), 2)
    drawn = [
        choose_captions(sentences, by_image, torch.tensor([1, 0]), 2).token_ids for _ in range(500)
    ]
    shares = torch.cat(drawn).flatten().bincount(minlength=10) / 500
    assert shares.tolist() == pytest.approx([2 / 5] * 10, abs=0.1)


def test_averaged_words_leave_pads_out():
    """MULE's code averages over pads too, whose bias then counts (audit, §3.7)."""
    model, corpus, _ = prepare("two_branch")
    of = corpus.sentences["tiny", "en"]
    with torch.no_grad():
        model.sentence_encoder.universal_maps["en"].bias.fill_(3.0)
    padded = F.pad(of.token_ids, (0, 5))
    found = model.sentence_encoder.average(padded, of.lengths, "en")
    for row, length in enumerate(of.lengths):
        alone = model.sentence_encoder.embed(of.token_ids[row, :length], "en").mean(dim=0)
        torch.testing.assert_close(found[row], alone)


def test_a_caption_without_known_word_is_a_vector_of_its_own():
    """In MULE's code it has length 0, and takes the state before its first word (audit, §3.7)."""
    model, _, _ = prepare("two_branch", markers="none", oov="drop")
    ids, lengths = model.vocabulary.encode_all([["unheard"], ["en1", "in"]], "en")
    ids, lengths = torch.from_numpy(ids).long(), torch.from_numpy(lengths).long()
    both = model.sentence_vectors(ids, lengths, "en")
    assert torch.equal(lengths, torch.tensor([1, 2]))
    torch.testing.assert_close(both[0], model.sentence_vectors(ids[:1, :1], lengths[:1], "en")[0])
    assert torch.isfinite(model.sentence_encoder.average(ids, lengths, "en")).all()


@pytest.mark.parametrize("weight", [1e-6, 1e-3, 1.0])
def test_the_shared_layer_sees_the_classifiers_weight_once(weight):
    """MULE's adversary was multiplied by its weight twice, 1e-12 for 1e-6 (audit, finding 4)."""
    learner, corpus, made = prepare_learner("two_branch", **ALONE | {"classifier_weight": weight})
    model, classifier = learner.space, learner.layers[CLASSIFIER]
    made.tasks[0].loss(model, torch.arange(tiny.IMAGES)).backward()
    shared = model.sentence_encoder.universal_maps
    found = {name: p.grad.clone() for name, p in shared.named_parameters()}
    of_classifier = classifier.weight.grad.clone()
    learner.zero_grad()
    vectors, labels = [], []
    for (_, language), of in corpus.sentences.items():
        average = model.sentence_encoder.average(of.token_ids, of.lengths, language)
        vectors.append(F.normalize(average, dim=1))
        labels += [learner.recipe.languages.index(language)] * len(of)
    F.cross_entropy(classifier(torch.cat(vectors)), torch.tensor(labels)).backward()
    for name, p in shared.named_parameters():
        torch.testing.assert_close(found[name], -weight * p.grad, rtol=1e-3, atol=weight * 1e-6)
        assert p.grad.abs().max() > 1e-4
    plain = classifier.weight.grad
    torch.testing.assert_close(of_classifier, weight * plain, rtol=1e-3, atol=weight * 1e-6)


def test_nothing_counts_but_what_has_a_weight():
    """MULE's code made L2 penalties that never reached its loss (finding 4): there are none."""
    model, _, made = prepare("two_branch", **ALONE)
    loss = made.tasks[0].loss(model, torch.arange(tiny.IMAGES))
    loss.backward()
    assert loss.item() == 0
    assert not any(p.grad.any() for p in model.parameters() if p.grad is not None)


def test_words_are_anchored_to_their_first_vectors():
    """MULE's code renewed the anchor in each epoch, so that it never held (audit, §3.7)."""
    model, _, made = prepare("two_branch", **ALONE | {"anchor_weight": 2.0})
    words = [table.weight for table in model.sentence_encoder.words.values()]
    count = np.mean([weight.numel() for weight in words])
    for shift in (0.0, 0.1, 0.2):
        loss = made.tasks[0].loss(model, torch.arange(tiny.IMAGES)).item()
        assert loss == pytest.approx(2.0 * count * shift**2 / 2, rel=1e-4)
        with torch.no_grad():
            for weight in words:
                weight += 0.1


def test_a_resumed_run_is_anchored_to_the_first_vectors_too(tmp_path):
    def run(folder, last=99):
        learner, examples, _ = prepare_learner(
            "two_branch", anchor_weight=0.5, validate_every_updates=2, max_epochs=3
        )

        def validate(model):
            seen.append(named(model))
            if len(seen) == last:
                raise KeyboardInterrupt
            return no_scores(model)

        seen = []
        fit(learner, examples, validate, 1, folder, "test")
        return seen

    whole = run(tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "killed", last=3)
    resumed = run(tmp_path / "killed")
    assert (len(whole), len(resumed)) == (6, 4)
    assert not moved(whole[-1], resumed[-1])


@pytest.mark.parametrize(
    ("captions", "updates"),
    [({"en": 5, "fr": 1}, 29_000 * 5 // 450), ({"fr": 1, "cs": 1}, 29_000 // 450)],
    ids=["five English captions for each French one", "one each"],
)
def test_an_epoch_is_as_long_as_the_language_with_the_most_captions(captions, updates):
    """Multi30k with English has 322 updates of 450 images, as in MULE's code (audit, §3.7)."""
    images = torch.arange(29_000)
    sentences = {
        ("m30k", language): Sentences(
            torch.zeros(29_000 * n, 1, dtype=torch.int64),
            torch.ones(29_000 * n, dtype=torch.int64),
            images.repeat_interleave(n),
        )
        for language, n in captions.items()
    }
    examples = Examples(features=torch.zeros(29_000, 1), sentences=sentences)
    recipe = tiny.recipe("two_branch", batch_size=450, pretraining_epochs=5)
    model = SimpleNamespace(sentence_encoder=SimpleNamespace(words={}))
    made = two_branch(SimpleNamespace(recipe=recipe, space=model), examples, 1)
    assert made.updates_per_epoch == updates
    assert made.updates_before == 5 * updates


def test_pretraining_tunes_the_universal_layers_only(tmp_path):
    changes = {"pretraining_epochs": 4, "validate_every_updates": 4}
    learner, examples, made = prepare_learner("two_branch", **changes)
    model = learner.space
    seen = [named(model)]

    def validate(model):
        seen.append(named(model))
        return no_scores(model)

    assert made.updates_before == 12
    fit(learner, examples, validate, 1, tmp_path, "test")
    maps = {
        f"sentence_encoder.universal_maps.{language}.{part}"
        for language in ("en", "de")
        for part in ("weight", "bias")
    }
    assert moved(seen[0], seen[3]) == maps
    assert moved(seen[3], seen[-1]) == {name for name, p in model.named_parameters()}
    assert all(p.requires_grad for p in model.parameters())


@pytest.mark.parametrize("schedule", ["steps", "stall"])
def test_validations_of_pretraining_neither_count_nor_are_kept(tmp_path, schedule):
    """Photos are not learnt yet: their scores are chance, and may be high or stall."""
    keys = {"decay_epochs": None, "decays": 1} if schedule == "stall" else {}
    learner, examples, made = prepare_learner(
        "two_branch",
        pretraining_epochs=4,
        validate_every_updates="epoch",
        max_epochs=3,
        patience_validations=2,
        schedule=schedule,
        **keys,
    )
    scores, seen = iter([99, 98, 97, 96, 10, 12, 11]), []

    def validate(model):
        seen.append(named(model))
        score = next(scores)
        return {RECALL_SUM: score, MEAN_RANK: score}

    course = fit(learner, examples, validate, 1, tmp_path, "test")
    assert made.updates_before == 4 * made.updates_per_epoch
    assert (len(course.history), course.ended) == (7, "cap")
    assert not moved(seen[5], named(learner.space))


def test_pretraining_has_the_whole_rate_and_the_schedule_begins_after_it():
    keys = {"decay_epochs": None, "decay_factor": None, "warmup_epochs": 1.0, "max_epochs": 3}
    learner, _, made = prepare_learner(
        "two_branch", pretraining_epochs=4, schedule="cosine", **keys
    )
    rate = _Fitting(learner, made, None, 1).pace.learning_rate
    assert [rate(n, 0) for n in range(made.updates_before)] == [0.01] * made.updates_before
    assert rate(made.updates_before, 0) == pytest.approx(0.01 * 0.01 / 1.01)


def test_pretraining_ends_where_the_schedule_begins():
    _, _, made = prepare("two_branch", pretraining_epochs=2)

    def kind(update):
        return made.tasks[made.choose(np.random.default_rng(0), update, [])].kind

    assert [kind(made.updates_before - n) for n in (1, 0)] == [PRETRAINING, TWO_BRANCH]


def test_pretraining_passes_over_a_batch_in_one_language():
    pairs = pairs_in("en", "de")
    some = pairs[(pairs["language"] == "en") | (pairs["image_id"] == "tiny:0")]
    model, _, made = prepare("two_branch", some, pretraining_epochs=1)
    (task,) = (task for task in made.tasks if task.kind == PRETRAINING)
    loss = task.loss(model, torch.tensor([3, 4, 5]))
    loss.backward()
    assert loss == 0
    gradients = [each.grad for each in model.parameters() if each.grad is not None]
    assert all(torch.isfinite(each).all() for each in gradients)


def test_an_epoch_may_leave_one_image_to_its_last_batch(tmp_path):
    learner, examples, _ = prepare_learner("two_branch", batch_size=tiny.IMAGES - 1, max_epochs=1)
    course = fit(learner, examples, no_scores, 1, tmp_path, "test")
    updates = 2 * 2  # batches of each of two sets
    assert (course.ended, course.history[-1]["update"]) == ("cap", updates)
