"""The objective whose items are photos with captions of every language, against plain loops."""

import numpy as np
import pandas as pd
import pytest
import tiny
import torch

from pipeline_lib.contract.features import Features
from pipeline_lib.contract.problems import ContractError
from pipeline_lib.contract.reports import RECALL_SUM
from pipeline_lib.evaluation.validation import validation_scores
from pipeline_lib.training.examples import build_examples
from pipeline_lib.training.fitting import fit
from pipeline_lib.training.multiview import Captions, captions_by_language
from pipeline_lib.training.objectives import build_objective


def features_of(images, crops=2):
    vectors = np.random.default_rng(0).normal(size=(images, crops * 10)).astype(np.float32)
    return Features(np.array([f"tiny:{n}" for n in range(images)], object), vectors, {})


def prepare(pairs, seen=tiny.IMAGES, **changes):
    recipe = tiny.polyview(**changes)
    learner = tiny.learner(recipe, captions=pairs, dim=20)
    vocabulary = learner.space.vocabulary
    examples = build_examples(pairs, "train", features_of(seen), vocabulary, recipe)
    return learner, examples, build_objective(learner, examples, 1)


def one_caption_each(languages):
    pairs = tiny.pairs()
    rows = pairs[(pairs["position"] == 0) & (pairs["split"] == "train")]
    number = rows["image_id"].str.removeprefix("tiny:").astype(int)
    return rows[[languages(n, k) for n, k in zip(number, rows["language"], strict=True)]]


def cross_entropy(scores, own, images, candidates):
    """Return the mean of -log p of each query's own candidate, siblings left out, by loops."""
    losses = []
    for query, image in enumerate(images):
        rivals = [
            scores[query, c]
            for c in range(len(candidates))
            if c == own[query] or candidates[c] != image
        ]
        losses.append(torch.logsumexp(torch.stack(rivals), 0) - scores[query, own[query]])
    return torch.stack(losses).mean()


def test_the_loss_is_that_of_each_two_views():
    # Photos 0 to 3 have features; English lacks photo 1, German photo 2; 4 and 5 are text alone.
    pairs = one_caption_each(lambda n, k: (n, k) not in {(1, "en"), (2, "de")})
    learner, examples, objective = prepare(
        pairs, seen=4, batch_size=4, image_dropout=0.0, image_crops=1
    )
    learner.eval()  # standardisation by running statistics, as a plain forward pass has it
    torch.manual_seed(5)
    terms = objective.tasks[0].terms(learner.space, objective.tasks[0].stream[0])
    index = {key[1]: s.image_index.tolist() for key, s in examples.sentences.items()}
    vectors = {
        key[1]: learner.space.sentence_vectors(s.token_ids, s.lengths, key[1])
        for key, s in examples.sentences.items()
    }
    index["image"] = list(range(4))
    vectors["image"] = learner.space.image_vectors(examples.features)
    scale = learner.loss.log_scale.exp()
    expected = 0.0
    for a, b, weight in (("image", "de", 1.0), ("image", "en", 1.0), ("de", "en", 0.5)):
        scores = scale * vectors[a] @ vectors[b].T
        both = sorted(set(index[a]) & set(index[b]))
        for s, x, y in ((scores, a, b), (scores.T, b, a)):
            rows = [index[x].index(photo) for photo in both]
            own = [index[y].index(photo) for photo in both]
            expected += weight * cross_entropy(s[rows], own, both, index[y])
    assert torch.isclose(sum(terms.values()), expected, rtol=1e-5)


def test_photos_without_features_come_last_and_teach_words_alone():
    pairs = one_caption_each(lambda _n, _k: True)
    learner, examples, objective = prepare(pairs, seen=4, batch_size=4)
    assert len(examples.features) == 4
    assert objective.tasks[0].stream.items == 4
    learner.train()
    loss = objective.tasks[0].loss(learner.space, objective.tasks[0].stream[0])
    loss.backward()
    table = learner.space.sentence_encoder.word_table("en").weight.grad.to_dense()
    words = learner.space.vocabulary.word_ids(["en4", "en5"], "en")
    assert (table[torch.from_numpy(words)] != 0).any(dim=1).all()


def test_each_update_reads_some_of_the_text_alone_and_in_time_all(tmp_path):
    pairs = one_caption_each(lambda _n, _k: True)
    learner, _, objective = prepare(pairs, seen=2, batch_size=2, text_photos=2)
    learner.train()
    vocabulary, read = learner.space.vocabulary, []
    for number in range(12):
        torch.manual_seed(number)
        learner.zero_grad()
        objective.tasks[0].loss(learner.space, objective.tasks[0].stream[number]).backward()
        table = learner.space.sentence_encoder.word_table("en").weight.grad.to_dense()
        ids = torch.from_numpy(vocabulary.word_ids([f"en{n}" for n in range(2, 6)], "en"))
        read.append((table[ids] != 0).any(dim=1))
    assert {int(each.sum()) for each in read} == {2}
    assert torch.stack(read).any(dim=0).all()


def test_other_objectives_need_features_of_every_photo():
    pairs, recipe = one_caption_each(lambda _n, _k: True), tiny.recipe("joint")
    vocabulary = tiny.learner(recipe, captions=pairs).space.vocabulary
    with pytest.raises(ContractError, match="2 images have no features"):
        build_examples(pairs, "train", features_of(4, 1), vocabulary, recipe)


def test_captions_of_which_no_photo_has_features_are_refused():
    pairs, recipe = one_caption_each(lambda _n, _k: True), tiny.recipe("multiview")
    vocabulary = tiny.learner(recipe, captions=pairs).space.vocabulary
    with pytest.raises(ContractError, match=r"6 images have no features .*more_features"):
        build_examples(pairs, "train", features_of(0, 1), vocabulary, recipe)


def test_text_alone_is_learnt_from_and_not_validated_on():
    pairs = tiny.pairs("more")
    learner, _, _ = prepare(pairs, seen=4)
    with pytest.raises(ContractError, match=r"found 2 without.*'tiny:4'.*pairs\.more\.validation"):
        build_examples(pairs, "val", features_of(4), learner.space.vocabulary, learner.recipe)


def test_a_photo_is_given_any_of_its_captions_equally_often():
    _, examples, _ = prepare(tiny.pairs())
    captions = captions_by_language(examples)["en"]
    random = np.random.default_rng(0)
    photos = np.array([3, 0])
    drawn = np.stack([captions.by_photo.one_of_each(photos, random) for _ in range(2000)])
    images = captions.sentences.image_index.numpy()
    assert (images[drawn] == photos).all()
    for column in drawn.T:
        counts = np.unique(column, return_counts=True)[1]
        assert len(counts) == 2
        assert abs(counts[0] - 1000) < 100


def test_captions_of_two_sets_are_one_language():
    other = tiny.pairs("other").assign(caption_id=lambda rows: "other/" + rows["caption_id"])
    _, examples, _ = prepare(pd.concat([tiny.pairs(), other]))
    captions = captions_by_language(examples)
    assert sorted(captions) == ["de", "en"]
    assert isinstance(captions["en"], Captions)
    assert captions["en"].by_photo.count.tolist() == [4] * tiny.IMAGES


@pytest.mark.parametrize("precision", ["f32", "f64"])
def test_it_learns(tmp_path, precision):
    learner, examples, _ = prepare(tiny.pairs(), precision=precision, max_epochs=60)
    val = build_examples(
        tiny.pairs(), "val", features_of(6), learner.space.vocabulary, learner.recipe
    )

    def validate(model):
        return validation_scores(model, val, {})

    history = fit(learner, examples, validate, 1, tmp_path, "test").history
    assert history[-1][RECALL_SUM] > history[0][RECALL_SUM]
    assert history[-1][RECALL_SUM] > 1000  # of 1,200 in two languages
