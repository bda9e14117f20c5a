import time

import h5py
import numpy as np
import pandas as pd
import pytest
from refusals import refused

from pipeline_lib.contract.features import Features, empty_features, read_features, write_features
from pipeline_lib.contract.hdf5 import text_of
from pipeline_lib.contract.problems import ContractError
from pipeline_lib.contract.reports import best_validation
from pipeline_lib.contract.tables import (
    check_captions_have_images,
    empty_pairs,
    read_captions,
    read_pairs,
    write_captions,
    write_images,
    write_pairs,
)


def captions(**changes):
    row = {
        "caption_id": ["d/2/en/caption/0", "d/1/en/caption/0"],
        "image_id": ["d:2", "d:1"],
        "dataset": ["d", "d"],
        "split": ["train", "val"],
        "language": ["en", "en"],
        "annotation": ["caption", "caption"],
        "position": [0, 0],
        "text": ["a dog", "two cats"],
        "tokens": [["a", "dog"], ["two", "cats"]],
        "source_caption_id": [None, None],
    }
    return pd.DataFrame(row | changes)


def images(**changes):
    row = {"image_id": ["d:1", "d:2"], "dataset": "d", "split": ["val", "train"]}
    return pd.DataFrame(row | {"path": ["1.jpg", "2.jpg"]} | changes)


def test_captions_round_trip_sorted_by_id(tmp_path):
    path = tmp_path / "captions.parquet"
    write_captions(captions(), path)
    found = read_captions(path)
    assert found["caption_id"].tolist() == ["d/1/en/caption/0", "d/2/en/caption/0"]
    assert found["tokens"].tolist() == [["two", "cats"], ["a", "dog"]]
    assert found["source_caption_id"].isna().all()


def test_equal_content_gives_equal_bytes(tmp_path):
    write_captions(captions(), tmp_path / "a")
    write_captions(captions()[::-1], tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    for name in "cd":
        write_features(
            Features(np.array(["x"], object), np.ones((1, 3)), {"k": 1}), tmp_path / name
        )
    assert (tmp_path / "c").read_bytes() == (tmp_path / "d").read_bytes()


def test_all_problems_of_a_table_are_listed_at_once(tmp_path):
    broken = captions(
        caption_id=["same", "same"],
        annotation=["caption", "guess"],
        text=["cafe\u0301", "ok"],
        tokens=[[], ["ok"]],
    )
    with refused("4 problem(s)", "repeated", "annotation", "NFC", "no token", "'same'"):
        write_captions(broken, tmp_path / "captions.parquet")
    assert not list(tmp_path.iterdir())


def test_a_missing_column_and_a_foreign_file_are_named(tmp_path):
    with pytest.raises(ContractError, match="columns missing: tokens"):
        write_captions(captions().drop(columns="tokens"), tmp_path / "c")
    write_images(images(), tmp_path / "i")
    with pytest.raises(ContractError, match="expected columns"):
        read_captions(tmp_path / "i")


def test_captions_need_their_image_with_the_same_split():
    check_captions_have_images(captions(), images())
    with pytest.raises(ContractError, match="lacks"):
        check_captions_have_images(captions(), images()[:1])
    with pytest.raises(ContractError, match="another split"):
        check_captions_have_images(captions(), images(split="test"))


def test_an_absolute_image_path_is_refused(tmp_path):
    with pytest.raises(ContractError, match="absolute"):
        write_images(images(path=["/x/1.jpg", "2.jpg"]), tmp_path / "i")


@pytest.mark.parametrize("path", ["../1.jpg", "a/../../1.jpg", "a/.."])
def test_a_path_that_leaves_the_folder_of_photos_is_refused(tmp_path, path):
    with pytest.raises(ContractError, match=r"leaves the folder \(first: "):
        write_images(images(path=[path, "2..jpg"]), tmp_path / "i")


def test_features_of_another_version_are_refused(tmp_path, monkeypatch):
    with monkeypatch.context() as old:
        old.setattr("pipeline_lib.contract.features.FEATURES_VERSION", 0)
        write_features(many_features(), tmp_path / "f.h5")
    with pytest.raises(ContractError, match="version"):
        read_features(tmp_path / "f.h5")


def test_features_round_trip_contiguous_and_uncompressed(tmp_path):
    vectors = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
    made = Features(np.array(["d:1", "d:ü", "d:3"], object), vectors, {"crops": 10})
    write_features(made, tmp_path / "f.h5")
    found = read_features(tmp_path / "f.h5")
    np.testing.assert_array_equal(found.vectors, vectors)
    assert found.image_ids.tolist() == ["d:1", "d:ü", "d:3"]
    assert found.attributes == {"crops": 10}
    with h5py.File(tmp_path / "f.h5") as file:
        assert file["features"].chunks is None
        assert file["features"].compression is None
        assert file["features"].dtype == np.float32


def many_features(count=10):
    vectors = np.random.default_rng(0).normal(size=(count, 4)).astype(np.float32)
    ids = np.array([f"d:{number}ü" for number in range(count)], object)
    return Features(ids, vectors, {"crops": 10})


def test_features_of_many_images_are_shards_behind_a_front(tmp_path):
    made = many_features()
    for name in ("a", "b"):
        write_features(made, tmp_path / name, shard_rows=4)
        time.sleep(1.1)  # seconds, in which HDF5 would count the time of writing
    found = read_features(tmp_path / "a")
    np.testing.assert_array_equal(found.vectors, made.vectors)
    assert found.image_ids.tolist() == made.image_ids.tolist()
    assert found.attributes == made.attributes
    names = ["000000000000.h5", "000000000004.h5", "000000000008.h5", "all.h5"]
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == names
    for name in names:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    last = read_features(tmp_path / "a" / names[2])
    np.testing.assert_array_equal(last.vectors, made.vectors[8:])
    with h5py.File(tmp_path / "a" / "all.h5") as file:
        assert file["features"].id.get_storage_size() == 0
        np.testing.assert_array_equal(file["features"][3:5], made.vectors[3:5])


def test_as_many_images_as_a_shard_has_are_one_file(tmp_path):
    write_features(many_features(4), tmp_path / "f", shard_rows=4)
    assert (tmp_path / "f").is_file()


def test_a_text_that_claims_to_be_longer_than_its_file_is_refused_before_room_is_made(tmp_path):
    """Two gigabytes of room, where one number of the file is damaged."""
    names = np.array([f"flickr8k:{number:09d}" for number in range(50)], object)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        texts = file.create_dataset("image_id", data=names, dtype=h5py.string_dtype())
        entry = texts.id.get_offset() + 5 * 16
    content = bytearray((tmp_path / "a.h5").read_bytes())
    assert content[entry : entry + 4] == len(names[0]).to_bytes(4, "little")
    with h5py.File(tmp_path / "a.h5") as file:
        assert text_of(file["image_id"]).tolist() == names.tolist()
    content[entry : entry + 4] = (2**31 - 1).to_bytes(4, "little")
    (tmp_path / "a.h5").write_bytes(content)
    with (
        h5py.File(tmp_path / "a.h5") as file,
        pytest.raises(ContractError, match=r"image_id: expected \(50,\) texts, found less"),
    ):
        text_of(file["image_id"])


def test_features_may_be_moved_with_their_shards(tmp_path):
    write_features(many_features(), tmp_path / "a", shard_rows=4)
    (tmp_path / "a").rename(tmp_path / "b")
    np.testing.assert_array_equal(read_features(tmp_path / "b").vectors, many_features().vectors)


@pytest.mark.parametrize(("damage", "message"), [("lost", "not found"), ("changed", "other bytes")])
def test_a_lost_or_changed_shard_is_no_row_of_zeros(tmp_path, damage, message):
    write_features(many_features(), tmp_path / "f", shard_rows=4)
    shard = tmp_path / "f" / "000000000004.h5"
    if damage == "lost":
        shard.unlink()
    else:
        write_features(many_features(4), shard)
    with pytest.raises(ContractError, match=rf"000000000004.h5: {message}"):
        read_features(tmp_path / "f")


@pytest.mark.parametrize(
    ("ids", "vectors", "message"),
    [
        (["a", "a"], [[1.0], [2.0]], "repeated"),
        (["a", "b"], [[1.0], [np.nan]], "NaN"),
        (["a", "b"], [[1.0], [0.0]], "all zero"),
        (["a"], [[1.0], [2.0]], r"found ids \(1,\), vectors \(2, 1\)"),
        ([["a"], ["b"]], [[1.0], [2.0]], r"found ids \(2, 1\), vectors \(2, 1\)"),
    ],
)
def test_bad_features_are_refused(tmp_path, ids, vectors, message):
    with pytest.raises(ContractError, match=message):
        write_features(Features(np.array(ids, object), np.array(vectors), {}), tmp_path / "f")


def test_the_empty_artefacts_are_valid(tmp_path):
    write_pairs(empty_pairs(), tmp_path / "p")
    write_features(empty_features(), tmp_path / "f")
    assert len(read_pairs(tmp_path / "p")) == 0
    assert len(read_features(tmp_path / "f").image_ids) == 0


def test_a_validation_of_pretraining_is_never_the_best():
    history = pd.DataFrame(
        {"update": [5, 10, 15], "epoch": [0.0, 0.5, 1.0], "recall_sum": [500.0, 400.0, 450.0]}
    )
    assert best_validation(history, "recall_sum")["update"] == 15
    assert best_validation(history[:1], "recall_sum")["update"] == 5
