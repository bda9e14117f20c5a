"""The stage that extracts features: their form, and what is kept of the work of a run before."""

import shutil
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import tiny_study
from click.testing import CliRunner
from lone_stage import run_stage
from PIL import Image
from refusals import refused
from tiny import extractor

from pipeline_lib.contract.features import read_features, write_features
from pipeline_lib.contract.tables import read_images, write_images
from pipeline_lib.images import extraction
from pipeline_lib.images.extraction import encode_crops
from pipeline_lib.settings.images import Extractor
from stages import features as stage
from stages.train import main as train

NAME = "world_lite0"
IMAGES = Path("data/images/world.parquet")


@pytest.fixture
def settings(tmp_path, monkeypatch) -> Extractor:
    """Go to a study whose photos are there, and return its extractor's settings."""
    monkeypatch.chdir(tmp_path)
    tiny_study.make(tmp_path)
    Path("photos").mkdir()
    for number, path in enumerate(read_images(IMAGES)["path"]):
        draw_photo(path, number)
    return extractor(dataset="world", images="photos", batch_size=2)


def draw_photo(path: str, seed: int) -> None:
    pixels = np.random.default_rng(seed).integers(0, 256, (48, 64, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(Path("photos") / path)


def extracted(settings: Extractor, monkeypatch) -> np.ndarray:
    """Run the stage and return the features."""
    run_stage(stage, NAME, monkeypatch, extractors={NAME: settings})
    return read_features(Path(f"data/features/{NAME}.h5")).vectors


def test_features_in_shards_end_the_stage_and_are_trained_on(settings, monkeypatch):
    in_shards = partial(write_features, shard_rows=4)
    monkeypatch.setattr(extraction, "write_features", in_shards)
    extracted(settings, monkeypatch)
    assert Path(f"data/features/{NAME}.h5").is_dir()
    CliRunner().invoke(train, [tiny_study.NAME], catch_exceptions=False)
    assert Path(f"data/models/{tiny_study.NAME}/seed-1/weights.safetensors").is_file()


def test_batches_are_kept_when_a_photo_that_cannot_be_read_is_left_out(settings, monkeypatch):
    images, encoded = read_images(IMAGES), []
    monkeypatch.setattr(
        extraction, "encode_crops", lambda *a: encoded.append(a) or encode_crops(*a)
    )
    (Path("photos") / images["path"].iloc[-1]).write_bytes(b"<html>404</html>")
    with refused("expected an image in one of"):
        extracted(settings, monkeypatch)
    write_images(images[:-1], IMAGES)
    kept = extracted(settings, monkeypatch)
    assert len(encoded) == -(-len(kept) // settings.batch_size), "one batch was encoded twice"
    assert np.array_equal(kept, from_nothing(settings, monkeypatch))


def test_work_on_other_photos_leaves_nothing_in_the_features(settings, monkeypatch):
    images = read_images(IMAGES)
    for table in (images, images[:3], images[::-1], pd.concat([images[:2], images[4:]])):
        write_images(table, IMAGES)
        found = extracted(settings, monkeypatch)
        draw_photo(images["path"].iloc[0], len(found))
    found = extracted(settings, monkeypatch)
    assert np.array_equal(found, from_nothing(settings, monkeypatch))


def from_nothing(settings: Extractor, monkeypatch) -> np.ndarray:
    shutil.rmtree(".resume")
    return extracted(settings, monkeypatch)
