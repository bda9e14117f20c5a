import json
import random
from collections import Counter

import numpy as np
import pandas as pd
import pytest

from pipeline_lib.contract.facts import Facts, read_facts, write_no_facts
from pipeline_lib.contract.problems import ContractError
from pipeline_lib.corpora.world.messages import sample_message
from pipeline_lib.corpora.world.scenes import facts as facts_of
from pipeline_lib.corpora.world.scenes import sample_scene
from pipeline_lib.corpora.world.similarity import similarity
from pipeline_lib.synthesis import pseudopair_analysis
from pipeline_lib.synthesis.matching import Matches
from pipeline_lib.synthesis.pseudopair_analysis import (
    agreement,
    known_truth,
    overlap,
    reuse,
    similarities,
)


def matches(borrowing, lent, cosines=None):
    cosines = np.ones(len(lent), np.float32) if cosines is None else np.array(cosines)
    return Matches(np.array(borrowing), np.array(lent), cosines, cosines)


def test_reuse_is_what_counting_gives():
    lent = np.random.default_rng(0).zipf(1.5, 5000) % 700
    found, counts = reuse(lent, 1000), Counter(lent.tolist())
    assert found["captions_lent_from"] == 1000
    assert found["share_of_captions_used"] == round(len(counts) / 1000, 4)
    most = sum(count for _, count in counts.most_common(150))
    assert found["share_of_150_most_used"] == round(most / 5000, 4)
    assert found["most_uses"] == max(counts.values())
    uses = [counts[caption] for caption in range(1000)]
    for label, captions in found["captions_by_uses"].items():
        low, _, high = label.partition("-")
        assert captions == sum(int(low) <= count <= int(high or low) for count in uses)
    assert sum(found["captions_by_uses"].values()) == 1000


def test_classes_of_reuse_end_at_powers_of_two():
    found = reuse(np.repeat([0, 1, 2, 3], [1, 2, 4, 5]), 6)
    assert found["captions_by_uses"] == {"0": 2, "1": 1, "2": 1, "3-4": 1, "5-8": 1}
    assert found["share_of_150_most_used"] == 1.0


def test_similarities_count_who_borrows():
    found = similarities(matches([0, 2, 3], [1, 1, 1], [0.2, 0.4, 0.9]), 6)
    assert found == {
        "pairs": 3,
        "share_of_captions_that_borrow": 0.5,
        "mean_cosine": 0.5,
        "cosine_quartiles": pytest.approx([0.3, 0.4, 0.65]),
    }


def placed(pairs):
    images, captions = zip(*pairs, strict=True)
    return pd.DataFrame({"image_id": images, "source_caption_id": captions})


def test_overlap_of_captions_and_of_their_places():
    first = placed([("i", "a"), ("j", "b"), ("k", "b"), ("k", "c")])
    second = placed([("i", "a"), ("j", "b"), ("i", "b"), ("k", "d"), ("j", "b")])
    assert overlap(first, second) == {"jaccard_of_captions": 0.5, "jaccard_of_placements": 0.5}
    assert overlap(first, first) == {"jaccard_of_captions": 1.0, "jaccard_of_placements": 1.0}
    assert overlap(first, placed([("i", "z")])) == {
        "jaccard_of_captions": 0.0,
        "jaccard_of_placements": 0.0,
    }
    assert overlap(first, first[:0]) == {}


def world(name, scenes, seed):
    """Return captions of drawn scenes, two each, their facts, and what they tell."""
    draw = random.Random(seed)
    rows, facts, messages = [], Facts({}, {}), []
    for number in range(scenes):
        scene = sample_scene(draw)
        facts.images[f"{name}:{number}"] = facts_of(scene)
        for position in range(2):
            messages.append(sample_message(scene, draw))
            caption = f"{name}/{number}/en/caption/{position}"
            facts.captions[caption] = facts_of(messages[-1])
            rows.append({"caption_id": caption, "image_id": f"{name}:{number}"})
    return pd.DataFrame(rows), facts, messages


def test_agreement_is_the_worlds_own_similarity(monkeypatch):
    monkeypatch.setattr(pseudopair_analysis, "_BLOCK", 7)
    borrowing, facts, told = world("photos", 30, 1)
    lent, lent_facts, also_told = world("drawings", 40, 2)
    rows, chosen = np.arange(3, 60, 2), np.random.default_rng(0).integers(0, 80, 29)
    found = agreement(known_truth(borrowing, lent, facts, lent_facts), matches(rows, chosen))
    whole = np.array([[similarity(told[i], other) / 5 for other in also_told] for i in rows])
    true = np.array(
        [
            [
                len(facts_of(other) & facts.images[borrowing["image_id"][i]]) / len(facts_of(other))
                for other in also_told
            ]
            for i in rows
        ]
    )
    places = np.arange(29), chosen
    expected = {
        "similarity": whole[places].mean(),
        "similarity_of_best": whole.max(axis=1).mean(),
        "similarity_by_chance": whole.mean(),
        "true_of_image": true[places].mean(),
        "true_of_image_by_chance": true.mean(),
    }
    assert found == {name: pytest.approx(value, abs=1e-4) for name, value in expected.items()}


def test_agreement_of_a_caption_with_itself_is_one():
    captions, facts, _ = world("photos", 30, 1)
    truth = known_truth(captions, captions, facts, facts)
    found = agreement(truth, matches(range(60), range(60)))
    assert found["similarity"] == found["similarity_of_best"] == found["true_of_image"] == 1


def test_unknown_truth_says_nothing():
    captions, facts, _ = world("photos", 3, 1)
    truth = known_truth(captions, captions, facts, Facts({}, {}))
    assert agreement(truth, matches([0], [1])) == {}


def test_facts_of_another_data_set_are_refused():
    captions, facts, _ = world("photos", 3, 1)
    _, other, _ = world("drawings", 3, 1)
    with pytest.raises(ContractError) as error:
        known_truth(captions, captions, other, facts)
    for part in ("6 of 6 borrowing captions", "6 of 6 their images", "photos/0/en/caption/0"):
        assert part in str(error.value)
    assert "lent captions" not in str(error.value)


def test_truth_is_read_as_a_world_writes_it(tmp_path):
    line = {
        "image": "000017.jpg",
        "split": "train",
        "facts": [["dog", "colour", "brown"], ["scene", "place", "beach"]],
        "captions": {"de/caption/3": [["dog", "colour", "brown"]]},
    }
    (tmp_path / "truth.jsonl").write_text(json.dumps(line) + "\n", encoding="utf-8")
    found = read_facts(tmp_path / "truth.jsonl", "world")
    assert found.captions == {"world/000017/de/caption/3": {("dog", "colour", "brown")}}
    assert len(found.images["world:000017"]) == 2
    write_no_facts(tmp_path / "none.jsonl")
    assert read_facts(tmp_path / "none.jsonl", "world") == Facts({}, {})
    (tmp_path / "truth.jsonl").write_text('{"image": "a.jpg"}\n', encoding="utf-8")
    with pytest.raises(ContractError, match=r"truth\.jsonl:1: expected an object"):
        read_facts(tmp_path / "truth.jsonl", "world")
