"""What stages.train refuses before it trains: captions of photos that the recipe is scored on."""

import json
import shutil

import numpy as np
import pandas as pd
import pytest
import tiny
from click.testing import CliRunner
from graph import ROOT
from ruamel.yaml import YAML

from pipeline_lib.contract.features import write_features
from pipeline_lib.contract.problems import ContractError
from pipeline_lib.contract.tables import write_images, write_pairs
from pipeline_lib.contract.word_vectors import WordVectors, write_word_vectors
from pipeline_lib.synthesis.leaks import training_leaks
from stages.nothing import main as nothing
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


def test_the_stage_names_every_leak_before_it_trains(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    params = YAML(typ="safe").load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    unaligned = {"lexicon": "none", "alignment_every_updates": "never"}
    row = {**params["recipes"]["ame"], **unaligned}
    params["recipes"] = {"leaky": row}
    for section in ("pseudopairs", "rerankings", "translated_queries"):
        params[section] = {}
    params["comparisons"] = params["claims"] = {}
    (tmp_path / "params.yaml").write_text(json.dumps(params))  # JSON is YAML
    shutil.copy(ROOT / "papers.yaml", tmp_path)
    CliRunner().invoke(nothing, [], catch_exceptions=False)
    pairs = tiny.pairs()
    first, second, *_ = sorted(pairs.loc[pairs["split"] == "train", "image_id"].unique())
    write_pairs(pairs, tmp_path / f"data/pairs/{row['pairs']}.parquet")
    write_images(images(**{first: "test"}, held_out="test"), tmp_path / "data/images/world.parquet")
    write_features(tiny.features(), tmp_path / f"data/features/{row['features']}.h5")
    vectors = WordVectors({"en": (["dog"], np.ones((1, 64)))}, ["held_out", second], {})
    write_word_vectors(vectors, tmp_path / f"data/word_vectors/{row['word_vectors']}.h5")
    with pytest.raises(ContractError) as error:
        CliRunner().invoke(train, ["leaky"], catch_exceptions=False)
    assert f"(first: {first})" in str(error.value)
    assert "captions of 1 validation or test images (first: 'held_out')" in str(error.value)
    assert not (tmp_path / "data/models/leaky").exists()
