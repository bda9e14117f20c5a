"""Extraction of a whole images table: resuming, reporting, order and memory."""

import contextlib
import errno
import hashlib
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest
import torch
from graph import ROOT
from PIL import Image
from refusals import refused
from tiny import extractor

from pipeline_lib.contract.features import read_features
from pipeline_lib.contract.problems import ContractError
from pipeline_lib.images import extraction, runtimes
from pipeline_lib.images.batches import FeatureStore, load_batch
from pipeline_lib.images.decoding import ImageError
from pipeline_lib.images.extraction import extract
from pipeline_lib.images.networks import feature_dim
from pipeline_lib.images.transforms import TRANSFORMS
from pipeline_lib.running.publishing import file_sha256
from pipeline_lib.settings.images import Extractor

DIM = 1280


def images_table(names: list[str]) -> pd.DataFrame:
    ids = [f"world:{Path(name).stem}" for name in names]
    return pd.DataFrame({"image_id": ids, "dataset": "world", "split": "train", "path": names})


def save(folder: Path, photos: list[np.ndarray], suffix: str = "png") -> pd.DataFrame:
    """Write photos and return their images table."""
    folder.mkdir()
    names = [f"{index:03d}.{suffix}" for index in range(len(photos))]
    for name, pixels in zip(names, photos, strict=True):
        Image.fromarray(pixels).save(folder / name)
    return images_table(names)


def write_photos(folder: Path, count: int) -> pd.DataFrame:
    """Write ``count`` different noise JPEGs and return their images table."""
    drawn = (np.random.default_rng(n).integers(0, 256, (6, 9, 3), np.uint8) for n in range(count))
    large = [np.asarray(Image.fromarray(pixels).resize((72, 48))) for pixels in drawn]
    return save(folder, large, "jpg")


@pytest.fixture
def photos(tmp_path) -> pd.DataFrame:
    return write_photos(tmp_path / "photos", 10)


@pytest.fixture
def run(tmp_path):
    """Return a function that extracts into a named file with a resume folder of the same name."""

    def call(images: pd.DataFrame, settings: Extractor, name: str = "out") -> Path:
        output = tmp_path / f"{name}.h5"
        extract(images, tmp_path / "photos", settings, output, tmp_path / f"{name}.resume")
        return output

    return call


@pytest.fixture
def encoded(monkeypatch) -> list[int]:
    """Replace the network by the mean colour; return the growing list of the rows it was given."""
    rows = []

    def build_runtime(encoder, precision, count, crop):
        def encode(pixels):
            assert len(pixels) == count
            rows.append(len(pixels))
            colour = pixels.reshape(count, -1, 3).mean(axis=1, dtype=np.float32) + 1
            return np.pad(colour, ((0, 0), (0, DIM - 3)))

        return runtimes.Runtime(encode, "cpu", precision)

    monkeypatch.setattr(runtimes, "build_runtime", build_runtime)
    monkeypatch.setattr(runtimes, "_LOADED", {})
    return rows


# Results


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_rows_are_each_images_own_features_in_the_tables_order(photos, run, transform):
    shuffled = photos.sample(frac=1, random_state=0).reset_index(drop=True)
    features = read_features(run(shuffled, extractor(transform=transform)))
    assert features.image_ids.tolist() == shuffled["image_id"].tolist()
    one = extractor(transform=transform, batch_size=1)
    alone = read_features(run(shuffled[6:7], one, "alone"))
    np.testing.assert_allclose(features.vectors[6], alone.vectors[0], rtol=1e-4, atol=1e-5)
    assert len(np.unique(features.vectors.round(4), axis=0)) == len(photos)


def test_ten_crop_feature_is_the_mean_of_ten_single_crops(tmp_path, run):
    pixels = np.random.default_rng(0).integers(0, 256, (40, 60, 3), dtype=np.uint8)
    crops = [
        view[top : top + 32, left : left + 32]
        for view in (pixels, pixels[:, ::-1])
        for top, left in ((0, 0), (0, 28), (8, 0), (8, 28), (4, 14))
    ]
    table = save(tmp_path / "photos", [pixels, *crops])
    ten = read_features(run(table[:1], extractor(transform="ten_crop")))
    singles = read_features(run(table[1:], extractor(transform="squash"), "singles"))
    expected = singles.vectors.mean(axis=0)
    np.testing.assert_allclose(ten.vectors[0], expected, rtol=1e-4, atol=1e-5)


def test_a_photo_and_its_mirror_image_stand_side_by_side(tmp_path, run):
    pixels = np.random.default_rng(0).integers(0, 256, (40, 60, 3), dtype=np.uint8)
    table = save(tmp_path / "photos", [pixels, pixels[:, ::-1]])
    both = read_features(run(table, extractor(transform="squash_mirror")))
    photo, mirror = both.vectors.reshape(2, 2, DIM)
    np.testing.assert_allclose(photo, mirror[::-1], rtol=1e-4, atol=1e-5)
    assert np.abs(photo[0] - photo[1]).max() > 0.1
    assert both.attributes["vectors"] == 2


def test_statistics_of_stages_stand_before_the_features(photos, run):
    last = read_features(run(photos, extractor()))
    stages = read_features(run(photos, extractor(layers="stages"), "stages"))
    dim = feature_dim("efficientnet_lite0", "stages")
    assert stages.attributes["dim"] == stages.vectors.shape[1] == dim == 2 * 784 + 2 * DIM
    assert stages.attributes["layer"] == "stages, avgpool"
    assert last.attributes["relu"]
    assert not stages.attributes["relu"]
    np.testing.assert_array_equal(stages.vectors[:, -DIM:], last.vectors)


def test_attributes_say_what_made_the_features_and_nothing_of_the_machine(photos, run, tmp_path):
    attributes = read_features(run(photos, extractor())).attributes
    assert attributes == {
        "backbone": "efficientnet_lite0",
        "layer": "avgpool",
        "dim": DIM,
        "weights": "package",
        "weights_sha256": "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db",
        "transform": "center",
        "crops": 1,
        "vectors": 1,
        "resize": 40,
        "crop": 32,
        "mean": [127.0] * 3,
        "std": [128.0] * 3,
        "precision": "f32",
        "relu": True,
        "normalized": False,
    }


def test_batch_larger_than_the_table_and_equal_bytes_of_two_runs(photos, run, encoded):
    first, again = (run(photos, extractor(batch_size=64), name) for name in ("a", "b"))
    assert first.read_bytes() == again.read_bytes()
    assert encoded == [64, 64]


def test_no_images(photos, run, encoded):
    features = read_features(run(photos[:0], extractor()))
    assert features.vectors.shape == (0, DIM)
    assert encoded == []


def test_black_images_are_not_all_zero(tmp_path, run):
    black = save(tmp_path / "photos", [np.zeros((40, 40, 3), np.uint8)])
    assert read_features(run(black, extractor())).vectors.any()


def test_progress_bar_shows_device_and_resumed_images(photos, run, encoded, capsys):
    run(photos, extractor())
    assert "efficientnet_lite0 on cpu in f32: 100%" in capsys.readouterr().err
    run(photos, extractor())
    assert "10 done before" in capsys.readouterr().err
    assert len(encoded) == 3


# Bad input


def test_every_problem_is_named_before_any_work(photos, run, tmp_path, encoded):
    (tmp_path / "photos" / "folder.jpg").mkdir()
    images = pd.concat([photos, images_table(["a.jpg", "b.jpg", "folder.jpg", "000.jpg"])])
    wrong = extractor(backbone="alexnet", transform="crop", precision="f16", resize=31)
    with refused(
        "8 problem(s)",
        "backbone: expected vgg19, resnet50",
        f"transform: expected {', '.join(TRANSFORMS)}, found 'crop'",
        "precision: expected bf16, f32, f64, found 'f16'",
        "resize: expected at least crop (32), found 31",
        "1 rows are repeated (expected unique image_id) (first: 'world:000')",
        "a.jpg: no such file",
        "b.jpg: no such file",
        "folder.jpg: no such file",
    ):
        run(images, wrong)
    assert encoded == []


def test_of_many_photos_that_are_not_there_few_are_named(photos, run, encoded):
    names = [f"{number:03}-lost.jpg" for number in range(30)]
    with pytest.raises(ContractError) as raised:
        run(images_table(names), extractor())
    lines = str(raised.value).splitlines()
    assert lines[1].endswith("000-lost.jpg: no such file")
    assert (len(lines), lines[-1].strip(), encoded) == (22, "- and 10 more", [])


def test_missing_folder_is_one_problem(photos, tmp_path):
    with pytest.raises(ContractError, match="1 problem"):
        extract(photos, tmp_path / "elsewhere", extractor(), tmp_path / "o.h5", tmp_path / "r")


@contextlib.contextmanager
def as_nobody(folder):
    """Give up root's right to read, but let nobody reach a folder; others have none to give up."""
    if os.geteuid() != 0:
        yield
        return
    closed = {each: each.stat().st_mode for each in (folder, *folder.parents)}
    closed = {each: mode for each, mode in closed.items() if mode & 0o55 != 0o55}
    for each, mode in closed.items():
        each.chmod(mode | 0o55)
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)
        for each, mode in closed.items():
            each.chmod(mode)


def test_unreadable_file_is_named_before_any_work(photos, run, tmp_path, encoded):
    (tmp_path / "photos" / "003.jpg").chmod(0)
    with (
        as_nobody(tmp_path / "photos"),
        pytest.raises(ContractError, match=r"1 problem\(s\)\n.*003.jpg: no permission"),
    ):
        run(photos, extractor())


def test_all_unusable_images_are_named_and_the_work_is_kept(photos, run, tmp_path, encoded):
    whole = (tmp_path / "photos" / "005.jpg").read_bytes()
    (tmp_path / "photos" / "005.jpg").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "photos" / "009.jpg").write_bytes(b"<html>404</html>")
    bad = "005.jpg: cannot be decoded", "009.jpg: expected an image in one of JPEG"
    with refused("2 problem(s)", *bad):
        run(photos, extractor())
    assert not (tmp_path / "out.h5").exists()
    assert len(encoded) == 1  # the one batch without a bad image

    (tmp_path / "photos" / "005.jpg").write_bytes(whole)
    (tmp_path / "photos" / "009.jpg").write_bytes(whole)
    assert run(photos, extractor()).read_bytes() == run(photos, extractor(), "new").read_bytes()
    assert len(encoded) == 3 + 3  # the mended two, then all three again from nothing


def test_a_bug_in_a_reading_thread_is_not_silent(photos, run, monkeypatch, encoded):
    def broken(path):
        raise RuntimeError("a bug")

    monkeypatch.setattr(extraction, "decode", broken)
    with pytest.raises(RuntimeError, match="a bug"):
        run(photos, extractor())


# Resuming


@pytest.mark.parametrize(
    "change", ["photo", "photo of as many bytes", "batch_size", "crop", "threads", "libraries"]
)
def test_work_is_done_again_where_something_changed(
    photos, run, tmp_path, encoded, monkeypatch, change
):
    run(photos, extractor())
    settings, expected = extractor(), 3
    if change.startswith("photo"):
        photo = tmp_path / "photos" / "005.jpg"
        size = photo.stat().st_size if change == "photo of as many bytes" else 0
        Image.new("RGB", (50, 50)).save(photo)
        photo.write_bytes(photo.read_bytes().ljust(size, b"\0"))
        assert photo.stat().st_size == size or not size
        expected = 1
    elif change == "batch_size":
        settings = extractor(batch_size=5)
        expected = 2
    elif change == "crop":
        settings = extractor(crop=33)
    elif change == "libraries":
        monkeypatch.setattr(extraction, "version", lambda package: "of tomorrow")
    else:
        monkeypatch.setattr(torch, "get_num_threads", lambda: 64)
    del encoded[:]
    resumed = run(photos, settings)
    assert len(encoded) == expected
    assert resumed.read_bytes() == run(photos, settings, "new").read_bytes()


@pytest.mark.parametrize("what", ["another", "gone"])
def test_a_photo_that_changes_while_others_are_read_is_not_published(
    photos, run, tmp_path, encoded, monkeypatch, what
):
    photo, read = tmp_path / "photos/005.jpg", extraction.encode_images

    def meanwhile(*arguments):
        problems = list(read(*arguments))
        photo.unlink() if what == "gone" else Image.new("RGB", (50, 50)).save(photo)
        return problems

    monkeypatch.setattr(extraction, "encode_images", meanwhile)
    with pytest.raises(ContractError, match="photos of 1 of 3 batches have changed since the star"):
        run(photos, extractor())
    monkeypatch.setattr(extraction, "encode_images", read)
    Image.new("RGB", (50, 50)).save(photo)
    del encoded[:]
    resumed = run(photos, extractor())
    assert len(encoded) == 1
    assert resumed.read_bytes() == run(photos, extractor(), "new").read_bytes()


@pytest.mark.parametrize(("line", "batches"), [("# Why.", 0), ("SIDE = 1", 3)])
def test_work_is_done_again_only_for_code_that_does_something_else(
    photos, run, tmp_path, encoded, monkeypatch, line, batches
):
    run(photos, extractor())
    shutil.copytree(ROOT / "pipeline_lib", tmp_path / "pipeline_lib")
    with open(tmp_path / "pipeline_lib" / "images" / "decoding.py", "a") as module:
        module.write(f"{line}\n")
    monkeypatch.setattr(extraction, "ROOT", tmp_path)
    monkeypatch.setattr(extraction, "__file__", str(tmp_path / "pipeline_lib/images/extraction.py"))
    del encoded[:]
    run(photos, extractor())
    assert len(encoded) == batches


def test_store_ignores_half_written_keys(tmp_path):
    keys = [bytes([i]) * 32 for i in (1, 2)]
    vectors = np.arange(15, dtype="<f4").reshape(3, 5)
    fill_store(tmp_path, keys, vectors)
    with open(tmp_path / "finished.sha256", "r+b") as file:
        file.truncate(100)
    assert finished_of(tmp_path, keys) == [True, False]


def test_store_takes_no_damaged_vectors_for_finished_ones(tmp_path):
    keys = [bytes([i]) * 32 for i in (1, 2)]
    fill_store(tmp_path, keys, np.arange(15, dtype="<f4").reshape(3, 5))
    assert finished_of(tmp_path, keys) == [True, True]
    with open(tmp_path / "vectors.f32", "r+b") as file:
        file.seek(2 * 5 * 4)  # the first byte of the second batch
        file.write(b"x")
    assert finished_of(tmp_path, keys) == [True, False]


def test_store_writes_the_rest_of_what_the_disk_took_in_part(tmp_path, monkeypatch):
    keys = [bytes([i]) * 32 for i in (1, 2)]
    pwrite = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda file, data, place: pwrite(file, data[:7], place))
    fill_store(tmp_path, keys, np.arange(15, dtype="<f4").reshape(3, 5))
    assert finished_of(tmp_path, keys) == [True, True]


def test_a_full_disk_is_that_of_the_store(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with FeatureStore(tmp_path / "work", [bytes(32)], 2, 2, 3) as store:
        monkeypatch.setattr(os, "pwrite", full)
        with pytest.raises(OSError, match=re.escape(str(tmp_path / "work"))):
            store.write(0, bytes(24), bytes(32))


@pytest.mark.parametrize(("precision", "same"), [("f32", False), ("f64", True)])
def test_what_another_cpu_computed_is_kept_only_where_it_has_equal_bytes(
    monkeypatch, precision, same
):
    runtime = Mock(precision=precision, device="cpu")
    before = extraction._computation(runtime)
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "SSE41")
    assert (extraction._computation(runtime) == before) is same


def test_store_calls_finished_only_what_is_on_the_disk(tmp_path, monkeypatch):
    done, pwrite = [], os.pwrite

    def noted(what, file):
        done.append((what, os.path.basename(os.readlink(f"/proc/self/fd/{file}"))))

    def write(file, data, place):
        noted("written", file)
        return pwrite(file, data, place)

    monkeypatch.setattr(os, "pwrite", write)
    monkeypatch.setattr(os, "fsync", lambda file: noted("flushed", file))
    with FeatureStore(tmp_path, [b"k" * 32], 1, 1, 2) as store:
        store.write(0, b"features", hashlib.sha256(b"features").digest())
    assert done == [
        (what, name)
        for name in ("vectors.f32", "finished.sha256")
        for what in ("written", "flushed")
    ]


def fill_store(folder, keys, vectors):
    with FeatureStore(folder, keys, 2, 3, 5) as store:
        for index, rows in enumerate((vectors[:2], vectors[2:])):
            store.write(index, rows.tobytes(), hashlib.sha256(rows.tobytes()).digest())
        assert np.array_equal(store.read()[:], vectors)


def finished_of(folder, keys):
    with FeatureStore(folder, keys, 2, 3, 5) as store:
        return [store.is_finished(index) for index in range(len(keys))]


KILLED = """
import sys, time, torch
from pathlib import Path
import pandas as pd
sys.path[:0] = sys.argv[1].split(":")
import tiny
from pipeline_lib.images.extraction import extract
from pipeline_lib.images.batches import FeatureStore
write = FeatureStore.write
def slowly(*batch):  # so that it is not done before it is killed
    write(*batch)
    time.sleep(0.05)
FeatureStore.write = slowly
torch.set_num_threads(int(sys.argv[4]))
folder = Path(sys.argv[2])
images = pd.read_parquet(folder / "images.parquet")
settings = tiny.extractor(**eval(sys.argv[3]))
extract(images, folder / "photos", settings, folder / "killed.h5", folder / "killed.resume")
"""


def finished_batches(folder: Path) -> int:
    path = folder / "killed.resume" / "finished.sha256"
    stored = path.read_bytes() if path.exists() else b""
    return sum(any(stored[first : first + 64]) for first in range(0, len(stored), 64))


def test_killed_at_random_moments_it_ends_with_the_same_bytes(tmp_path, run):
    images = write_photos(tmp_path / "photos", 150)
    images.to_parquet(tmp_path / "images.parquet")
    settings = extractor(crop=128, resize=128, batch_size=2)
    expected = file_sha256(run(images, settings))
    arguments = [sys.executable, "-c", KILLED, ":".join(sys.path), str(tmp_path)]
    arguments += [repr(settings.model_dump()), str(torch.get_num_threads())]
    moment = random.Random(os.getpid())
    for goal in (1, 40):
        process = subprocess.Popen(arguments, stderr=subprocess.PIPE)
        while finished_batches(tmp_path) < goal and process.poll() is None:
            time.sleep(0.001)
        time.sleep(moment.uniform(0, 0.02))
        process.kill()
        assert process.wait() == -signal.SIGKILL
        process.stderr.close()
        assert goal <= finished_batches(tmp_path) < 75
        assert not (tmp_path / "killed.h5").exists()
    assert file_sha256(run(images, settings, "killed")) == expected


# Reading


def test_a_batch_keeps_order_and_reasons_apart():
    def reader(path: Path) -> np.ndarray:
        if path.name == "bad":
            raise ImageError("is bad")
        return np.full((1, 2, 2, 3), int(path.name), np.uint8)

    shape = (2, 1, 2, 2, 3)
    paths = [Path("1"), Path("2")], [Path("bad"), Path("4")], [Path("6")]
    loaded = [load_batch(some, shape, reader) for some in paths]
    assert [batch.count for batch in loaded] == [2, 2, 1]
    assert [batch.problems for batch in loaded] == [[], ["bad: is bad"], []]
    assert [batch.pixels[:, 0, 0, 0, 0].tolist() for batch in loaded] == [[1, 2], [0, 4], [6, 0]]
