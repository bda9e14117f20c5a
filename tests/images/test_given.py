"""Features that another program made: taken by name, and refused where they cannot be."""

import errno
import os
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import h5py
import numpy as np
import pandas as pd
import pytest
import tiny_study
from click.testing import CliRunner
from given import give
from lone_stage import run_stage
from refusals import refused

from pipeline_lib.contract.features import read_features
from pipeline_lib.contract.tables import read_images
from pipeline_lib.images import given as file_of_features
from pipeline_lib.images.given import given_problems, number_problems, open_given
from pipeline_lib.running.edge import explained
from pipeline_lib.settings.images import GivenFeatures
from stages import features as stage
from stages.train import main as train

NAME = "world_lite0"
FILE = Path("given.h5")
GIVEN = GivenFeatures(dataset="world", images=str(FILE), backbone="given")


@pytest.fixture
def images(tmp_path, monkeypatch):
    """Go to a study without photos, and return its table of them."""
    monkeypatch.chdir(tmp_path)
    tiny_study.make(tmp_path)
    return read_images(Path("data/images/world.parquet"))


def taken(monkeypatch):
    run_stage(stage, NAME, monkeypatch, extractors={NAME: GIVEN})
    return read_features(Path(f"data/features/{NAME}.h5"))


@pytest.mark.parametrize(
    ("kind", "text"),
    [("f2", str), ("f4", str), ("f8", str), ("f4", str.encode), ("i4", str)],
)
def test_rows_are_found_by_name_in_any_order(images, monkeypatch, kind, text):
    """Whatever the numbers' type, compressed or not, and beside rows of other photos."""
    rng = np.random.default_rng(0)
    names = [*images["path"], "of/no/caption.jpg"]
    vectors = rng.integers(1, 2000, (len(names), 6)).astype(kind)
    order = rng.permutation(len(names))
    give(FILE, vectors[order], [text(names[row]) for row in order], compression="gzip")
    found = taken(monkeypatch)
    assert [*found.image_ids] == [*images["image_id"]]
    np.testing.assert_array_equal(found.vectors, vectors[:-1].astype("f4"))
    assert found.attributes["backbone"] == "given"


def test_names_that_were_written_as_bytes_are_utf8(tmp_path):
    photos = pd.DataFrame({"path": ["ä.jpg", "ö.jpg", "雪.jpg"]})
    give(tmp_path / "a.h5", np.eye(3), [name.encode() for name in photos["path"]])
    assert [*given_problems(tmp_path / "a.h5", photos)] == []


def test_each_chunk_is_read_once(images, monkeypatch):
    """In blocks of a few rows, of photos that stand in the file in any order."""
    monkeypatch.setattr(file_of_features, "_BLOCK_ROWS", 4)
    rng = np.random.default_rng(1)
    names, order = [*images["path"]], rng.permutation(len(images))
    vectors = rng.random((len(names), 5)).astype("f4")
    give(FILE, vectors[order], [names[row] for row in order], chunks=(3, 5), compression="gzip")
    with open_given(FILE) as (found, matrix):
        read, plain = [], h5py.Dataset.__getitem__
        monkeypatch.setattr(h5py.Dataset, "__getitem__", lambda *of: read.append(of) or plain(*of))
        rows = file_of_features._given_rows(matrix, found, images)
    assert [part for _, part in read] == [slice(n, n + 3) for n in range(0, len(names), 3)]
    np.testing.assert_array_equal(rows, vectors)


def test_what_was_extracted_and_given_again_trains_the_same_model(images, monkeypatch):
    path, names = Path(f"data/features/{NAME}.h5"), [*images["path"]]
    extracted = read_features(path)
    weights = Path(f"data/models/{tiny_study.NAME}/seed-1/weights.safetensors")
    CliRunner().invoke(train, [tiny_study.NAME], catch_exceptions=False)
    expected = weights.read_bytes()
    rows = [list(extracted.image_ids).index(each) for each in images["image_id"]]
    give(FILE, extracted.vectors[rows][::-1], names[::-1])
    taken(monkeypatch)
    weights.unlink()
    CliRunner().invoke(train, [tiny_study.NAME], catch_exceptions=False)
    assert weights.read_bytes() == expected


def test_rows_that_no_model_could_learn_from_are_named(images):
    vectors = np.ones((len(images), 3))
    vectors[1, 2], vectors[2] = 1e300, 0  # the first is infinite in float32
    give(FILE, vectors, [*images["path"]])
    [infinite, zero] = number_problems(FILE, images)
    assert "given.h5: 1 rows have NaN or infinity (first: '1.jpg')" in infinite
    assert "1 rows are all zero (first: '2.jpg')" in zero


def test_the_stage_names_the_users_file(images, monkeypatch):
    give(FILE, np.zeros((len(images), 3)), [*images["path"]])
    with refused(str(FILE), "are all zero"):
        taken(monkeypatch)
    assert not given_problems_of(images)  # its form is right


def test_rows_that_tell_no_photo_from_another_are_said_to(images):
    give(FILE, np.ones((len(images), 3)), [*images["path"]])
    [alike] = number_problems(FILE, images)
    assert f"expected vectors that tell images apart, found {len(images)} equal rows" in alike
    assert not [*number_problems(FILE, images[:1])]


def given_problems_of(images):
    return [*given_problems(FILE, images)]


def one(problems):
    [problem] = problems
    return problem


_HOLDS_IT_OPEN = """
import h5py, sys
with h5py.File(sys.argv[1], "a"):
    print("open", flush=True)
    sys.stdin.read()
"""


def test_a_file_that_another_program_writes_is_named(images):
    give(FILE, np.ones((len(images), 3)), [*images["path"]])
    words = [sys.executable, "-c", _HOLDS_IT_OPEN, str(FILE)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout.readline() == b"open\n"
        assert "given.h5: another program has it open to write" in one(given_problems_of(images))
        other.stdin.close()
    assert not given_problems_of(images)


def test_what_the_system_says_of_a_file_names_it(images, monkeypatch):
    give(FILE, np.ones((len(images), 3)), [*images["path"]])
    failed = Mock(side_effect=PermissionError(errno.EACCES, "Permission denied"))
    monkeypatch.setattr(h5py, "File", failed)
    with pytest.raises(PermissionError) as error, open_given(FILE):
        pass
    assert explained(error.value)[0].startswith("given.h5: ")


def test_photos_without_a_row_are_counted_and_a_name_of_the_file_is_shown(images):
    stems = [name.removesuffix(".jpg") for name in images["path"]]
    give(FILE, np.ones((len(images), 3)), stems)
    assert (
        f"{len(images)} of {len(images)} have no row (first: '0.jpg'). The {len(images)} rows are "
        "named like '0'"
    ) in one(given_problems_of(images))


def test_a_photo_of_two_rows_is_named(images):
    names = [*images["path"]]
    give(FILE, np.ones((len(images) + 1, 3)), [*names, names[2]])
    assert f"found '2.jpg' in the rows 3 and {len(names) + 1}" in one(given_problems_of(images))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"features": np.ones((3, 2))}, "found features. With h5py: file['features'] ="),
        ({}, "found nothing"),
        ({"features": np.ones(3), "image": ["a"] * 3}, "[rows, dim], found float64 (3,)"),
        ({"features": np.ones((1, 0)), "image": ["a"]}, "[rows, dim], found float64 (1, 0)"),
        ({"features": np.ones((3, 2)), "image": [1, 2, 3]}, "text [rows], found int64 (3,)"),
        ({"features": np.array([[b"a"]]), "image": ["a"]}, "numbers [rows, dim], found |S1"),
        ({"features": np.ones((3, 2)), "image": ["a", "b"]}, "each of the 3 rows, found 2"),
    ],
)
def test_another_form_is_refused(images, content, said):
    with h5py.File(FILE, "w") as file:
        for name, values in content.items():
            file[name] = values
    assert said in one(given_problems_of(images))


def test_a_file_that_claims_more_names_than_it_has_bytes_is_refused(images):
    with h5py.File(FILE, "w") as file:
        file.create_dataset("features", (10**12, 4), np.float32, chunks=(1, 4))
        file.create_dataset("image", (10**12,), h5py.string_dtype(), chunks=(1,))
    assert "expected 1,000,000,000,000 names" in one(given_problems_of(images))


@pytest.mark.parametrize("keep", [0, 100, 0.5])
def test_what_is_no_hdf5_is_refused(images, keep):
    give(FILE, np.ones((len(images), 3)), [*images["path"]])
    size = os.path.getsize(FILE)
    os.truncate(FILE, int(size * keep) if keep < 1 else keep)
    assert "given.h5: expected HDF5 of features" in one(given_problems_of(images))


def test_a_row_that_cannot_be_read_is_said_of_the_users_file(images, monkeypatch):
    give(FILE, np.ones((len(images), 1000)), [*images["path"]], compression="gzip")
    with h5py.File(FILE) as file:
        place = file["features"].id.get_chunk_info(0).byte_offset
    with open(FILE, "r+b") as file:
        file.seek(place)
        file.write(b"damaged!")
    with refused("given.h5: expected HDF5 of features", "or a damaged one"):
        taken(monkeypatch)
