import h5py
import numpy as np
import pandas as pd
import pytest

from pipeline_lib.contract.features import Features, empty_features, read_features, write_features
from pipeline_lib.contract.problems import ContractError
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
    with pytest.raises(ContractError) as error:
        write_captions(broken, tmp_path / "captions.parquet")
    message = str(error.value)
    for part in ("4 problem(s)", "repeated", "annotation", "NFC", "no token", "'same'"):
        assert part in message
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


@pytest.mark.parametrize(
    ("ids", "vectors", "message"),
    [
        (["a", "a"], [[1.0], [2.0]], "repeated"),
        (["a", "b"], [[1.0], [np.nan]], "NaN"),
        (["a", "b"], [[1.0], [0.0]], "all zero"),
        (["a"], [[1.0], [2.0]], "1 ids"),
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
