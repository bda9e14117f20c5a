import json
from itertools import product
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import tiny
import torch
from lone_stage import run_stage
from pydantic import ValidationError

from pipeline_lib.contract.problems import ContractError
from pipeline_lib.contract.tables import empty_pairs, pairs_of_seed, read_pairs, write_pairs
from pipeline_lib.settings.pseudopairs import Pseudopairs, Side
from pipeline_lib.synthesis import neighbours
from pipeline_lib.synthesis.matching import RETRIEVALS, Matches
from pipeline_lib.synthesis.pseudopair_analysis import overlap
from pipeline_lib.synthesis.pseudopairs import (
    borrow,
    keep_best,
    match_captions,
    training_captions,
)
from pipeline_lib.training.batches import sentence_pairs
from pipeline_lib.training.examples import build_examples, build_vocabulary
from stages import pseudopairs as stage

SETTINGS = {
    "teacher": "teacher",
    "seeds": [1],
    "images_of": {"pairs": "photos", "language": "en", "facts": "data/facts/none.jsonl"},
    "captions_of": {"pairs": "drawings", "language": "de", "facts": "data/facts/none.jsonl"},
    "retrieval": {"rule": "nearest"},
    "filter": "none",
    "plus": "none",
    "compare_with": "none",
}


@pytest.fixture(autouse=True)
def small_tiles(monkeypatch):
    for name, value in {"_ROWS": 16, "_COLUMNS": 64, "_GROUP": 2, "_QUERIES": 50}.items():
        monkeypatch.setattr(neighbours, name, value)


def settings(**changes):
    return Pseudopairs(**(SETTINGS | changes))


def captions(set_name, language, images=6, per_image=2, texts=("Ein grüner Fuß", "Zwei Straßen")):
    rows = [
        {
            "caption_id": f"{set_name}/{image}/{language}/caption/{position}",
            "image_id": f"{set_name}:{image}",
            "dataset": set_name,
            "split": split,
            "language": language,
            "annotation": "caption",
            "position": position,
            "text": f"{texts[position % len(texts)]} {image}",
            "tokens": [*texts[position % len(texts)].lower().split(), str(image)],
            "source_caption_id": None,
            "set": set_name,
            "seed": None,
        }
        for split, first in (("train", 0), ("val", 100))
        for image in range(first, first + images)
        for position in range(per_image)
    ]
    return pd.DataFrame(rows)


def sides():
    tables = captions("photos", "en"), captions("drawings", "de", images=8)
    chosen = settings()
    return [
        training_captions(table, side)
        for table, side in zip(tables, (chosen.images_of, chosen.captions_of), strict=True)
    ]


def matches(borrowing, lent, scores=None):
    scores = np.ones(len(lent), np.float32) if scores is None else np.array(scores, np.float32)
    return Matches(np.array(borrowing), np.array(lent), scores, scores)


def units(count, seed, hubs=0, dim=24):
    """Draw unit vectors, the last ``hubs`` of which lie near to all others."""
    random = np.random.default_rng(seed)
    vectors = random.normal(size=(count, dim)) + 0.5
    vectors[count - hubs :] = 0.5 + 0.05 * random.normal(size=(hubs, dim))
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def retrieve(rule, a, b, **options):
    return RETRIEVALS[rule](torch.from_numpy(a), torch.from_numpy(b), **options)


def mean_of_nearest(cosines, neighbours):
    return np.sort(cosines, axis=1)[:, -neighbours:].mean(axis=1)


def test_nearest_is_the_highest_cosine():
    a, b = units(90, 1), units(200, 2)
    cosines = a.astype(float) @ b.T.astype(float)
    found = retrieve("nearest", a, b)
    assert np.array_equal(found.borrowing, np.arange(90))
    assert np.array_equal(found.lent, cosines.argmax(axis=1))
    assert np.allclose(found.cosines, cosines.max(axis=1), atol=1e-6)
    assert np.array_equal(found.scores, found.cosines)


def test_csls_is_that_of_the_whole_matrix():
    a, b = units(90, 1), units(200, 2, hubs=3)
    cosines = a.astype(float) @ b.T.astype(float)
    whole = 2 * cosines - mean_of_nearest(cosines, 7)[:, None] - mean_of_nearest(cosines.T, 7)
    found = retrieve("csls", a, b, neighbours=7)
    assert np.array_equal(found.lent, whole.argmax(axis=1))
    assert np.allclose(2 * found.scores, whole.max(axis=1), atol=1e-5)
    assert np.allclose(found.cosines, cosines[found.borrowing, found.lent], atol=1e-6)


def test_csls_lends_hubs_less_often():
    a, b = units(300, 1, dim=200), units(300, 2, hubs=3, dim=200)
    uses = [
        np.isin(found.lent, [297, 298, 299]).sum()
        for found in (retrieve("nearest", a, b), retrieve("csls", a, b, neighbours=10))
    ]
    assert uses[0] > 150
    assert uses[1] < uses[0] / 2


@pytest.mark.parametrize("reuse_cap", [1, 2, 3])
def test_one_to_one_takes_the_best_free_pair_again_and_again(reuse_cap):
    a, b = units(60, 1), units(35, 2, hubs=2)
    left = a.astype(float) @ b.T.astype(float)
    uses, expected = np.zeros(35, int), {}
    while np.isfinite(left).any():
        x, y = np.unravel_index(left.argmax(), left.shape)
        expected[x], uses[y] = y, uses[y] + 1
        left[x] = -np.inf
        if uses[y] == reuse_cap:
            left[:, y] = -np.inf
    found = retrieve("one_to_one", a, b, neighbours=35, reuse_cap=reuse_cap)
    assert dict(zip(found.borrowing, found.lent, strict=True)) == expected
    assert len(expected) == min(60, 35 * reuse_cap)
    assert np.allclose(found.cosines, (a @ b.T)[found.borrowing, found.lent], atol=1e-6)


@pytest.mark.parametrize(
    ("rule", "options"),
    [
        ("nearest", {}),
        ("csls", {"neighbours": 7}),
        ("one_to_one", {"neighbours": 200, "reuse_cap": 1}),
    ],
)
def test_neither_tiles_nor_the_order_of_captions_change_a_bit(rule, options, monkeypatch):
    a, b = units(90, 1, dim=300), units(200, 2, hubs=3, dim=300)
    expected = retrieve(rule, a, b, **options)
    rows, columns = (np.random.default_rng(n).permutation(n) for n in (90, 200))
    monkeypatch.setattr(neighbours, "_ROWS", 90)
    monkeypatch.setattr(neighbours, "_COLUMNS", 33)
    found = retrieve(rule, a[rows], b[columns], **options)
    back = np.argsort(rows[found.borrowing])
    assert np.array_equal(rows[found.borrowing][back], expected.borrowing)
    assert np.array_equal(columns[found.lent][back], expected.lent)
    for name in ("scores", "cosines"):
        assert getattr(found, name)[back].tobytes() == getattr(expected, name).tobytes()


def test_who_has_no_free_neighbour_borrows_nothing():
    a = np.tile(units(1, 1), (5, 1))
    found = retrieve("one_to_one", a, units(20, 2), neighbours=2, reuse_cap=2)
    assert found.borrowing.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("rule", "kept"), [("none", 100), ("remove_bottom_quarter", 75), ("keep_top_quarter", 25)]
)
def test_filters_keep_the_papers_shares(rule, kept):
    scores = np.random.default_rng(0).permutation(100)
    found = keep_best(matches(range(100), range(100), scores), rule)
    assert sorted(found.scores) == list(range(100 - kept, 100))
    assert np.array_equal(found.scores, scores[found.borrowing])
    assert np.array_equal(found.borrowing, found.lent)


def test_filters_go_by_the_score_of_the_rule_and_not_by_the_cosine():
    scores, cosines = np.arange(8, dtype=np.float32), np.arange(8, dtype=np.float32)[::-1]
    found = keep_best(Matches(np.arange(8), np.arange(8), scores, cosines), "keep_top_quarter")
    assert found.scores.tolist() == [6, 7]
    assert found.cosines.tolist() == [1, 0]


def test_images_come_from_one_side_and_sentences_from_the_other(tmp_path):
    """A docstring of the authors' code has the direction the wrong way round."""
    borrowing, lent = sides()
    rows = borrow(borrowing, lent, matches([0, 1, 2, 11], [5, 5, 15, 0]), "pseudo", 1)
    assert list(rows["image_id"]) == ["photos:0", "photos:0", "photos:1", "photos:5"]
    assert list(rows["text"]) == list(lent["text"].iloc[[5, 5, 15, 0]])
    assert set(rows["language"]) == {"de"}
    assert set(rows["dataset"]) == {"photos"}
    assert list(rows["position"]) == [0, 1, 0, 1]
    assert list(rows["source_caption_id"]) == list(lent["caption_id"].iloc[[5, 5, 15, 0]])
    assert rows["caption_id"].is_unique
    assert rows["caption_id"][0] == "photos/0/en/caption/0<-drawings/2/de/caption/1"
    write_pairs(rows, tmp_path / "pseudo.parquet")
    assert len(read_pairs(tmp_path / "pseudo.parquet")) == 4


def test_umlauts_survive():
    """The authors' code deleted ä, ö, ü and ß from borrowed sentences."""
    rows = borrow(*sides(), matches([0, 1], [0, 1]), "pseudo", 1)
    assert list(rows["text"]) == ["Ein grüner Fuß 0", "Zwei Straßen 0"]
    assert list(rows["tokens"]) == [["ein", "grüner", "fuß", "0"], ["zwei", "straßen", "0"]]


def corpus_of(pairs):
    images = pairs["image_id"].unique().astype(object)
    vectors = np.random.default_rng(0).normal(size=(len(images), 10)).astype(np.float32)
    features = tiny.Features(images, vectors, {})
    recipe = tiny.recipe()
    return build_examples(pairs, "train", features, build_vocabulary(pairs, recipe), recipe)


def pairs_by_image(pairs, a, b):
    """Return the ids of all pairs of captions of one image, by comparing each with each."""
    tables = [pairs[(pairs["set"] == key[0]) & (pairs["language"] == key[1])] for key in (a, b)]
    rows = product(*(zip(t["caption_id"], t["image_id"], strict=True) for t in tables))
    return {(x, y) for (x, x_image), (y, y_image) in rows if x_image == y_image}


def formed_pairs(pairs, a, b):
    corpus = corpus_of(pairs)
    ids = [
        pairs[(pairs["set"] == key[0]) & (pairs["language"] == key[1])]["caption_id"].to_numpy()
        for key in (a, b)
    ]
    formed = sentence_pairs(corpus.sentences[a], corpus.sentences[b])
    return {(ids[0][i], ids[1][j]) for i, j in formed}


def test_filtered_captions_do_not_shift_the_groups_of_an_image():
    """The authors' code counted captions in groups of five, wrong after the first dropped one."""
    borrowing, lent = sides()
    found = matches(range(12), [3] * 6 + [9] * 6, [9, 1, 8, 8, 3, 4, 9, 2, 9, 9, 1, 8])
    rows = borrow(borrowing, lent, keep_best(found, "remove_bottom_quarter"), "pseudo", 1)
    assert len(rows) == 9
    pairs = pd.concat([borrowing, lent, rows], ignore_index=True)
    keys = ("photos", "en"), ("pseudo", "de")
    formed = formed_pairs(pairs, *keys)
    assert formed == pairs_by_image(pairs, *keys)
    assert len(formed) == 2 * len(rows)


def test_more_than_two_sets_of_an_image_pair():
    """The authors' code paired only the first two of the sets that share an image."""
    borrowing, lent = sides()
    sets = {
        "one": borrow(borrowing, lent, matches(range(12), [0] * 12), "one", 1),
        "other": borrow(borrowing, lent, matches([1, 2], [4, 5]), "other", 1),
    }
    pairs = pd.concat([borrowing, lent, *sets.values()], ignore_index=True)
    for name, rows in sets.items():
        keys = ("photos", "en"), (name, "de")
        assert formed_pairs(pairs, *keys) == pairs_by_image(pairs, *keys)
        assert len(formed_pairs(pairs, *keys)) == 2 * len(rows)
    assert not formed_pairs(pairs, ("photos", "en"), ("drawings", "de"))


def test_only_training_captions_borrow_and_lend():
    """The authors' validation took five captions of each image for granted; it sees none here."""
    borrowing, lent = sides()
    assert set(borrowing["split"]) | set(lent["split"]) == {"train"}
    assert set(borrow(borrowing, lent, matches(range(12), range(12)), "p", 1)["split"]) == {"train"}


def test_captions_of_another_set_or_language_are_no_part_of_a_side():
    table = pd.concat([captions("a", "en"), captions("b", "en"), captions("b", "de")])
    side = Side(pairs="b", language="de", facts="data/facts/none.jsonl")
    expected = [f"b/{image}/de/caption/{position}" for image in range(6) for position in range(2)]
    assert list(training_captions(table, side)["caption_id"]) == expected
    with pytest.raises(ContractError, match=r"pairs\.b: expected training captions in fr"):
        training_captions(table, Side(pairs="b", language="fr", facts="x"))


def test_settings_take_only_the_numbers_of_their_rule():
    assert settings(retrieval={"rule": "csls", "neighbours": 10}).retrieval.neighbours == 10
    for wrong in (
        {"rule": "nearest", "neighbours": 10},
        {"rule": "csls"},
        {"rule": "one_to_one", "neighbours": 10, "reuse_cap": 0},
        {"rule": "nearest_neighbour"},
    ):
        with pytest.raises(ValidationError):
            settings(retrieval=wrong)
    for rule in ("none", "remove_bottom_quarter", "keep_top_quarter"):
        assert len(keep_best(matches([0], [0]), settings(filter=rule).filter).lent) == 1


@pytest.fixture
def study(tmp_path, monkeypatch):
    """Lay out a study with two disjoint sets and an untrained teacher that knows both."""
    monkeypatch.chdir(tmp_path)
    tables = {"photos": captions("photos", "en"), "drawings": captions("drawings", "de", images=8)}
    for name, table in tables.items():
        write_pairs(table, tmp_path / f"data/pairs/{name}.parquet")
    write_pairs(empty_pairs(), tmp_path / "data/pairs/none.parquet")
    (tmp_path / "data/facts").mkdir()
    (tmp_path / "data/facts/none.jsonl").write_text("\n")
    teacher = tiny.space(tiny.recipe(), captions=pd.concat(tables.values()))
    (tmp_path / "data/models/teacher").mkdir(parents=True)
    teacher.save(tmp_path / "data/models/teacher/seed-1", tiny.PREPROCESSING, {})

    def run(name, **changes):
        run_stage(stage, name, monkeypatch, pseudopairs={name: settings(**changes)})
        return (
            tmp_path / f"data/pairs/{name}.parquet",
            tmp_path / f"metrics/reports/pseudopairs/{name}.json",
        )

    return SimpleNamespace(run=run, teacher=teacher, tables=tables, folder=tmp_path)


def test_stage_writes_what_the_teacher_finds_most_similar(study):
    path, metrics = study.run("pseudo", plus="drawings")
    pairs = read_pairs(path)
    borrowing, lent = sides()
    vectors = []
    for table, language in ((borrowing, "en"), (lent, "de")):
        for row in table["tokens"]:
            ids = torch.tensor([study.teacher.vocabulary.encode(row, language)])
            length = torch.tensor([ids.shape[1]])
            vectors.append(study.teacher.embed_tokens(ids, length, language)[0])
    cosines = torch.stack(vectors[: len(borrowing)]) @ torch.stack(vectors[len(borrowing) :]).T
    pseudo = pairs[pairs["set"] == "pseudo"].reset_index(drop=True)
    row = {caption: number for number, caption in enumerate(lent["caption_id"])}
    chosen = cosines[torch.arange(12), [row[source] for source in pseudo["source_caption_id"]]]
    assert torch.allclose(chosen, cosines.max(dim=1).values, atol=1e-5)
    assert set(pairs["set"]) == {"pseudo", "drawings"}
    assert set(pseudo["seed"]) == {1}
    report = json.loads(metrics.read_text())
    assert report["similarities"]["pairs"] == len(pseudo) == len(borrowing) == 12
    assert report["similarities"]["share_of_captions_that_borrow"] == 1
    assert report["reuse"]["captions_lent_from"] == len(lent) == 16
    assert report["overlap"] == report["between_seeds"] == report["agreement"] == {}


def test_each_seed_borrows_by_its_own_teacher(study):
    """All seeds of a recipe learnt the pseudopairs of one teacher."""
    # It finds other captions: the words of two languages that look alike are two to it.
    apart = tiny.recipe(vocabulary="per_language")
    other = tiny.space(apart, 2, pd.concat(study.tables.values()))
    other.save(study.folder / "data/models/teacher/seed-2", tiny.PREPROCESSING, {})
    path, metrics = study.run("pseudo", plus="drawings", seeds=[1, 2])
    alone = {1: study.run("one", seeds=[1])[0], 2: study.run("two", seeds=[2])[0]}
    pairs = read_pairs(path)
    for seed, single in alone.items():
        learnt = pairs_of_seed(pairs, seed)
        borrowed = learnt[learnt["set"] == "pseudo"]
        assert list(borrowed["caption_id"]) == list(read_pairs(single)["caption_id"])
        assert set(learnt["set"]) == {"pseudo", "drawings"}
    tables = [read_pairs(single) for single in alone.values()]
    shared = {f"{name}_of_seeds": round(value, 4) for name, value in overlap(*tables).items()}
    assert json.loads(metrics.read_text())["between_seeds"] == shared
    assert shared["jaccard_of_placements_of_seeds"] < 1


def test_stage_compares_with_another_set_and_repeats_its_bytes(study):
    first = study.run("first", plus="drawings")  # which are no pseudopairs to compare with
    again = [path.read_bytes() for path in first]
    assert [path.read_bytes() for path in study.run("first", plus="drawings")] == again
    _, metrics = study.run("second", compare_with="first")
    assert json.loads(metrics.read_text())["overlap"] == {
        "jaccard_of_captions": 1.0,
        "jaccard_of_placements": 1.0,
    }


@pytest.mark.parametrize(
    "retrieval",
    [
        {"rule": "csls", "neighbours": 3},
        {"rule": "one_to_one", "neighbours": 5, "reuse_cap": 1},
    ],
    ids=lambda retrieval: retrieval["rule"],
)
def test_stage_knows_every_rule(study, retrieval):
    path, _ = study.run("pseudo", retrieval=retrieval, filter="remove_bottom_quarter")
    borrowing, lent = sides()
    found = match_captions(
        study.teacher,
        borrowing,
        lent,
        settings(retrieval=retrieval, filter="remove_bottom_quarter"),
    )
    written = read_pairs(path)["caption_id"]
    assert set(written) == set(borrow(borrowing, lent, found, "pseudo", 1)["caption_id"])
    assert 0 < len(written) <= 12
