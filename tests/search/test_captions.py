"""Training captions by their vectors, which are kept in the cache."""

import json
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
import pytest
import tiny
import tiny_photos

from pipeline_lib.contract.tables import write_pairs
from pipeline_lib.models.embedder import Embedder
from pipeline_lib.search.captions import Captions, load_captions, study_captions


@pytest.mark.parametrize("damage", [None, b"", b"\x93NUMPY", "cut", "flip", "gone"])
def test_vectors_are_kept_and_made_anew_where_they_are_damaged(
    colours, tmp_path, monkeypatch, damage
):
    write_pairs(tiny_photos.captions(), tmp_path / "pairs.parquet")
    embedder, asked = Embedder.load(colours / "model"), []

    def load():
        return load_captions(embedder, tmp_path / "pairs.parquet", tmp_path)

    before = load()
    [kept] = tmp_path.glob("captions-*/en.npy")
    whole = kept.read_bytes()
    if damage == "gone":
        kept.unlink()
    elif damage is not None:
        kept.write_bytes({"cut": whole[:-9], "flip": whole[:-1] + b"\1"}.get(damage, damage))
    embed = embedder.embed_sentences
    monkeypatch.setattr(
        embedder, "embed_sentences", lambda *given: [asked.append(1), embed(*given)][1]
    )
    after = load()
    assert bool(asked) == (damage is not None)
    for language, vectors in before.vectors.items():
        np.testing.assert_array_equal(after.vectors[language], vectors)


def test_captions_are_those_that_the_models_seed_learnt_from(colours, tmp_path):
    """Each seed of pseudopairs has a teacher of its own."""
    pairs = tiny_photos.captions()
    lent = pairs[pairs["language"] == "en"].head(2)
    lent = lent.assign(caption_id=["lent/1", "lent/2"], seed=[1, 2])
    lent["text"] = ["lent by teacher one", "lent by teacher two"]
    write_pairs(pd.concat([pairs, lent], ignore_index=True), tmp_path / "pairs.parquet")
    for name, expected in (("seed-1", {"one"}), ("seed-2", {"two"}), ("exported", {"one", "two"})):
        embedder = Embedder.load(shutil.copytree(colours / "model", tmp_path / name))
        captions = load_captions(embedder, tmp_path / "pairs.parquet", tmp_path / "cache")
        english = captions.texts["en"]
        assert {text.split()[-1] for text in english if "lent" in text} == expected
        assert len(captions.vectors["en"]) == len(english)


def test_vectors_of_another_version_of_the_captions_or_the_model_replace_the_old(colours, tmp_path):
    model = shutil.copytree(colours / "model", tmp_path / "model")
    embedder, table = Embedder.load(model), tmp_path / "pairs.parquet"
    for version in ("first", "other captions", "other model"):
        pairs = tiny_photos.captions()
        if version != "first":
            pairs.loc[pairs["text"] == "a red photo", "text"] = "a white photo with red"
        if version == "other model":
            (model / "recipe.json").write_text("{}")
        write_pairs(pairs, table)
        captions = load_captions(embedder, table, tmp_path / "cache")
        for language, texts in captions.texts.items():
            expected = embedder.embed_sentences(texts, language)
            np.testing.assert_allclose(captions.vectors[language], expected, atol=1e-6)
        assert len([*(tmp_path / "cache").iterdir()]) == 1
    again = shutil.copy(table, tmp_path / "again.parquet")
    load_captions(embedder, again, tmp_path / "cache")
    assert len([*(tmp_path / "cache").iterdir()]) == 2


def test_captions_of_validation_explain_nothing(colours, tmp_path):
    embedder, pairs = Embedder.load(colours / "model"), tiny_photos.captions()
    pairs.loc[pairs["split"] == "val", "text"] = "a photo of validation"
    assert (pairs["split"] == "val").any()
    write_pairs(pairs, tmp_path / "pairs.parquet")
    captions = load_captions(embedder, tmp_path / "pairs.parquet", tmp_path)
    trained = pairs[pairs["split"] == "train"]
    for language, texts in captions.texts.items():
        assert texts == sorted(set(trained.loc[trained["language"] == language, "text"]))


def test_captions_near_a_photo_are_those_of_the_models_similarity(tmp_path):
    """The order similarity of a photo and a caption is none of a caption and a photo."""
    space = tiny.space(tiny.recipe(similarity="order", absolute=True))
    embedder = Embedder(space, tiny.PREPROCESSING)
    photo, general = np.float32([3, 1, 0]), np.float32([[1, 1, 0], [3, 1, 2]])
    captions = Captions({"en": ["what the photo has", "more than it has"]}, {"en": general})
    assert captions.near_photo(embedder, photo, 1) == {"en": ["what the photo has"]}
    swapped = Captions(
        {"en": ["what has the photo", "less"]}, {"en": np.float32([[4, 2, 1], [1, 0, 0]])}
    )
    assert swapped.near_photo(embedder, photo, 1) == {"en": ["less"]}


def test_a_model_in_its_study_has_its_captions(tmp_path):
    model = tmp_path / "data/models/mule/seed-1"
    model.mkdir(parents=True)
    assert study_captions(model) is None
    (model / "recipe.json").write_text('{"pairs": "world"}')
    assert study_captions(model) is None
    table = tmp_path / "data/pairs/world.parquet"
    table.parent.mkdir()
    table.touch()
    assert study_captions(model) == table


@pytest.mark.parametrize("name", ["../world", "", None, ["world"]])
def test_a_model_names_no_captions_outside_its_study(tmp_path, name):
    model = tmp_path / "data/models/mule/seed-1"
    model.mkdir(parents=True)
    (model / "recipe.json").write_text(json.dumps({"pairs": name}))
    (tmp_path / "data/pairs").mkdir()
    for place in ("world", "pairs/None", "pairs/"):
        (tmp_path / f"data/{place}.parquet").touch()
    assert study_captions(model) is None


def test_a_model_near_the_root_of_the_disk_has_none():
    with TemporaryDirectory(dir="/tmp") as model:
        Path(model, "recipe.json").write_text('{"pairs": "world"}')
        assert study_captions(Path(model)) is None
