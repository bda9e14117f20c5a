"""Flickr8k as a clone of Flickr8k-CN's repository has it: the same corpus as from our tables."""

import shutil
from pathlib import Path

import pandas as pd
import pytest
from raw_corpora import FLICKR8K_IMAGES, texts, write_flickr8k, write_flickr8k_clone, write_lines

from pipeline_lib.contract.problems import ContractError
from pipeline_lib.corpora.flickr8k import read_flickr8k

LANGUAGES = ["en", "zh", "ja", "de", "fr", "cs"]


def read(raw: Path, languages=LANGUAGES, split="flickr8k_split"):
    return read_flickr8k(raw, "f", languages=languages, split_column=split)


def splits(corpus, images=()) -> dict[str, str]:
    """Return the split of each image, or of some."""
    found = corpus.images.set_index("image_id")["split"]
    return found[[*images] or found.index].to_dict()


def of_images(table: pd.DataFrame, images) -> pd.DataFrame:
    """Return the rows of some images, in an order of their own."""
    rows = table[table["image_id"].isin(images)]
    return rows.sort_values(table.columns[0]).reset_index(drop=True)


def test_it_holds_what_the_tables_hold(tmp_path):
    tables, clone = (
        read(write(tmp_path / write.__name__)) for write in (write_flickr8k, write_flickr8k_clone)
    )
    both = {"flickr:11", "flickr:21", "flickr:31"}  # 12 has no caption in Flickr8k
    pd.testing.assert_frame_equal(of_images(clone.captions, both), of_images(tables.captions, both))
    assert splits(clone, both) == splits(tables, both)
    paths = clone.images.set_index("image_id")["path"]
    assert paths[["flickr:11", "flickr:13"]].tolist() == ["11_11ab.jpg", "13_13ab.jpg"]


def test_photos_are_those_that_multi30k_has_too_where_it_is_read(tmp_path):
    raw = write_flickr8k_clone(tmp_path)
    listed = {"flickr:11": "train", "flickr:31": "val", "flickr:21": "test"}
    assert splits(read(raw, ["en", "fr"])) == {**listed, "flickr:13": "train"}
    assert splits(read(raw, ["en"], "multi30k_split")) == {
        "flickr:11": "train",
        "flickr:13": "train",
        "flickr:21": "val",
        "flickr:31": "test",
    }
    shutil.rmtree(raw / "multi30k")
    assert splits(read(raw, ["zh"])) == {**listed, "flickr:24": "test"}
    assert splits(read(raw, ["en"])) == {
        **listed,
        "flickr:13": "train",  # in none of Flickr8k's splits
        "flickr:24": "test",
    }


@pytest.mark.parametrize("languages", [["fr"], ["de"], ["de", "ja"], ["en", "de"]])
@pytest.mark.parametrize("split", ["flickr8k_split", "multi30k_split"])
def test_photos_in_no_split_do_not_depend_on_the_languages(tmp_path, languages, split):
    raw = write_flickr8k_clone(tmp_path)
    assert splits(read(raw, languages, split))["flickr:13"] == "train"


def test_translations_into_chinese_name_their_source(tmp_path):
    rows = read(write_flickr8k_clone(tmp_path), ["en", "zh"]).captions.set_index("caption_id")
    assert rows.loc["f/21/zh/translation/3", "source_caption_id"] == "f/21/en/caption/3"


def test_tables_of_our_layout_come_first(tmp_path):
    raw = write_flickr8k_clone(tmp_path)
    write_lines(raw / "flickr8k" / "images.csv", FLICKR8K_IMAGES)
    with pytest.raises(ContractError, match=r"en\.human\.tsv: expected this file"):
        read(raw, ["en"])


def test_every_problem_is_listed_with_its_file_and_line(tmp_path):
    raw = write_flickr8k_clone(tmp_path)
    data = raw / "flickr8kcn" / "data"
    english = data / "flickr8kenc.caption.txt"
    lines = english.read_text().splitlines()
    lines[0] = lines[0].replace("#enc#0 ", "#enc ")
    lines[1] = lines[1].replace("#enc#1 ", "#enc#7 ")
    lines = [line for line in lines if not line.startswith("24_24ab.jpg#enc#4")]  # is not read
    write_lines(english, lines)
    write_lines(data / "flickr8kval.txt", ["31_31ab", "11_11ab", "photo"])
    (data / "flickr8kzhmtest.captions.txt").unlink()
    with pytest.raises(ContractError) as caught:
        read(raw, ["en", "zh", "fr"])
    expected = [
        "flickr8kenc.caption.txt:1: expected FILE.jpg#KIND#NUMBER TEXT, found '11_11ab.jpg#enc ",
        "flickr8kenc.caption.txt:2: expected a number from 0 to 4, found '7'",
        "flickr8kenc.caption.txt:2: expected 5 captions of the photo, found 4",
        "flickr8kzhmtest.captions.txt: expected this file",
        "flickr8kval.txt:3: expected a photo such as 10815824_2997e03d76, found 'photo'",
        "flickr8kval.txt:2: expected each photo in one split, once, found '11_11ab'",
    ]
    found = [line for line in str(caught.value).splitlines() if line.startswith("  - ")]
    assert [part for part in expected if not any(part in line for line in found)] == []
    assert len(found) == len(expected), found


def test_an_unknown_photo_of_the_japanese_table_is_named(tmp_path):
    raw = write_flickr8k_clone(tmp_path)
    with open(raw / "flickr8k/captions/ja.machine_translation.tsv", "a") as file:
        for number in range(5):
            file.write(f"24\t{number}\tNot in Multi30k.\n")
        file.write("99\t0\tUnknown.\n")
    with pytest.raises(ContractError) as caught:
        read(raw, ["en", "ja", "fr"])
    assert "tsv:22: expected a photo of Flickr8k-CN, found '99'" in str(caught.value)
    assert "'24'" not in str(caught.value)


@pytest.mark.real_data
def test_real_captions_come_through_it_unchanged(real_data, tmp_path):
    """Ours were taken from it: written as it has them, they are read as from our tables."""
    ours, data = real_data / "flickr8k", tmp_path / "flickr8kcn" / "data"
    (tmp_path / "multi30k").symlink_to(real_data / "multi30k")
    photos = pd.read_csv(ours / "images.csv", dtype=str, keep_default_na=False)
    for split, rows in photos.groupby("flickr8k_split"):
        if split:
            write_lines(data / f"flickr8k{split}.txt", [*(rows["image_id"] + "_0ab")])
    for name, file in {
        "en.human": "flickr8kenc.caption.txt",
        "zh.human": "flickr8kzhc.caption.txt",
        "zh.human_translation": "flickr8kzhmtest.captions.txt",
    }.items():
        table = (ours / "captions" / f"{name}.tsv").read_text("utf-8").split("\n")[1:-1]
        rows = [line.split("\t") for line in table]
        write_lines(data / file, [f"{photo}_0ab.jpg#k#{n} {text}" for photo, n, text in rows])
    languages = ["en", "zh", "de", "fr"]
    clone, tables = read(tmp_path, languages), read(real_data, languages)
    captioned = clone.images["image_id"]
    assert len(captioned) == 7_473  # 34 others have Multi30k's captions alone
    pd.testing.assert_frame_equal(
        of_images(clone.captions, captioned), of_images(tables.captions, captioned)
    )
    assert texts(clone, language="zh", image_id="flickr:3637013")
    assert splits(clone) == splits(tables, captioned)
