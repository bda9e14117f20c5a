"""Retrieval scores on pools whose ranks are known, and on a plain count."""

import json

import numpy as np
import pytest
from refusals import refused

from pipeline_lib.contract.problems import ContractError
from pipeline_lib.evaluation.retrieval.recalls import (
    RetrievalRanks,
    retrieval_ranks,
    summarise,
)

BOOTSTRAP = {"resamples": 1000, "confidence": 0.95, "seed": 0}


def known_ranks():
    """Return 4 images with 2 captions each."""
    return RetrievalRanks(
        np.array([1, 2, 7, 12]), np.array([1, 1, 1, 3, 5, 6, 11, 40]), np.repeat(np.arange(4), 2)
    )


def test_scores_of_known_ranks():
    scores = summarise(known_ranks(), **BOOTSTRAP)
    image, text = scores["image_to_text"], scores["text_to_image"]
    assert [image[k] for k in ("r1", "r5", "r10")] == [25, 50, 75]
    assert [text[k] for k in ("r1", "r5", "r10")] == [37.5, 62.5, 75]
    assert (image["median_rank"], image["mean_rank"]) == (4, 5.5)  # 0-based 1 and 6: floor(3.5) + 1
    assert (text["median_rank"], text["mean_rank"]) == (4, 8.5)
    assert (image["n_queries"], image["n_candidates"]) == (4, 8)
    assert (text["n_queries"], text["n_candidates"]) == (8, 4)
    assert scores["sum_of_recalls"] == 325
    assert scores["mean_recall"] == pytest.approx(325 / 6)


def test_intervals_contain_the_score_and_shrink_with_images():
    def draw(images):
        generator = np.random.default_rng(1)
        ranks = generator.integers(1, 30, images), generator.integers(1, 30, 5 * images)
        return summarise(RetrievalRanks(*ranks, np.repeat(np.arange(images), 5)), **BOOTSTRAP)

    small, large = draw(50), draw(5000)
    for scores in (small, large):
        for part, name in (
            *(
                (scores[d], k)
                for d in ("image_to_text", "text_to_image")
                for k in ("r1", "r5", "r10")
            ),
            (scores, "sum_of_recalls"),
            (scores, "mean_recall"),
        ):
            low, high = part[f"{name}_interval"]
            assert low < part[name] < high
    width = {id(s): np.ptp(s["sum_of_recalls_interval"]) for s in (small, large)}
    assert width[id(small)] / width[id(large)] == pytest.approx(10, rel=0.3)


def test_interval_of_the_sum_respects_that_recalls_move_together():
    """R@1 = R@5 = R@10 in both directions: the sum varies six times as much as one of them."""
    hit = np.where(np.arange(100) < 40, 1, 50)
    scores = summarise(RetrievalRanks(hit, hit, np.arange(100)), **BOOTSTRAP)
    single = np.array(scores["image_to_text"]["r1_interval"])
    np.testing.assert_allclose(scores["sum_of_recalls_interval"], 6 * single)
    np.testing.assert_allclose(scores["mean_recall_interval"], single)


def test_captions_are_drawn_with_their_photos():
    """Five that find the same are no more than one."""
    hit = np.where(np.arange(100) < 40, 1, 50)
    scores = summarise(RetrievalRanks(hit, hit.repeat(5), np.arange(100).repeat(5)), **BOOTSTRAP)
    image, text = (scores[way]["r1_interval"] for way in ("image_to_text", "text_to_image"))
    np.testing.assert_allclose(text, image)


def test_pool_is_joined_by_id_whatever_the_order():
    generator = np.random.default_rng(2)
    images = generator.standard_normal((30, 8))
    ids = [f"world:{i:06d}" for i in generator.permutation(30)]
    index = np.concatenate([np.arange(30), generator.integers(0, 30, 70)])
    captions = images[index] + 1.5 * generator.standard_normal((100, 8))
    caption_ids = [ids[i] for i in index]
    ranks = retrieval_ranks(images, ids, captions, caption_ids)
    order = generator.permutation(30)
    shuffled = retrieval_ranks(images[order], [ids[i] for i in order], captions, caption_ids)
    np.testing.assert_array_equal(shuffled.image_to_text, ranks.image_to_text[order])
    np.testing.assert_array_equal(shuffled.text_to_image, ranks.text_to_image)
    for j, caption in enumerate(captions):
        score = images @ caption
        assert ranks.text_to_image[j] == 1 + (score > score[index[j]]).sum()
    assert ranks.text_to_image.max() > 5


def test_perfect_embeddings_score_100_and_equal_input_gives_equal_json():
    images = np.eye(20, dtype=np.float32)
    ids = [f"flickr:{i}" for i in range(20)]
    arguments = images, ids, images.repeat(5, axis=0), np.repeat(ids, 5)
    scores = summarise(retrieval_ranks(*arguments), **BOOTSTRAP)
    assert scores["sum_of_recalls"] == 600
    assert scores["sum_of_recalls_interval"] == [600, 600]
    assert scores["text_to_image"]["mean_rank"] == 1
    again = summarise(retrieval_ranks(*arguments), **BOOTSTRAP)
    assert json.dumps(scores) == json.dumps(again)


def test_every_problem_of_a_pool_is_listed():
    vectors = np.eye(4)
    with refused(
        "4 problem",
        "one id per caption vector, found 3 for 4",
        "found 4 with 3 distinct",
        "not in the pool: x",
        "without a caption in the pool: c",
    ):
        retrieval_ranks(vectors, ["a", "b", "b", "c"], vectors, ["a", "b", "x"])


def test_an_empty_pool_is_refused():
    nothing = np.empty((0, 4), np.float32)
    with pytest.raises(ContractError, match="found 0 for 0"):
        retrieval_ranks(nothing, [], nothing, [])
