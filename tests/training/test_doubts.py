"""A run that ended and learnt nothing says so."""

import json
from dataclasses import replace

import numpy as np
import pytest
import tiny

from pipeline_lib.contract.recalls import chance_recall_sum
from pipeline_lib.training.batches import Stream
from pipeline_lib.training.doubts import doubts
from pipeline_lib.training.seeds import description


def found(*rows, **changes):
    recipe = tiny.recipe(**changes)
    base = {"recall_sum": 1200.0, "loss_image_caption": 0.1, "loss_caption_caption": 0.1}
    learner = tiny.learner(recipe)
    train, val = (tiny.examples(learner, split) for split in ("train", "val"))
    return doubts([base | row for row in rows], recipe, train, val)


def test_a_run_that_learnt_has_no_doubts():
    assert found({}, {"recall_sum": 900.0}) == []


def test_chance_is_what_random_ranks_give():
    images, positives, random = 50, 3, np.random.default_rng(0)
    owner = np.repeat(np.arange(images), positives)
    sums = []
    for _ in range(400):
        scores = random.random((images, images * positives))
        own = scores[owner, np.arange(len(owner))]
        to_image = 1 + (scores > own).sum(axis=0)
        best = np.where(owner == np.arange(images)[:, None], scores, -1).max(axis=1)
        to_text = 1 + (scores > best[:, None]).sum(axis=1)
        sums.append(sum(100 * (r <= k).mean() for r in (to_image, to_text) for k in (1, 5, 10)))
    chance, deviation = chance_recall_sum(images, images * positives)
    assert chance == pytest.approx(np.mean(sums), abs=4 * np.std(sums) / 20)
    assert np.std(sums) < deviation


def test_a_run_at_chance_level_is_named():
    chance = 2 * chance_recall_sum(tiny.IMAGES, 2 * tiny.IMAGES)[0]
    (said,) = found({"recall_sum": chance}, {"recall_sum": chance - 50})
    assert f"is {chance:.1f} of 1200, where chance gives {chance:.1f}" in said


def test_validations_that_keep_no_weights_tell_nothing_of_chance():
    low = 2 * chance_recall_sum(tiny.IMAGES, 2 * tiny.IMAGES)[0] - 50
    counted = {"recall_sum": low, "epoch": 1.0, "mean_rank": 3.0}
    (said,) = found({"epoch": 0.0}, counted)  # of pre-training
    assert f"is {low:.1f} of 1200, where chance gives" in said
    other = {"epoch": 2.0, "mean_rank": 4.0}
    (said,) = found(counted, other, select_by="mean_rank")
    assert f"is {low:.1f} of 1200, where chance gives" in said
    assert found(counted, other) == []


def test_a_loss_that_stays_at_one_point_is_named():
    (said,) = found({"loss_image_caption": 0.41}, {"loss_image_caption": 0.398})
    assert "never fell below 0.3980; all vectors in one point cost 0.4000" in said
    assert found({"loss_image_caption": 0.41}, {"loss_image_caption": 0.39}) == []
    (said,) = found({"loss_image_caption": 1.2}, violations="sum", batch_size=4)
    assert "in one point cost 1.0909" in said


def test_caption_caption_updates_that_never_began_are_named():
    rows = [{"loss_caption_caption": np.nan}]
    (said,) = found(*rows, caption_caption_below_loss=0.01)
    assert "never began: they wait for a loss below 0.01" in said
    assert found(*rows, caption_caption_probability=0.0) == []


def test_the_doubts_of_all_seeds_stand_in_one_file(tmp_path):
    for seed, more in ((1, {}), (2, {"doubts": ["x"]})):
        (tmp_path / f"seed-{seed}").mkdir()
        model = {"precision": "f32", "ended": "cap", **more}
        (tmp_path / f"seed-{seed}/model.json").write_text(json.dumps(model))
    assert description(tmp_path, [1]) == {"precision": "f32", "ended": {"1": "cap"}}
    assert description(tmp_path, [1, 2]) == {
        "precision": "f32",
        "ended": {"1": "cap", "2": "cap"},
        "doubts": {"2": ["x"]},
    }


def test_photos_too_few_to_tell_learning_from_chance_are_named():
    recipe = tiny.recipe()
    learner = tiny.learner(recipe)
    train, val = (tiny.examples(learner, split) for split in ("train", "val"))
    few = {
        key: replace(
            each,
            token_ids=each.token_ids[each.image_index < 2],
            lengths=each.lengths[each.image_index < 2],
            image_index=each.image_index[each.image_index < 2],
        )
        for key, each in val.sentences.items()
    }
    history = [{"recall_sum": 1200.0, "loss_image_caption": 0.1, "loss_caption_caption": 0.1}]
    (said,) = doubts(history, recipe, train, replace(val, sentences=few))
    assert "too few to tell what was learnt from chance" in said
    assert "of 1200. Give more photos the split val" in said


def test_a_batch_larger_than_the_captions_has_no_more_wrong_ones_than_they_are():
    one_point = 2 * 0.2 * (2 * tiny.IMAGES - 2)
    (said,) = found({"loss_image_caption": one_point}, violations="sum", batch_size=1000)
    assert f"in one point cost {one_point:.4f}" in said


def test_few_wrong_ones_do_not_hide_that_all_vectors_are_in_one_point():
    """Of ten violations that count, a batch of four has three at the most: the others are zero."""
    (said,) = found({"loss_image_caption": 0.3}, violations=10, batch_size=4)
    assert "the space has collapsed" in said
    assert found({"loss_image_caption": 0.2}, violations=10, batch_size=4) == []


def test_the_precision_of_each_seed_is_named_where_they_differ(tmp_path):
    for seed, precision in ((1, "bf16"), (2, "f32")):
        (tmp_path / f"seed-{seed}").mkdir()
        (tmp_path / f"seed-{seed}/model.json").write_text(json.dumps({"precision": precision}))
    assert description(tmp_path, [1, 2]) == {"precision": {"1": "bf16", "2": "f32"}}


def of_languages(recipe):
    return tiny.examples(tiny.learner(recipe), "train").sentences.values()


@pytest.mark.parametrize("batch_size", [5, 7, 10])
def test_a_short_last_batch_does_not_hide_that_all_vectors_are_in_one_point(batch_size):
    """The loss that is kept is the mean over batches, of which one has fewer wrong candidates."""
    recipe = tiny.recipe(violations="sum", batch_size=batch_size)
    [images] = {len(each): each.image_index for each in of_languages(recipe)}.values()
    stream = Stream(len(images), batch_size, (1,))
    assert len({*map(len, (stream[n] for n in range(stream.batches_per_epoch)))}) > 1
    costs = []
    for number in range(200 * stream.batches_per_epoch):
        of = images[stream[number]]
        costs.append(2 * 0.2 * float((of[:, None] != of).sum(dim=1).double().mean()))
    (said,) = found({"loss_image_caption": np.mean(costs)}, violations="sum", batch_size=batch_size)
    assert "in one point" in said
    assert not found({"loss_image_caption": 0.97 * np.mean(costs)}, violations="sum",
                     batch_size=batch_size)  # fmt: skip
