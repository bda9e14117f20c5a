"""What stages.train refuses before it trains: captions of photos that the recipe is scored on."""

import json

import numpy as np
import pandas as pd
import tiny
import tiny_study
from click.testing import CliRunner
from refusals import refused

from pipeline_lib.contract.features import write_features
from pipeline_lib.contract.reports import read_report
from pipeline_lib.contract.tables import write_images, write_pairs
from pipeline_lib.contract.word_vectors import WordVectors, write_word_vectors
from pipeline_lib.synthesis.leaks import training_leaks
from pipeline_lib.training import seeds
from stages.train import main as train


def images(**other_splits):
    splits = tiny.pairs().drop_duplicates("image_id").set_index("image_id")["split"].to_dict()
    rows = [
        {"image_id": image, "dataset": "world", "split": split, "path": f"{number}.jpg"}
        for number, (image, split) in enumerate((splits | other_splits).items())
    ]
    return pd.DataFrame(rows)


def test_training_images_are_not_evaluated_on():
    pairs = tiny.pairs()
    first = pairs.loc[pairs["split"] == "train", "image_id"].min()
    assert list(training_leaks(pairs, images())) == []
    for split in ("val", "test"):
        [problem] = training_leaks(pairs, images(**{first: split}))
        assert f"found 1 such images (first: {first})" in problem


def test_no_set_trains_on_what_another_validates_on():
    """Two data sets may share photos, and put them into other splits."""
    pairs = tiny.pairs("a")
    other = pairs[(pairs["split"] == "val") & (pairs["image_id"] == "tiny:2")].assign(set="b")
    both = pd.concat([pairs[pairs["split"] == "train"], other])
    [problem] = training_leaks(both, images().assign(split="train"))
    assert "found 1 such images (first: tiny:2)" in problem


def test_weights_are_chosen_by_no_photo_that_is_tested_on():
    pairs = tiny.pairs()
    alone = pairs[pairs["split"] == "val"]
    first = min(alone["image_id"])
    assert list(training_leaks(alone, images(**{first: "val"}))) == []
    [problem] = training_leaks(alone, images(**{first: "test"}))
    assert f"(first: {first})" in problem


def test_the_stage_names_every_leak_before_it_trains(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    unaligned = {"lexicon": "none", "alignment_every_updates": "never", "orthogonal_map": False}
    row = tiny_study.recipe_of_world("ame") | unaligned
    tiny_study.begin(tmp_path, leaky=row)
    pairs = tiny.pairs()
    first, second, *_ = sorted(pairs.loc[pairs["split"] == "train", "image_id"].unique())
    write_pairs(pairs, tmp_path / f"data/pairs/{row['pairs']}.parquet")
    write_images(images(**{first: "test"}, held_out="test"), tmp_path / "data/images/world.parquet")
    write_features(tiny.features(), tmp_path / f"data/features/{row['features']}.h5")
    vectors = WordVectors({"en": (["dog"], np.ones((1, 64)))}, ["held_out", second], {})
    write_word_vectors(vectors, tmp_path / f"data/word_vectors/{row['word_vectors']}.h5")
    held_out = "captions of 1 validation or test images (first: 'held_out')"
    with refused(f"(first: {first})", held_out):
        CliRunner().invoke(train, ["leaky"], catch_exceptions=False)
    assert not (tmp_path / "data/models/leaky").exists()


def test_photos_that_have_moved_train_nothing_anew(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tiny_study.make(tmp_path)
    CliRunner().invoke(train, [tiny_study.NAME], catch_exceptions=False)
    params = json.loads((tmp_path / "params.yaml").read_text())
    features = params["recipes"][tiny_study.NAME]["features"]
    params["extractors"][features]["images"] = "data/raw/elsewhere"
    (tmp_path / "params.yaml").write_text(json.dumps(params))

    def trained(*_):
        raise AssertionError("the seed was trained already")

    monkeypatch.setattr(seeds, "fit", trained)
    CliRunner().invoke(train, [tiny_study.NAME], catch_exceptions=False)
    found = read_report(tmp_path / f"data/models/{tiny_study.NAME}/seed-1/preprocessing.json")
    assert found["extractor"]["images"] == "data/raw/elsewhere"
