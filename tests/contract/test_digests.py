"""Artefacts carry their digest: no changed byte of one passes, and none without it."""

import errno
import subprocess

import h5py
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from shell import python

from pipeline_lib.contract.digests import NO_DIGEST, check_sums, reading, seal, write_sums
from pipeline_lib.contract.features import Features, read_features, write_features
from pipeline_lib.contract.hdf5 import writing_hdf5
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
def test_every_changed_byte_is_found(tmp_path, form):
    write, read = FORMS[form]
    path = tmp_path / "x"
    write(path)
    whole = path.read_bytes()
    mark = whole.index(b"polyview-sha256:")
    places = np.random.default_rng(1).choice(len(whole), 150, replace=False)
    for place in [*range(mark, mark + 16), *places]:
        changed(path, place)
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


def test_artefacts_without_digest_are_refused(tmp_path):
    pq.write_table(pa.Table.from_pandas(ROWS, IMAGES, False), tmp_path / "t")
    with pytest.raises(ContractError, match=r"t: expected a Parquet table with a digest, found"):
        read_images(tmp_path / "t")
    unsealed_features(tmp_path / "f")
    with pytest.raises(ContractError, match=r"f: expected vectors in HDF5 with a digest, found"):
        read_features(tmp_path / "f")


def unsealed_features(path):
    with h5py.File(path, "w") as file:
        file.attrs["version"] = 1
        file.create_dataset("features", data=np.ones((50, 8), np.float32))
        file.create_dataset("image_id", data=[f"flickr8k:{number:09d}" for number in range(50)])


READS = """
import sys
from pathlib import Path
from pipeline_lib.contract.features import read_features
read_features(Path(sys.argv[1]))
"""


def test_libhdf5_never_sees_a_file_from_which_it_does_not_return(tmp_path):
    """A heap of texts whose free space says of itself that it is 0 bytes long is read forever."""
    unsealed_features(tmp_path / "f")
    content = bytearray((tmp_path / "f").read_bytes())
    first = content.index(b"GCOL") + 16
    content[first : first + 16] = bytes(16)
    (tmp_path / "f").write_bytes(content)
    # In a process that can be killed: libhdf5 reacts to no other signal.
    ended = python(READS, tmp_path / "f", fails=True, timeout=120)
    assert "with a digest, found a file without one" in ended.stderr


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
    with writing_hdf5(tmp_path / "f", 1, {}) as file:
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


@pytest.mark.parametrize("number", [errno.EACCES, errno.EMFILE, errno.EIO])
def test_a_file_that_the_system_does_not_read_is_not_called_damaged(tmp_path, number):
    """Whoever deletes it, as they were told to, loses it for nothing."""
    (tmp_path / "a").write_text("whole")
    with pytest.raises(OSError, match=r"/a'$") as raised, reading(tmp_path / "a", "a table"):
        raise OSError(number, "no")
    assert (raised.value.errno, raised.value.filename) == (number, str(tmp_path / "a"))
    with pytest.raises(ContractError, match="damaged"), reading(tmp_path / "a", "a table"):
        raise OSError("magic bytes not found")
