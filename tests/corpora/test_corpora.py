"""Readers of raw corpora, against files written here and against the real data's own counts."""

import csv
import errno
import gzip
import json
import random
import unicodedata
from pathlib import Path

import pandas as pd
import pytest
from raw_corpora import (
    FLICKR8K_IMAGES,
    MULTI30K_LISTS,
    NO_CZECH,
    texts,
    write_flickr8k,
    write_lines,
    write_multi30k,
)

from pipeline_lib.contract.problems import ContractError
from pipeline_lib.contract.tables import (
    check_captions_have_images,
    read_captions,
    write_captions,
    write_images,
)
from pipeline_lib.corpora import multi30k
from pipeline_lib.corpora.corpus import CAPTION_COLUMNS, Corpus
from pipeline_lib.corpora.own_captions import _in_circles as in_circles
from pipeline_lib.corpora.parallel import parallel_text
from pipeline_lib.corpora.readers import READERS, read_corpus
from pipeline_lib.running.edge import explained

ALL_SPLITS = [split.name for split in multi30k.SPLITS]
MULTI30K = {"languages": ["en", "de", "fr", "cs"], "splits": ALL_SPLITS}
BY_ITS_COLUMN = {"split_column": "flickr8k_split"}
FLICKR8K = {"languages": ["en", "zh", "ja", "de", "fr", "cs"], **BY_ITS_COLUMN}
COCO = {"languages": ["en", "ja", "zh"], "japanese": "stair", "splits": "karpathy"}


KARPATHY = [
    (391895, "val", "test", 5),
    (57870, "train", "train", 5),
    (60623, "val", "restval", 6),
    (184613, "val", "val", 5),
]
"""COCO id, folder of 2014, Karpathy's split, number of captions."""


def coco_name(number: int, folder: str) -> str:
    return f"COCO_{folder}2014_{number:012d}"


def write_coco(raw: Path) -> Path:
    images = [
        {
            "filepath": f"{folder}2014",
            "filename": f"{coco_name(number, folder)}.jpg",
            "imgid": place,
            "cocoid": number,
            "split": split,
            "sentids": list(range(count)),
            "sentences": [
                {"raw": f" {number} in  English {i}\n", "sentid": i} for i in range(count)
            ],
        }
        for place, (number, folder, split, count) in enumerate(KARPATHY)
    ]
    write_json(raw / "dataset_coco.json", {"images": images, "dataset": "coco"})
    for part in ("train", "val"):
        numbers = [number for number, folder, *_ in KARPATHY if folder == part]
        write_json(raw / f"stair_captions_v1.2_{part}.json", annotations(numbers, "STAIR"))
    write_json(raw / "yjcaptions26k_clean.json", annotations([57870], "YJ"))
    shown = {"train": (391895, "val"), "val": (60623, "val"), "test": (57870, "train")}
    written = [f"{coco_name(*image)}#0\t{split} 手写" for split, image in shown.items()]
    written.append(f"{coco_name(57870, 'train')}#1\ttest 第二")
    write_lines(raw / "imageid.human-written-caption.txt", written)
    translated = [f"{coco_name(57870, 'train')}#zhm#{i} 翻译 {i}" for i in range(5)]
    write_lines(raw / "imageid.manually-translated-caption.txt", translated)
    return raw


def annotations(numbers: list[int], what: str) -> dict:
    """Return captions in COCO's format, listed from the last id to the first."""
    rows = [
        {"id": 10 * number + i, "image_id": number, "caption": f"{what} {number} {i}"}
        for number in numbers
        for i in range(5)
    ]
    return {"images": [{"id": number} for number in numbers], "annotations": rows[::-1]}


def write_json(path: Path, content: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")


def edit_json(path: Path, edit) -> None:
    content = json.loads(path.read_text(encoding="utf-8"))
    edit(content)
    write_json(path, content)


TABLE = [
    "image\tsplit\tlanguage\tannotation\tposition\ttext\ttranslation_of",
    "a.jpg\ttrain\ten\tcaption\t0\tA red ball.\t",
    "a.jpg\ttrain\ten\tcaption\t1\t A\u00a0ball \t",
    "a.jpg\ttrain\tde\ttranslation\t0\tEin Ba\u0308r.\ten/caption/1",
    "b.png\ttest\tde\tcaption\t0\tEin \u201eHut\u201c.\t",
]


def write_table(raw: Path, lines: list[str] = TABLE) -> Path:
    write_lines(raw / "captions.tsv", lines)
    for name in ("a.jpg", "b.png"):
        write_lines(raw / "images" / name, ["an image"])
    return raw


def sizes(corpus: Corpus) -> dict[tuple, int]:
    return corpus.captions.groupby(["split", "language", "annotation"]).size().to_dict()


def sources(corpus: Corpus) -> dict[str, str]:
    rows = corpus.captions.dropna(subset=["source_caption_id"])
    return dict(zip(rows["caption_id"], rows["source_caption_id"], strict=True))


def failure(reader: str, raw: Path, **options: object) -> str:
    with pytest.raises(ContractError) as caught:
        READERS[reader](raw, "set", **options)
    return str(caught.value)


def assert_lists(message: str, *expected: str) -> None:
    """Assert that the error lists exactly these problems, each by a part of its line."""
    listed = [line for line in message.splitlines() if line.startswith("  - ")]
    missing = [part for part in expected if not any(part in line for line in listed)]
    assert not missing, message
    assert len(listed) == len(expected), message


def write_bitext(folder: Path) -> Path:
    for split, count in (("train", 3), ("val", 2)):
        for language in ("en", "de", "fr", "cs"):
            lines = [f"{language} sentence {number}" for number in range(count)]
            write_lines(folder / f"{split}.{language}", lines, zipped=language != "en")
    return folder


SYNTHETIC = [
    ("table", write_table, {}),
    ("multi30k", write_multi30k, MULTI30K),
    ("flickr8k", write_flickr8k, FLICKR8K),
    ("coco", write_coco, COCO),
    ("bitext", write_bitext, {"languages": ["en", "de", "fr"]}),
]

every_reader = pytest.mark.parametrize(
    ("reader", "write", "options"), SYNTHETIC, ids=[reader for reader, *_ in SYNTHETIC]
)


@every_reader
def test_every_reader_meets_the_contract(tmp_path, reader, write, options):
    corpus = READERS[reader](write(tmp_path), "set", **options)
    assert list(corpus.captions) == CAPTION_COLUMNS
    check_captions_have_images(corpus.captions, corpus.images)
    assert set(corpus.images["image_id"]) == set(corpus.captions["image_id"])
    tokens = corpus.captions["text"].str.split().map(list)
    write_captions(corpus.captions.assign(tokens=tokens), tmp_path / "captions.parquet")
    write_images(corpus.images, tmp_path / "images.parquet")
    stored = read_captions(tmp_path / "captions.parquet")
    assert len(stored) == len(corpus.captions) > 3
    assert stored["source_caption_id"].notna().sum() == len(sources(corpus))


def test_the_synthetic_corpora_cover_every_reader():
    assert {reader for reader, *_ in SYNTHETIC} == set(READERS)


@every_reader
def test_reading_twice_gives_equal_tables(tmp_path, reader, write, options):
    first, second = (READERS[reader](write(tmp_path), "set", **options) for _ in range(2))
    pd.testing.assert_frame_equal(first.captions, second.captions)
    pd.testing.assert_frame_equal(first.images, second.images)


@pytest.mark.parametrize("reader", ["multi30k", "flickr8k", "coco"])
def test_languages_that_a_reader_lacks_are_named(tmp_path, reader):
    _, write, options = next(entry for entry in SYNTHETIC if entry[0] == reader)
    message = failure(reader, write(tmp_path), **{**options, "languages": ["en", "xx", "en"]})
    assert_lists(message, "found xx", "one or more different ones")


# bitext


def test_bitext_pairs_line_n_of_each_language(tmp_path):
    corpus = READERS["bitext"](write_bitext(tmp_path), "set", languages=["de", "en"])
    assert sorted(corpus.captions["language"].unique()) == ["de", "en"]
    pairs = parallel_text(corpus.captions, "en", "de")
    assert pairs["source"].tolist() == [
        *(f"en sentence {number}" for number in range(3)),
        *(f"en sentence {number}" for number in range(2)),
    ]
    assert (pairs["target"] == pairs["source"].str.replace("en", "de", n=1)).all()
    assert pairs["split"].tolist() == ["train"] * 3 + ["val"] * 2
    assert pairs["image_id"].is_unique


def test_bitext_reads_lines_that_end_with_a_carriage_return_alone(tmp_path):
    whole = READERS["bitext"](write_bitext(tmp_path), "set", languages=["de", "en"])
    for path in tmp_path.rglob("*.en"):
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r"))
    old = READERS["bitext"](tmp_path, "set", languages=["de", "en"])
    pd.testing.assert_frame_equal(old.captions, whole.captions)


def test_bitext_reads_no_hidden_file_as_a_split(tmp_path):
    write_bitext(tmp_path)
    (tmp_path / "._train.en").write_bytes(b"\0\5\x16\7")  # of an archive that a Mac made
    (tmp_path / ".en").write_text("an editor's\n")
    corpus = READERS["bitext"](tmp_path, "set", languages=["de", "en"])
    assert [*corpus.captions["split"].unique()] == ["train", "val"]


def test_bitext_lists_every_problem(tmp_path):
    write_bitext(tmp_path)
    write_lines(tmp_path / "train.de", ["eins", "", "drei", "vier"])  # before train.de.gz
    (tmp_path / "val.en").unlink()
    message = failure("bitext", tmp_path, languages=["en", "de"])
    assert_lists(
        message,
        "train.de:2: expected a caption, found no text",
        "train.*: expected as many lines in each language, found en 3, de 4",
        "val.en: expected this file (or val.en.gz), found none",
        "val.*: expected as many lines in each language, found en 0, de 2",
    )
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "expected the files <split>.en, <split>.de, found none" in failure(
        "bitext", empty, languages=["en", "de"]
    )


# table


def test_table_reads_ids_texts_and_sources(tmp_path):
    corpus = READERS["table"](write_table(tmp_path), "mine")
    assert corpus.images.to_dict("records") == [
        {"image_id": "mine:a", "dataset": "mine", "split": "train", "path": "a.jpg"},
        {"image_id": "mine:b", "dataset": "mine", "split": "test", "path": "b.png"},
    ]
    assert texts(corpus, language="en") == ["A red ball.", "A ball"]
    assert texts(corpus, annotation="translation") == ["Ein B\u00e4r."]
    assert texts(corpus, image_id="mine:b") == ["Ein \u201eHut\u201c."]
    assert sources(corpus) == {"mine/a/de/translation/0": "mine/a/en/caption/1"}


def test_translations_of_translations_name_the_caption_that_all_go_back_to(tmp_path):
    chain = [
        "a.jpg\ttrain\tcs\ttranslation\t0\tMedv\u011bd.\tfr/translation/0",
        "a.jpg\ttrain\tfr\ttranslation\t0\tUn ours.\tde/translation/0",
    ]
    corpus = READERS["table"](write_table(tmp_path, [*TABLE, *chain]), "set")
    of = dict.fromkeys(
        (f"set/a/{language}/translation/0" for language in ("de", "fr", "cs")), "set/a/en/caption/1"
    )
    assert sources(corpus) == of


def behind(caption: str, source: dict[str, str]) -> list[str]:
    """Return what a caption goes back to, step by step, until nothing or nothing new comes."""
    passed = []
    while (caption := source[caption]) and caption not in passed:
        passed.append(caption)
    return passed


@pytest.mark.parametrize("seed", range(30))
def test_sources_and_circles_are_those_that_one_finds_step_by_step(tmp_path, seed):
    """Of machine translations of one another, some in circles, in any order."""
    drawn = random.Random(seed)
    names = [f"en/machine/{number}" for number in range(drawn.choice([5, 12]))]
    source = {name: drawn.choice([*names, "", ""]) for name in names}
    source = {name: "" if of == name else of for name, of in source.items()}
    rows = [
        "\t".join(("a.jpg", "train", *name.split("/"), "Text.", of)) for name, of in source.items()
    ]
    raw = write_table(tmp_path, [TABLE[0], *rows])
    circular = [line for line, name in enumerate(names, 2) if name in behind(name, source)]
    if circular:
        expected = (f"captions.tsv:{line}: expected no circle" for line in circular)
        assert_lists(failure("table", raw), *expected)
    else:
        found = sources(READERS["table"](raw, "set"))
        assert found == {
            f"set/a/{name}": f"set/a/{behind(name, source)[-1]}" for name in names if source[name]
        }


class Counted(dict):
    """Counts how often it is asked."""

    asked = 0

    def get(self, key, default=None):
        self.asked += 1
        return super().get(key, default)

    def __getitem__(self, key):
        self.asked += 1
        return super().__getitem__(key)


def test_a_chain_of_translations_is_walked_once():
    of = Counted({f"caption {number}": f"caption {number - 1}" for number in range(1000)})
    assert in_circles(of) == set()
    assert of.asked <= 3 * len(of)


PHOTO_NAMES = {
    "another case": ("c.JPG", "c.jpg", "; the folder has 'c.JPG'"),
    "case below a folder": ("of/B.jpg", "of/b.jpg", "; the folder has 'B.jpg'"),
    "NFD in the folder": (
        "cafe\u0301.jpg",
        "caf\u00e9.jpg",
        "Unicode form: rename it (convmv -f utf-8 -t utf-8 --nfc)",
    ),
    "NFC in the folder": (
        "caf\u00e9.jpg",
        "cafe\u0301.jpg",
        "Unicode form: rename it (convmv -f utf-8 -t utf-8 --nfd)",
    ),
    "another folder": ("Of/b.jpg", "of/b.jpg", "found 'of/b.jpg'"),
    "no name": ("b.jpg", "", "found ''"),
    "no suffix": ("d.jpg", "d", "; the folder has 'd.jpg'"),
    "the folder's own name": ("of/b.jpg", "images/of/b.jpg", "; the folder has 'of/b.jpg'"),
    "other separators": ("of/b.jpg", "C:\\of\\b", "; the folder has 'of/b.jpg'"),
    "NUL": ("b.jpg", "of\0/b.jpg", "found 'of\\x00/b.jpg'"),
}


@pytest.mark.parametrize("case", PHOTO_NAMES)
def test_table_names_the_photo_that_a_missing_one_may_be(tmp_path, case):
    there, named, said = PHOTO_NAMES[case]
    raw = write_table(tmp_path, [*TABLE, f"{named}\ttrain\ten\tcaption\t0\tText.\t"])
    write_lines(raw / "images" / there, ["an image"])
    message = failure("table", raw)
    assert_lists(
        message, f"captions.tsv:6: expected a file below {raw / 'images'}, found {named!r}"
    )
    assert message.endswith(said)


def test_table_takes_columns_in_any_order_a_byte_order_mark_and_windows_line_ends(tmp_path):
    plain = READERS["table"](write_table(tmp_path / "plain"), "mine")
    fields = [line.split("\t") for line in TABLE]
    turned = ["\t".join([*row[::-1], "line"]) + "\r" for row in fields]
    turned[0] = "\ufeff" + turned[0]
    other = READERS["table"](write_table(tmp_path / "turned", turned), "mine")
    pd.testing.assert_frame_equal(plain.captions, other.captions)


def test_table_lists_every_problem_with_its_line(tmp_path):
    broken = [
        *TABLE,
        "missing.jpg\ttrain\ten\tcaption\t0\tText.\t",
        "a.jpg\tval\ten\tcaption\t7\tAnother split.\t",
        "a.jpg\ttrain\ten\tcaption\t0\tTwice.\t",
        "a.jpg\ttrain\tEN\tcaption\t2\tText.\t",
        "a.jpg\ttrain\ten\tcapton\t0\tText.\t",
        "a.jpg\ttrain\ten\tcaption\t-1\tText.\t",
        "a.jpg\ttrain\ten\tcaption\t40000\tText.\t",
        "a.jpg\ttrain\ten\tcaption\t3\t \t",
        "a.jpg\ttrain\tfr\ttranslation\t0\tTexte.\ten/caption/9",
        "a.jpg\ttrain\ten\tcaption\t4\tText.\ten/caption/0",
        "a.jpg\ttrain\ten\tcaption\t5",
    ]
    raw = write_table(tmp_path, broken)
    with open(raw / "captions.tsv", "ab") as file:
        file.write(b"a.jpg\ttrain\ten\tcaption\t6\tf\xfcr\t\n")
    assert_lists(
        failure("table", raw),
        "captions.tsv:6: expected a file below",
        "captions.tsv:7: expected one split per image, found 'val'",
        "captions.tsv:8: expected each caption's place once, found 'set/a/en/caption/0'",
        "captions.tsv:9: expected a language code of two or three small letters, found 'EN'",
        "captions.tsv:10: expected one of caption, translation, machine, found 'capton'",
        "captions.tsv:11: expected a number from 0 to 32767",
        "captions.tsv:12: expected a number from 0 to 32767",
        "captions.tsv:13: expected a caption, found no text",
        "captions.tsv:14: expected a caption of the same image",
        "captions.tsv:15: expected nothing, as annotation is caption",
        "captions.tsv:16: expected 7 fields as in the header, found 5",
        "captions.tsv:17: expected UTF-8, found byte 0xfc in column 27",
    )


def test_table_refuses_two_images_that_differ_in_their_suffix_only(tmp_path):
    raw = write_table(tmp_path, [*TABLE, "a.png\ttrain\ten\tcaption\t4\tText.\t"])
    write_lines(raw / "images" / "a.png", ["an image"])
    assert_lists(failure("table", raw), "captions.tsv:6: expected a name that differs")


def test_table_names_missing_columns_and_a_missing_file(tmp_path):
    raw = write_table(tmp_path, [line.replace("language", "lang") for line in TABLE])
    assert_lists(failure("table", raw), "captions.tsv:1: expected a header with image, split, lang")
    write_lines(raw / "captions.tsv", ["{" + 5_000 * '"no table": 1, ' + "}"])
    (said,) = failure("table", raw).splitlines()[1:]
    assert len(said) < 500
    (raw / "captions.tsv").unlink()
    assert_lists(failure("table", raw), "captions.tsv: expected this file")


def test_of_many_lines_with_one_problem_the_first_are_listed_and_all_counted(tmp_path):
    rows = [f"a.jpg\ttrain\ten\tcapton\t{i}\tText.\t" for i in range(1000)]
    message = failure("table", write_table(tmp_path, [TABLE[0], *rows]))
    listed = message.splitlines()[1:]
    assert len(listed) == 21
    assert "and 980 more" in listed[-1]


def test_a_line_ends_at_a_newline_only(tmp_path):
    odd = "A man\u2028and\x0ba\x0cdog\x85run."
    raw = write_table(tmp_path, [*TABLE, f"b.png\ttest\ten\tcaption\t0\t{odd}\t"])
    assert texts(READERS["table"](raw, "mine"), image_id="mine:b", language="en") == [
        "A man and a dog run."
    ]


# Multi30k


def test_multi30k_reads_both_tasks_and_all_test_sets(tmp_path):
    corpus = READERS["multi30k"](write_multi30k(tmp_path), "m", **MULTI30K)
    counts = sizes(corpus)
    assert counts[("train", "en", "caption")] == counts[("train", "de", "caption")] == 15
    assert counts[("test", "cs", "translation")] == 1
    assert counts[("test_2018_flickr", "en", "caption")] == 2
    assert ("test_2017_flickr", "cs", "translation") not in counts
    assert sum(counts.values()) == 6 * 13 + 1 * 3 + 1 * 3 + 2 * 4
    by_split = corpus.images.groupby("split")["path"].apply(list).to_dict()
    assert by_split["test_2017_mscoco"] == ["COCO_train2014_000000117071.jpg"]
    assert by_split["test_2018_flickr"] == MULTI30K_LISTS["test_2018_flickr"]
    assert {"flickr:41", "coco:117071", "flickr:11"} < set(corpus.images["image_id"])
    assert texts(corpus, image_id="flickr:12", language="de", annotation="caption") == [
        f"12.jpg described in de {number}" for number in range(1, 6)
    ]


def test_multi30k_translations_name_the_description_that_was_translated(tmp_path):
    raw = write_multi30k(tmp_path)
    corpus = READERS["multi30k"](raw, "m", languages=["en", "fr"], splits=ALL_SPLITS)
    named = sources(corpus)
    assert named["m/11/fr/translation/0"] == "m/11/en/caption/2"
    assert named["m/41/fr/translation/0"] == "m/41/en/caption/0"
    alone = READERS["multi30k"](raw, "m", languages=["fr"], splits=ALL_SPLITS)
    assert not sources(alone)
    assert texts(alone) == texts(corpus, language="fr")


def test_multi30k_lists_every_problem_with_its_file(tmp_path):
    raw = write_multi30k(tmp_path)
    one, two = raw / "data" / "task1", raw / "data" / "task2"
    write_lines(two / "raw" / "train.1.en", ["only one line"])
    (two / "raw" / "val.1.de").write_bytes(b"gut\n\xff\xfe\n")
    (two / "raw" / "test_2016.3.de").unlink()
    zipped = two / "raw" / "train.2.de.gz"
    zipped.write_bytes(zipped.read_bytes()[:-12])
    write_lines(one / "raw" / "val.fr", ["Bien.", "\u00a0 "])
    write_lines(one / "image_splits" / "test_2017_flickr.txt", ["11.jpg"])
    write_lines(one / "image_splits" / "test_2018_flickr.txt", ["51_7bd246.jpg", "a photo.jpg"])
    write_lines(one / "raw" / "val.en", ["21.jpg described in en 3", "Unheard of."])
    write_lines(two / "image_splits" / "val_images.txt", ["22.jpg", "21.jpg"])
    write_lines(one / "raw" / "train.cs", [])
    assert_lists(
        failure("multi30k", raw, **MULTI30K),
        "train.1.en: expected 3 lines, one per image of",
        "val.1.de:2: expected UTF-8, found byte 0xff",
        "test_2016.3.de: expected this file (or test_2016.3.de.gz), found none",
        "train.2.de: cannot be read",
        "val.fr:2: expected a caption, found no text",
        "test_2017_flickr.txt:1: expected each image in one split, once, found 'flickr:11'",
        "test_2018_flickr.txt:2: expected an image such as 1000092795.jpg, found 'a photo.jpg'",
        "val.en:2: expected one of the image's descriptions, found 'Unheard of.'",
        "val_images.txt: expected the images of",
        "train.cs: expected lines of text, found an empty file",
    )


def test_multi30k_names_splits_without_any_of_the_languages(tmp_path):
    raw = write_multi30k(tmp_path)
    message = failure("multi30k", raw, languages=["cs"], splits=[*NO_CZECH])
    assert_lists(
        message, "splits: expected one with cs, found test_2017_flickr, test_2017_mscoco without"
    )


def test_multi30k_tests_on_the_last_validation_images(tmp_path):
    raw = write_multi30k(tmp_path)
    options = {"languages": ["en", "de"], "splits": ["train", "val"]}
    corpus = READERS["multi30k"](raw, "m", **options, validation_images=1)
    splits = corpus.images.set_index("image_id")["split"].to_dict()
    assert [splits[f"flickr:{photo}"] for photo in (11, 21, 22)] == ["train", "val", "test"]
    assert "flickr:31" not in splits
    by_image = corpus.captions.groupby("image_id")["split"].unique().map(list)
    assert by_image.to_dict() == {image: [split] for image, split in splits.items()}
    whole = READERS["multi30k"](raw, "m", **options, validation_images="all")
    assert set(whole.images["split"]) == {"train", "val"}


def test_multi30k_validation_that_cannot_be_divided_is_named(tmp_path):
    raw = write_multi30k(tmp_path)
    for splits in (["train"], ["train", "val", "test"]):
        message = failure("multi30k", raw, languages=["en"], splits=splits, validation_images=1)
        assert_lists(message, "splits: expected val, whose last images become test, and no test")
    message = failure("multi30k", raw, languages=["en"], splits=["val"], validation_images=2)
    assert_lists(message, "validation_images: expected all or less than 2, val's number")


# Flickr8k


def test_flickr8k_joins_both_data_sets_by_photo(tmp_path):
    corpus = READERS["flickr8k"](write_flickr8k(tmp_path), "f", **FLICKR8K)
    images = corpus.images.set_index("image_id")
    assert images["split"].to_dict() == {
        "flickr:11": "train",
        "flickr:12": "train",
        "flickr:21": "test",
        "flickr:31": "val",
    }
    assert images.loc["flickr:21", "path"] == "21.jpg"
    counts = corpus.captions.groupby(["language", "annotation"]).size().to_dict()
    assert counts == {
        ("cs", "translation"): 4,
        ("de", "caption"): 20,
        ("de", "translation"): 4,
        ("en", "caption"): 15,
        ("fr", "translation"): 4,
        ("ja", "machine"): 15,
        ("zh", "caption"): 15,
        ("zh", "translation"): 5,
    }
    check_captions_have_images(corpus.captions, corpus.images)


def test_flickr8k_finds_sources_by_number_or_by_letters(tmp_path):
    raw = write_flickr8k(tmp_path)
    languages = ["de", "ja", "en", "zh", "fr"]
    named = sources(READERS["flickr8k"](raw, "f", languages=languages, **BY_ITS_COLUMN))
    assert named["f/21/zh/translation/3"] == named["f/21/ja/machine/3"] == "f/21/en/caption/3"
    assert named["f/11/de/translation/0"] == named["f/11/fr/translation/0"] == "f/11/en/caption/4"
    assert "f/21/de/translation/0" not in named  # no English caption has the letters
    assert "f/12/de/translation/0" not in named  # no English caption at all
    alone = READERS["flickr8k"](raw, "f", languages=["fr", "ja"], **BY_ITS_COLUMN)
    assert not sources(alone)
    assert len(alone.captions) == 4 + 15


def test_flickr8k_takes_the_first_caption_of_equal_letters_as_the_source(tmp_path):
    raw = write_flickr8k(tmp_path)
    english = raw / "flickr8k" / "captions" / "en.human.tsv"
    retold = english.read_text().replace("en.human 11 2", "11.jpg described in en: 3!")
    english.write_text(retold)
    named = sources(READERS["flickr8k"](raw, "f", languages=["en", "de"], **BY_ITS_COLUMN))
    assert named["f/11/de/translation/0"] == "f/11/en/caption/2"


def test_flickr8k_splits_as_the_column_says(tmp_path):
    raw = write_flickr8k(tmp_path)
    corpus = READERS["flickr8k"](raw, "f", languages=["en"], split_column="multi30k_split")
    splits = corpus.images.set_index("image_id")["split"].to_dict()
    assert splits == {"flickr:11": "train", "flickr:21": "val", "flickr:31": "test"}


def test_flickr8k_lists_every_problem_with_its_file_and_line(tmp_path):
    raw = write_flickr8k(tmp_path)
    folder = raw / "flickr8k"
    bad = [
        *FLICKR8K_IMAGES,
        "61,images/61.jpg,dev,train,1,1,0",
        "11,images/11.jpg,train,train,1,1,0",
    ]
    write_lines(folder / "images.csv", bad)
    with open(folder / "captions" / "en.human.tsv", "a") as file:
        file.write("99\t0\tUnknown photo.\n11\t5\tSixth.\n11\t0\tAgain.\n21\t0\n")
    chinese = folder / "captions" / "zh.human.tsv"
    write_lines(chinese, chinese.read_text().splitlines()[:-1])
    (folder / "captions" / "ja.machine_translation.tsv").unlink()
    (raw / "multi30k" / "data" / "task1" / "raw" / "val.fr").unlink()
    assert_lists(
        failure("flickr8k", raw, languages=["en", "zh", "ja", "fr"], **BY_ITS_COLUMN),
        "images.csv:6: expected one of 'train', 'val', 'test', '', found 'dev'",
        "images.csv:7: expected each photo once, found '11'",
        "en.human.tsv:17: expected a photo of images.csv, found '99'",
        "en.human.tsv:17: expected 5 captions of the photo, found 1",
        "en.human.tsv:18: expected a number from 0 to 4, found '5'",
        "en.human.tsv:19: expected each number once per photo, found '0'",
        "en.human.tsv:20: expected 3 fields as in the header, found 2",
        "zh.human.tsv:12: expected 5 captions of the photo, found 4",
        "ja.machine_translation.tsv: expected this file",
        "val.fr: expected this file",
    )


def test_flickr8k_names_images_that_multi30k_lists_twice(tmp_path):
    raw = write_flickr8k(tmp_path)
    lists = raw / "multi30k" / "data"
    for path in ("task1/image_splits/train.txt", "task2/image_splits/train_images.txt"):
        write_lines(lists / path, ["11.jpg", "12.jpg", "11.jpg"])
    assert_lists(
        failure("flickr8k", raw, **FLICKR8K),
        "train.txt:3: expected each image in one split, once, found 'flickr:11'",
    )


# COCO


def test_coco_follows_karpathy_and_adds_restval_to_train(tmp_path):
    english = COCO | {"languages": ["en"], "japanese": "none"}
    corpus = READERS["coco"](write_coco(tmp_path), "c", **english)
    assert corpus.images.set_index("image_id")["split"].to_dict() == {
        "coco:391895": "test",
        "coco:57870": "train",
        "coco:60623": "train",
        "coco:184613": "val",
    }
    assert "val2014/COCO_val2014_000000391895.jpg" in set(corpus.images["path"])
    assert sizes(corpus)[("train", "en", "caption")] == 11
    assert texts(corpus, image_id="coco:60623")[5] == "60623 in English 5"


@pytest.mark.parametrize(("japanese", "count"), [("stair", 20), ("yj", 5)])
def test_coco_numbers_japanese_captions_by_id_not_by_place(tmp_path, japanese, count):
    own = COCO | {"languages": ["ja"], "japanese": japanese}
    corpus = READERS["coco"](write_coco(tmp_path), "c", **own)
    assert len(corpus.captions) == count
    assert len(corpus.images) == count / 5
    assert texts(corpus, image_id="coco:57870") == [
        f"{japanese.upper()} 57870 {i}" for i in range(5)
    ]


def test_chinese_captions_of_coco_are_those_of_coco_cn(tmp_path):
    raw = write_coco(tmp_path)
    corpus = READERS["coco"](raw, "c", languages=["zh"], japanese="none", splits="karpathy")
    expected = {"coco:391895": "test", "coco:60623": "train", "coco:57870": "train"}
    assert corpus.images.set_index("image_id")["split"].to_dict() == expected
    assert texts(corpus, image_id="coco:57870", annotation="caption") == ["test 手写", "test 第二"]
    translated = texts(corpus, annotation="translation")
    assert translated == [f"翻译 {i}" for i in range(5)]
    assert not sources(corpus)


def test_japanese_can_be_added_to_coco_where_none_of_its_own_is_read(tmp_path):
    raw, english = write_coco(tmp_path), COCO | {"languages": ["en"], "japanese": "none"}
    photo = read_corpus("coco", raw, "c", **english).images["path"].iloc[0]
    write_lines(raw / "added_captions.tsv", ["image\tlanguage\ttext", f"{photo}\tja\t犬が走る。"])
    found = read_corpus("coco", raw, "c", **english | {"languages": ["en", "ja"]})
    assert texts(found, language="ja") == ["犬が走る。"]


def write_coco_in_three_languages(raw: Path) -> tuple[Path, list[str]]:
    """Write 12 more images, of which 9 have captions in all languages; return those nine."""
    raw = write_coco(raw)
    numbers = range(101, 113)
    more = [
        {
            "filepath": "train2014",
            "filename": f"{coco_name(number, 'train')}.jpg",
            "cocoid": number,
            "split": "train",
            "sentences": [{"raw": f"{number} in English"}],
        }
        for number in numbers
    ]
    edit_json(raw / "dataset_coco.json", lambda content: content["images"].extend(more))
    write_json(raw / "yjcaptions26k_clean.json", annotations([57870, *numbers[:11]], "YJ"))
    written = raw / "imageid.human-written-caption.txt"
    with open(written, "a", encoding="utf-8") as file:
        file.writelines(f"{coco_name(number, 'train')}#0\t手写\n" for number in numbers[3:])
    with open(raw / "imageid.manually-translated-caption.txt", "a", encoding="utf-8") as file:
        file.write(f"{coco_name(101, 'train')}#zhm#0 翻译\n")
    return raw, [f"coco:{number}" for number in (57870, *numbers[3:11])]


def test_coco_holds_out_images_captioned_in_all_three_languages(tmp_path):
    raw, shared = write_coco_in_three_languages(tmp_path)
    three = {"languages": ["en", "ja", "zh"], "japanese": "yj"}
    corpus = READERS["coco"](raw, "c", **three, splits={"val": 3, "test": 4, "seed": 1})
    split = corpus.images.set_index("image_id")["split"]
    assert split.value_counts().to_dict() == {"train": 9, "test": 4, "val": 3}
    assert set(split.index[split != "train"]) < set(shared)
    held_out = corpus.captions[corpus.captions["split"] != "train"]
    assert (held_out.groupby("image_id")["language"].nunique() == 3).all()

    def of(**changed: object) -> dict:
        options = {**three, "splits": {"val": 3, "test": 4, "seed": 1}, **changed}
        return READERS["coco"](raw, "c", **options).images.set_index("image_id")["split"].to_dict()

    assert of() == split.to_dict()
    assert of(splits={"val": 3, "test": 4, "seed": 2}) != split.to_dict()
    # The split is one of the data, whatever languages are read.
    assert of(languages=["ja"]).items() <= split.to_dict().items()


def test_coco_needs_enough_images_captioned_in_all_three_languages(tmp_path):
    raw, _ = write_coco_in_three_languages(tmp_path)
    options = {"languages": ["en"], "japanese": "yj", "splits": {"val": 5, "test": 5, "seed": 1}}
    assert_lists(
        failure("coco", raw, **options),
        "expected 5 + 5 images with captions in en, ja, zh to draw, found 9",
    )


def break_karpathy(content: dict) -> None:
    content["images"][0]["split"] = "dev"
    content["images"][1]["sentences"][2]["raw"] = " "
    content["images"].append({**content["images"][3]})
    content["images"].append({"cocoid": "7"})


def break_stair(content: dict) -> None:
    content["annotations"][0]["id"] = content["annotations"][1]["id"]
    content["annotations"].append({"id": 1, "image_id": 404, "caption": "Kein Bild."})
    content["annotations"].append({"id": 2, "image_id": 57870})


def test_coco_lists_every_problem_with_its_place(tmp_path):
    raw = write_coco(tmp_path)
    edit_json(raw / "dataset_coco.json", break_karpathy)
    edit_json(raw / "stair_captions_v1.2_train.json", break_stair)
    (raw / "stair_captions_v1.2_val.json").write_text('{"annotations": [')
    written = raw / "imageid.human-written-caption.txt"
    with open(written, "a", encoding="utf-8") as file:
        file.write("COCO_val2014_000000391895 无编号\nCOCO_val2014_000000000404#0\t无图\n")
        file.write(f"{coco_name(391895, 'val')}#0\t重复\n")
        file.write(f"{coco_name(391895, 'val')}#99999\t太多\n")
    (raw / "imageid.manually-translated-caption.txt").unlink()
    assert_lists(
        failure("coco", raw, **COCO),
        "dataset_coco.json:images[0]: expected one of train, restval, val, test, found 'dev'",
        "dataset_coco.json:images[1].sentences[2].raw: expected a caption, found no text",
        "dataset_coco.json:images[4]: expected each image once, found 184613",
        "dataset_coco.json:images[5]: expected cocoid (int), filepath (str)",
        "train.json:annotations[1]: expected each id once",
        "train.json:annotations[5]: expected the id of an image of dataset_coco.json, found '404'",
        "train.json:annotations[6]: expected id (int), image_id (int), caption (str)",
        "stair_captions_v1.2_val.json: expected JSON in UTF-8, found: Expecting value: line 1",
        "caption.txt:5: expected <image>#<number of at most 4 digits>, a blank or tab",
        "caption.txt:6: expected the id of an image of dataset_coco.json, found '404'",
        "caption.txt:7: expected each number once per image",
        "caption.txt:8: expected <image>#<number of at most 4 digits>, a blank or tab",
        "imageid.manually-translated-caption.txt: expected this file",
    )


def test_coco_names_halves_of_characters_with_their_place(tmp_path):
    raw = write_coco(tmp_path)
    content = json.loads((raw / "dataset_coco.json").read_text())
    first, second = content["images"][:2]
    first["sentences"][2]["raw"] = "A \ud83d dog, and \U0001f415."
    second["filename"] = "a\ude00.jpg"
    (raw / "dataset_coco.json").write_text(json.dumps(content))
    assert_lists(
        failure("coco", raw, languages=["en"], japanese="none", splits="karpathy"),
        "dataset_coco.json:images[0].sentences[2].raw: expected text, found U+D83D, half of a",
        "dataset_coco.json:images[1].filename: expected text, found U+DE00, half of a character",
    )


def test_coco_reads_characters_that_json_writes_as_two_halves(tmp_path):
    raw = write_coco(tmp_path)
    content = json.loads((raw / "dataset_coco.json").read_text())
    content["images"][0]["sentences"][2]["raw"] = "A \U0001f415."
    (raw / "dataset_coco.json").write_text(json.dumps(content))
    corpus = READERS["coco"](raw, "c", languages=["en"], japanese="none", splits="karpathy")
    assert texts(corpus, image_id="coco:391895")[2] == "A \U0001f415."


@pytest.mark.parametrize("name", ["dataset_coco.json", "stair_captions_v1.2_val.json"])
def test_coco_takes_no_null_for_a_file_without_captions(tmp_path, name):
    raw = write_coco(tmp_path)
    (raw / name).write_text("null")
    options = {"languages": ["en", "ja"], "japanese": "stair", "splits": "karpathy"}
    assert_lists(failure("coco", raw, **options), f"{name}: expected JSON with content, found null")


def test_coco_needs_to_know_which_japanese(tmp_path):
    raw = write_coco(tmp_path)
    message = failure("coco", raw, languages=["en", "ja"], japanese="none", splits="karpathy")
    assert_lists(message, "the language ja needs stair or yj, found none")


# real data


@pytest.fixture(scope="module")
def multi30k(real_data) -> Corpus:
    return READERS["multi30k"](real_data / "multi30k", "m", **MULTI30K)


@pytest.fixture(scope="module")
def flickr8k(real_data) -> Corpus:
    return READERS["flickr8k"](real_data, "f", **FLICKR8K)


@pytest.mark.real_data
def test_real_multi30k_has_its_published_counts(multi30k):
    assert multi30k.images["split"].value_counts().to_dict() == {
        "train": 29_000,
        "val": 1_014,
        "test": 1_000,
        "test_2017_flickr": 1_000,
        "test_2017_mscoco": 461,
        "test_2018_flickr": 1_071,
    }
    counts = sizes(multi30k)
    assert counts[("train", "en", "caption")] == counts[("train", "de", "caption")] == 145_000
    assert counts[("val", "de", "caption")] == 5_070
    assert counts[("test", "en", "caption")] == 5_000
    for language in ("de", "fr", "cs"):
        assert counts[("train", language, "translation")] == 29_000
    assert sum(counts.values()) == 31_014 * 13 + 1_461 * 3 + 1_071 * 4


@pytest.mark.real_data
def test_real_multi30k_has_calixtos_514_test_images(real_data):
    folder = real_data / "multi30k"
    options = {"languages": ["de"], "splits": ["val"], "validation_images": 500}
    corpus = READERS["multi30k"](folder, "m", **options)
    listed = (folder / "data/task1/image_splits/val.txt").read_text().split()
    split = corpus.images.set_index("path")["split"]
    assert split.loc[listed].tolist() == ["val"] * 500 + ["test"] * 514
    assert sizes(corpus)[("test", "de", "caption")] == 514 * 5


@pytest.mark.real_data
def test_real_multi30k_translations_name_the_english_sentence_of_task_1(multi30k, real_data):
    folder = real_data / "multi30k" / "data" / "task1"
    translated = {}
    for split in ("train", "val", "test_2016_flickr"):
        images = (folder / "image_splits" / f"{split}.txt").read_text().split()
        with gzip.open(folder / "raw" / f"{split}.en.gz", "rt", encoding="utf-8") as file:
            english = [" ".join(line.split()) for line in file]
        translated |= dict(zip(images, english, strict=True))
    rows = multi30k.captions
    text = rows.set_index("caption_id")["text"]
    paths = multi30k.images.set_index("image_id")["path"]
    for language in ("de", "fr", "cs"):
        mine = rows[(rows["language"] == language) & (rows["annotation"] == "translation")]
        mine = mine[mine["split"].isin(["train", "val", "test"])]
        named = mine["source_caption_id"].map(text)
        assert len(mine) == 31_014
        assert named.tolist() == mine["image_id"].map(paths).map(translated).tolist()


@pytest.mark.real_data
def test_real_flickr8k_has_the_counts_of_its_files(flickr8k, real_data):
    with open(real_data / "flickr8k" / "images.csv", newline="") as file:
        listed = list(csv.DictReader(file))
    assert flickr8k.images["split"].value_counts().to_dict() == {
        "train": 5_644,
        "val": 934,
        "test": 929,
    }
    assert set(flickr8k.images["image_id"]) == {f"flickr:{row['image_id']}" for row in listed}
    photos = real_data / "flickr8k" / "images"
    assert all((photos / path).is_file() for path in flickr8k.images["path"])
    counts = flickr8k.captions.groupby(["language", "annotation"]).size().to_dict()
    assert counts == {
        ("en", "caption"): 37_365,
        ("zh", "caption"): 37_365,
        ("zh", "translation"): 4_645,
        ("ja", "machine"): 37_365,
        ("de", "caption"): 5 * 7_507,
        ("de", "translation"): 7_507,
        ("fr", "translation"): 7_507,
        ("cs", "translation"): 7_507,
    }


@pytest.mark.real_data
def test_real_data_sets_share_photo_ids_and_multi30ks_splits(multi30k, real_data):
    options = {"languages": ["fr"], "split_column": "multi30k_split"}
    here = READERS["flickr8k"](real_data, "f", **options).images.set_index("image_id")["split"]
    there = multi30k.images.set_index("image_id")["split"]
    assert len(here) == 7_507
    assert here.equals(there.loc[here.index])
    assert here.value_counts().to_dict() == {"train": 7_021, "val": 243, "test": 243}


@pytest.mark.real_data
def test_real_flickr8k_sources_are_unknown_for_159_photos_only(flickr8k):
    rows = flickr8k.captions[flickr8k.captions["annotation"] == "translation"]
    unknown = rows[rows["source_caption_id"].isna()].groupby("language").size().to_dict()
    assert unknown == {"de": 159, "fr": 159, "cs": 159}


@pytest.mark.real_data
@pytest.mark.parametrize(
    ("language", "annotation", "blue"),
    [
        ("zh", "translation", "蓝"),
        ("ja", "machine", "青"),
        ("de", "translation", "blau"),
        ("fr", "translation", "bleu"),
        ("cs", "translation", "modr"),
    ],
)
def test_real_sources_mention_blue_where_their_translations_do(
    flickr8k, language, annotation, blue
):
    rows = flickr8k.captions
    text = rows.set_index("caption_id")["text"]
    mine = rows[(rows["language"] == language) & (rows["annotation"] == annotation)].dropna()
    source = mine["source_caption_id"]
    neighbour = source.str[:-1] + ((source.str[-1].astype(int) + 1) % 5).astype(str)
    said = mine["text"].str.contains(blue, case=False)

    def overlap(ids: pd.Series) -> float:
        meant = ids.map(text).str.contains("blue", case=False)
        return (meant & said).sum() / (meant | said).sum()

    assert overlap(source) > 0.9
    assert overlap(neighbour) < 0.3


@pytest.mark.real_data
def test_real_texts_are_normal_and_folded(multi30k, flickr8k):
    for corpus in (multi30k, flickr8k):
        for text in corpus.captions["text"]:
            assert text
            assert unicodedata.is_normalized("NFC", text)
            assert " ".join(text.split()) == text


def test_multi30k_reads_only_the_splits_asked_for(tmp_path):
    raw = write_multi30k(tmp_path)
    corpus = READERS["multi30k"](raw, "m", languages=["en", "de"], splits=["train", "test"])
    assert set(corpus.captions["split"]) == set(corpus.images["split"]) == {"train", "test"}


def test_a_file_that_may_not_be_read_need_not_be_fetched_again(tmp_path, monkeypatch):
    raw = write_multi30k(tmp_path)

    def refuse(path):
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(PermissionError) as refused:
        READERS["multi30k"](raw, "m", languages=["en"], splits=ALL_SPLITS)
    message, _ = explained(refused.value)
    assert message.endswith("permission denied. Change the permissions, or the owner.")
