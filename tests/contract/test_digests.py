"""Artefacts carry their digest: no changed byte of one passes, and older ones still load."""

import subprocess

import h5py
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline_lib.contract.digests import NO_DIGEST, check_sums, seal, write_sums
from pipeline_lib.contract.features import Features, read_features, write_features
from pipeline_lib.contract.problems import ContractError
from pipeline_lib.contract.tables import IMAGES, read_images, write_images
from pipeline_lib.contract.word_vectors import WordVectors, read_word_vectors, write_word_vectors

ROWS = pd.DataFrame({"image_id": ["d:1"], "dataset": "d", "split": "train", "path": ["1.jpg"]})


def image_table(path):
    write_images(ROWS, path)


def features(path, images=3, dim=8):
    vectors = np.random.default_rng(0).normal(size=(images, dim))
    ids = np.array([f"d:{number}" for number in range(images)], object)
    write_features(Features(ids, vectors, {"backbone": "x"}), path)


def word_vectors(path):
    matrix = np.ones((2, 3), np.float32)
    write_word_vectors(WordVectors({"en": (["a", "b"], matrix)}, ["d:1"], {"dim": 3}), path)


FORMS = {
    "table": (image_table, read_images),
    "features": (features, read_features),
    "word vectors": (word_vectors, read_word_vectors),
}


def changed(path, place, bit=1):
    content = bytearray(path.read_bytes())
    content[place] ^= bit
    path.write_bytes(content)


@pytest.mark.parametrize("form", FORMS)
def test_every_changed_byte_is_found_but_of_the_marks_own_name(tmp_path, form):
    write, read = FORMS[form]
    path = tmp_path / "x"
    write(path)
    whole = path.read_bytes()
    mark = whole.index(b"polyview-sha256:")
    name = range(mark, mark + 16)  # without it, the file is one of before there were digests
    for place in np.random.default_rng(1).choice(len(whole), 150, replace=False):
        changed(path, place)
        if place not in name:
            with pytest.raises(ContractError, match=str(path)):
                read(path)
        path.write_bytes(whole)
    read(path)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("share", [0, 0.1, 0.5, 0.99])
def test_a_file_that_is_cut_off_or_empty_is_named(tmp_path, form, share):
    write, read = FORMS[form]
    path = tmp_path / "x"
    write(path)
    path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])
    with pytest.raises(ContractError, match=r"x: expected .*dvc checkout") as error:
        read(path)
    assert "found an empty file" in str(error.value) or share


@pytest.mark.parametrize("form", FORMS)
def test_a_file_that_is_not_there_says_how_to_make_it(tmp_path, form):
    with pytest.raises(ContractError, match=r"x: not found\. Run dvc repro"):
        FORMS[form][1](tmp_path / "x")


def test_artefacts_of_before_there_were_digests_are_read(tmp_path):
    pq.write_table(pa.Table.from_pandas(ROWS, IMAGES, False), tmp_path / "t")
    assert len(read_images(tmp_path / "t")) == 1
    with h5py.File(tmp_path / "f", "w") as file:
        file.attrs["version"] = 1
        file.create_dataset("features", data=np.ones((1, 2), np.float32))
        file.create_dataset("image_id", data=["d:1"])
    assert read_features(tmp_path / "f").vectors.tolist() == [[1, 1]]


def test_the_digest_is_what_sha256sum_says_of_the_file_with_zeros_there(tmp_path):
    path = tmp_path / "x"
    features(path)
    content = path.read_bytes()
    start = content.index(b"polyview-sha256:") + 16
    digest = content[start : start + 64]
    zeros = content[:start] + 64 * b"0" + content[start + 64 :]
    found = subprocess.run(["sha256sum"], input=zeros, capture_output=True, check=True).stdout
    assert found.split()[0] == digest


def test_a_digest_needs_one_place(tmp_path):
    (tmp_path / "x").write_text(2 * NO_DIGEST)
    with pytest.raises(ContractError, match="once, in its attributes"):
        seal(tmp_path / "x")


def test_a_huge_claim_in_a_small_file_takes_no_memory(tmp_path):
    with h5py.File(tmp_path / "f", "w") as file:
        file.attrs["version"] = 1
        file.create_dataset("features", shape=(2**36, 100), dtype="f4")
        file.create_dataset("image_id", data=["d:1"])
    with pytest.raises(ContractError, match=r"expected float32, uncompressed; found float32 \(68"):
        read_features(tmp_path / "f")


def test_sums_are_those_of_sha256sum_and_name_every_changed_file(tmp_path):
    for name in ("b", "a"):
        (tmp_path / name).write_text(name)
    write_sums(tmp_path)
    subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=tmp_path, check=True)
    check_sums(tmp_path, ("a", "b"))
    (tmp_path / "a").write_text("other")
    (tmp_path / "b").unlink()
    with pytest.raises(ContractError, match=r"a: other bytes than[^$]*b: not found"):
        check_sums(tmp_path, ("a",))
    (tmp_path / "SHA256SUMS").unlink()
    check_sums(tmp_path, ("a",))  # a model of before there were digests
