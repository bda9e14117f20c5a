"""A study whose one recipe is trained in a second, for tests of the stage that trains."""

import json
import shutil

import pandas as pd
import pytest
import tiny
from click.testing import CliRunner
from graph import ROOT, read_yaml

from pipeline_lib.contract.features import write_features
from pipeline_lib.contract.tables import write_images, write_pairs
from stages.nothing import main as nothing

NAME = "kadar_en"
KEYS = {"precision": "f32", "seeds": [1], "word_dim": 8, "hidden_dim": 16, "embed_dim": 16}
KEYS |= {"batch_size": 4, "max_epochs": 40, "validate_every_updates": 5}


def make(folder):
    """Write the parameters of the study, and all that the stage reads."""
    row = recipe_of_world(NAME) | KEYS
    begin(folder, **{NAME: row})
    write_pairs(tiny.pairs(), folder / f"data/pairs/{row['pairs']}.parquet")
    write_features(tiny.features(), folder / f"data/features/{row['features']}.h5")
    split_images(folder)


def recipe_of_world(name):
    return read_yaml(ROOT / "params.yaml")["recipes"][name]


def begin(folder, **recipes):
    """Write world's parameters, of these recipes alone, and the files that stand for no input."""
    params = read_yaml(ROOT / "params.yaml")
    of_others = ("pseudopairs", "rerankings", "translated_queries", "comparisons", "claims")
    params |= {"recipes": recipes} | {section: {} for section in of_others}
    (folder / "params.yaml").write_text(json.dumps(params))  # JSON is YAML
    shutil.copy(ROOT / "papers.yaml", folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        CliRunner().invoke(nothing, [], catch_exceptions=False)


def split_images(folder, **splits):
    """Write the table of images, in whose splits captions stand but for those given."""
    images = tiny.pairs().drop_duplicates("image_id")[["image_id", "split"]].assign(**splits)
    images = images.assign(dataset="world", path=[f"{n}.jpg" for n in range(len(images))])
    write_images(pd.DataFrame(images), folder / "data/images/world.parquet")
