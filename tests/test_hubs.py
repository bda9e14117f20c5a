"""benchmarks.hubs: scores less what hubs have of their neighbours, by a plain loop."""

import numpy as np
import pandas as pd
import pytest
import tiny
import tiny_study
from click.testing import CliRunner
from dvc.utils.serialize import modify_yaml

from benchmarks.hubs import NEIGHBOURS, corrected_ranks, main
from pipeline_lib.contract.tables import write_captions, write_pairs
from pipeline_lib.evaluation.retrieval.pools import ranked_pool
from pipeline_lib.evaluation.retrieval.scores import SCORES
from pipeline_lib.evaluation.vectors import Embeddings
from pipeline_lib.evaluation.words.ranks import neighbourhood_density
from stages.train import main as train

RNG = np.random.default_rng(5)


def unit(rows, dim=6):
    vectors = RNG.normal(size=(rows, dim)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.fixture
def pool():
    """Return 15 photos of two captions each."""
    ids, caption_ids = [f"i{n}" for n in range(15)], [f"c{n}" for n in range(30)]
    rows = pd.DataFrame({"caption_id": caption_ids, "image_id": [ids[n // 2] for n in range(30)]})
    vectors = Embeddings(np.array(ids), unit(15), np.array(caption_ids), unit(30))
    return ranked_pool(vectors, rows, SCORES["cosine"])


def nearness(vector, bank):
    return np.mean(sorted((float(vector @ other) for other in bank), reverse=True)[:NEIGHBOURS])


def test_ranks_are_those_of_a_plain_loop(pool):
    captions, photos = unit(40), unit(25)
    score = np.array(
        [
            [2 * float(v @ w) - nearness(v, captions) - nearness(w, photos) for w in pool.sentences]
            for v in pool.images
        ]
    )
    owner = pool.ranks.caption_image
    of_captions = [
        1 + sum(score[i, c] >= score[owner[c], c] for i in range(15) if i != owner[c])
        for c in range(30)
    ]
    of_images = [1 + sum(score[i, owner != i] >= max(score[i, owner == i])) for i in range(15)]
    found = corrected_ranks(pool, captions, photos)
    assert [side.tolist() for side in found] == [of_images, of_captions]
    assert found[1].tolist() != pool.ranks.text_to_image.tolist(), "the correction changes ranks"


def test_a_bank_of_fewer_than_ten_is_taken_whole():
    vectors, bank = unit(3), unit(4)
    np.testing.assert_allclose(
        neighbourhood_density(vectors, bank, NEIGHBOURS), (vectors @ bank.T).mean(axis=1), rtol=1e-5
    )


def test_a_photo_that_is_near_to_all_captions_loses_its_place():
    """Two photos, one of them a hub; the caption is a little nearer to the hub than to its own."""
    hub, own = np.array([[1.0, 0.0]], np.float32), np.array([[0.0, 1.0]], np.float32)
    caption = np.array([[0.72, 0.69]], np.float32)
    rows = pd.DataFrame({"caption_id": ["c", "d"], "image_id": ["own", "hub"]})
    vectors = Embeddings(
        np.array(["hub", "own"]), np.vstack([hub, own]), np.array(["c", "d"]),
        np.vstack([caption, hub]),
    )  # fmt: skip
    pool = ranked_pool(vectors, rows, SCORES["cosine"])
    assert pool.ranks.text_to_image.tolist() == [2, 1]
    near_hub = np.repeat(hub, NEIGHBOURS, axis=0)
    assert corrected_ranks(pool, near_hub, own)[1].tolist()[0] == 1


@pytest.fixture
def study(tmp_path, monkeypatch):
    """Return a study with a trained model, which is scored on its validation captions."""
    tiny_study.make(tmp_path)
    monkeypatch.chdir(tmp_path)
    with modify_yaml(tmp_path / "params.yaml") as content:
        content["recipes"][tiny_study.NAME]["languages"] = ["en", "de"]
    CliRunner().invoke(train, [tiny_study.NAME], catch_exceptions=False)
    captions = tiny.pairs().drop(columns=["set", "seed"])
    write_captions(captions[captions["split"] == "val"], tmp_path / "data/captions/world.parquet")
    tiny_study.split_images(tmp_path, split="val")
    with modify_yaml(tmp_path / "params.yaml") as content:
        content["evaluations"]["retrieval"]["split"] = "val"
    return tmp_path


def test_each_language_has_a_line_with_both_sums_and_their_difference(study):
    printed = CliRunner().invoke(main, [], catch_exceptions=False).stdout.splitlines()
    cells = [line.strip("|").split(" | ") for line in printed[2:]]
    assert [row[:2] for row in cells] == [[f" {tiny_study.NAME}", each] for each in ("de", "en")]
    for row in cells:
        plain, corrected = (float(cell.split(" ± ")[0]) for cell in row[2:4])
        assert 0 < plain <= 600
        assert float(row[4]) == pytest.approx(corrected - plain, abs=0.11)


def test_a_language_of_which_no_training_photo_has_a_caption_is_left_out(study):
    pairs = tiny.pairs()
    path = next((study / "data/pairs").glob("[!n]*.parquet"))
    write_pairs(pairs[(pairs["split"] == "val") | (pairs["language"] != "en")], path)
    printed = CliRunner().invoke(main, [], catch_exceptions=False).stdout.splitlines()
    assert [line.split(" | ")[1] for line in printed[2:]] == ["de"]


def test_a_recipe_whose_similarity_is_not_symmetric_is_left_out(study):
    with modify_yaml(study / "params.yaml") as content:
        content["recipes"][tiny_study.NAME] |= {"similarity": "squared_order"}
    result = CliRunner().invoke(main, [], catch_exceptions=False)
    assert result.stdout.splitlines()[2:] == []
    assert f"{tiny_study.NAME} is left out: its similarity is squared_order" in result.stderr
