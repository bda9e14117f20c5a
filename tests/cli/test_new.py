"""``polyview new``: what it takes, what it refuses, and that what it writes can be run."""

import gzip
import os
import re
import shutil
import signal
import subprocess
import sys
from functools import partial
from importlib import import_module
from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from dvc.utils.hydra import apply_overrides
from dvc.utils.serialize import modify_yaml
from given import give
from own_study import NAMES, SPLITS
from PIL import Image
from raw_corpora import write_flickr8k, write_flickr8k_clone
from study import ROOT

from pipeline_lib.checks.study import Findings
from pipeline_lib.cli import layouts
from pipeline_lib.cli.main import main
from pipeline_lib.contract.problems import ContractError
from pipeline_lib.corpora.own_table import complete_table
from pipeline_lib.corpora.readers import read_corpus
from pipeline_lib.corpora.selection import select
from pipeline_lib.settings.loading import load_settings
from pipeline_lib.settings.messages import read_yaml
from pipeline_lib.text.latent_semantics import latent_semantic_vectors
from pipeline_lib.text.tokenizers import tokenize_captions
from pipeline_lib.text.training_text import training_captions

SHORT = [(name, language, f"{language} {name}") for name in NAMES for language in ("en", "de")]
COMPLETE = ["image", "split", "language", "annotation", "position", "text", "translation_of"]


@pytest.fixture
def root(tmp_path, monkeypatch, as_a_user):
    """Return a checkout's root, in which the command runs, with 40 photos beside it."""
    (tmp_path / "photos").mkdir()
    for number, name in enumerate(NAMES):
        Image.new("RGB", (8, 8), (6 * number, 0, 0)).save(tmp_path / "photos" / name)
    home = tmp_path / "checkout"
    (home / "studies").mkdir(parents=True)
    for name in ("dvc.yaml", "params.yaml", "papers.yaml"):
        shutil.copy(ROOT / name, home)
    shutil.copytree(ROOT / ".dvc/plots", home / ".dvc/plots")
    monkeypatch.chdir(home)
    return home


def write(
    rows,
    header=("image", "language", "text"),
    name="captions.tsv",
    encoding="utf-8",
    separator=None,
):
    separator = separator or ("," if name.endswith("csv") else "\t")
    path = Path("..") / name
    lines = [separator.join(map(str, row)) for row in (header, *rows) if row]
    path.write_bytes("".join(f"{line}\n" for line in lines).encode(encoding))
    return path


def new(captions, *options, name="mine", images="../photos"):
    return CliRunner().invoke(
        main, ["new", name, "--captions", str(captions), "--images", str(images), *options]
    )


def made(root, result, name="mine"):
    """Return the settings of the study that a command made; nothing else may be there."""
    assert result.exit_code == 0, result.output
    assert f"made studies/{name}" in result.output
    assert [path.name for path in (root / "studies").iterdir()] == [name]
    return load_settings(root / "studies" / name / "params.yaml")


def captions(root, settings, name="mine"):
    """Return the captions that the stage of the new study will read."""
    entry = settings.model_dump(mode="json")["datasets"][name]
    options = {key: value for key, value in entry.items() if key not in ("reader", "raw")}
    folder = root / "studies" / name / entry["raw"]
    return read_corpus(entry["reader"], folder, name, **options).captions


def written(root):
    """Return the table of captions that the new study holds."""
    path = root / "studies/mine/data/raw/mine/captions.tsv"
    return pd.read_csv(path, sep="\t", keep_default_na=False)


def test_a_link_to_a_table_keeps_its_name_which_says_its_form(root):
    """As of a cache, whose files are called by their digests."""
    write(SHORT, name="captions.csv").rename("../d41d8cd98f00b204")
    Path("../link.csv").symlink_to("d41d8cd98f00b204")
    made(root, new("../link.csv"))
    assert len(written(root)) == len(SHORT)


def test_a_pipe_is_to_be_saved_first(root):
    os.mkfifo("../captions.tsv")
    result = new("../captions.tsv")
    assert_refused(root, result, "captions.tsv: expected a file or a folder, found a pipe. Save it")


@pytest.mark.parametrize("table", ["captions.tsv", "captions.csv"])
def test_a_short_table_becomes_a_study_whose_settings_load(root, table):
    settings = made(root, new(write(SHORT, name=table)))
    found = captions(root, settings)
    assert sorted(found["text"]) == sorted(text for *_, text in SHORT)
    assert set(found["annotation"]) == {"caption"}
    assert set(found["split"]) == {"train", "val", "test"}
    assert settings.pools == {"de": "caption", "en": "caption"}
    recipe = settings.recipe("mine")
    assert (recipe.languages, recipe.dataset) == (["de", "en"], "mine")
    folder = root / "studies/mine"
    assert (folder / settings.extractors["mine_lite0"].images / NAMES[0]).is_file()
    assert (folder / "dvc.yaml").read_bytes() == (ROOT / "dvc.yaml").read_bytes()
    linked = {link.name: link.resolve() for link in (folder / "checkout").iterdir()}
    assert linked == {name: root / name for name in ("papers.yaml", "pipeline_lib", "stages")}
    flickr8k = ROOT / "studies/flickr8k"
    plots = (".dvc/plots/curves.json", ".dvc/plots/recalls.json")
    for name in (".dvc/config", ".dvc/.gitignore", ".dvcignore", "published.csv", *plots):
        assert (folder / name).read_bytes() == (flickr8k / name).read_bytes()


def test_what_is_written_has_the_layout_and_comments_that_dvc_keeps(root):
    made(root, new(write(SHORT)))
    path = root / "studies/mine/params.yaml"
    before = path.read_text(encoding="utf-8")
    assert len(re.findall(r"^ *# ", before, re.MULTILINE)) > 20
    apply_overrides(path, ["recipes.mine.max_epochs=3"])
    changed = re.sub(r"max_epochs: \d+", "max_epochs: 3", before)
    assert path.read_text(encoding="utf-8") == changed


def test_drawn_splits_go_by_the_photo_and_not_by_its_place(root):
    first = captions(root, made(root, new(write(SHORT)))).set_index("text")["split"]
    shutil.rmtree(root / "studies/mine")
    again = captions(root, made(root, new(write(SHORT[::-1])))).set_index("text")["split"]
    assert first.to_dict() == again.to_dict()


def test_of_ten_photos_eight_are_learnt_and_one_each_is_for_validation_and_test(tmp_path):
    table = tmp_path / "captions.tsv"
    rows = [f"{number}.jpg\ten\tA dog." for number in range(2000)]
    table.write_text("\n".join(["image\tlanguage\ttext", *rows]))
    shares = complete_table(table, [])["split"].value_counts(normalize=True).to_dict()
    assert shares == pytest.approx({"train": 0.8, "val": 0.1, "test": 0.1}, abs=0.03)


def test_a_complete_table_is_kept_as_it_is(root):
    rows = [
        row
        for name, split in SPLITS.items()
        for row in (
            (name, split, "en", "caption", 0, 'A "dog" – runs', ""),
            (name, split, "de", "translation", 0, "Ein Hund rennt", "en/caption/0"),
            *([(name, split, "de", "caption", 0, "Hunde", "")] if split == "train" else ()),
        )
    ]
    path = write(rows, COMPLETE)
    settings = made(root, new(path))
    written = (root / "studies/mine/data/raw/mine/captions.tsv").read_bytes()
    assert written == path.read_bytes()
    assert settings.pools == {"de": "translation", "en": "caption"}
    kinds = settings.pairs["mine"].captions
    assert kinds == {"de": ["caption", "translation"], "en": ["caption"]}


def test_quoted_fields_of_csv_hold_commas_quotes_and_lines(root):
    text = '"A dog, a ""cat""\nand\ta bird"'
    rows = [(name, "en", text) for name in NAMES]
    found = captions(root, made(root, new(write(rows, name="captions.csv"))))
    assert set(found["text"]) == {'A dog, a "cat" and a bird'}


def test_blanks_before_quotes_of_csv_are_no_part_of_a_caption(root):
    rows = [(name, "en", '"A dog, a cat"') for name in NAMES]
    path = write(rows, name="captions.csv")
    path.write_text(path.read_text().replace(",en,", ", en, "))
    assert set(captions(root, made(root, new(path)))["text"]) == {"A dog, a cat"}


@pytest.mark.parametrize(
    "line", [f'{NAMES[0]},en,"a "red" dog"', f'{NAMES[0]},en,"a dog', f"{NAMES[0]},en"]
)
def test_what_a_table_that_is_not_read_to_its_end_lacks_is_not_said(root, line):
    path = write([(name, "en", "A dog") for name in NAMES], name="captions.csv")
    lines = path.read_text().splitlines()
    path.write_text("\n".join([lines[0], line, *lines[1:]]))
    output = new(path).output
    assert "captions.csv:2: expected" in output
    assert "1 problem(s)" in output, output


def test_only_the_languages_asked_for_are_taken(root):
    bad = [(NAMES[0], "not_a_code", "x")]
    settings = made(root, new(write(SHORT + bad), "--language", "de"))
    assert set(captions(root, settings)["language"]) == {"de"}
    assert list(settings.tokenizers) == list(settings.pools) == ["de"]
    assert settings.recipe("mine").languages == ["de"]


def of_three_languages(name, split):
    return [
        (name, split, "en", "caption", 0, "A dog runs", ""),
        (name, split, "de", "translation", 0, "Ein Hund rennt", "en/caption/0"),
        (name, split, "fr", "translation", 0, "Un chien court", "de/translation/0"),
    ]


@pytest.mark.parametrize(
    ("languages", "sources"),
    [
        (["de"], {"de": ""}),
        (["de", "fr"], {"de": "", "fr": "de/translation/0"}),
        (["en", "de"], {"de": "en/caption/0", "en": ""}),
        (["en", "fr"], {"fr": "en/caption/0", "en": ""}),
    ],
)
def test_a_translation_of_a_language_left_out_names_what_is_behind_it(root, languages, sources):
    path = write([row for each in SPLITS.items() for row in of_three_languages(*each)], COMPLETE)
    settings = made(root, new(path, *(f"--language={language}" for language in languages)))
    found = captions(root, settings)
    assert set(found["annotation"][found["language"] != "en"]) == {"translation"}
    table = written(root)
    assert dict(zip(table["language"], table["translation_of"], strict=True)) == sources


def by_way_of_english(name, split):
    """Return a German translation that goes back to German through two captions in English."""
    return [
        (name, split, "de", "caption", 0, "Ein Hund rennt", ""),
        (name, split, "en", "translation", 0, "A dog runs", "de/caption/0"),
        (name, split, "en", "machine", 0, "One dog runs", "en/translation/0"),
        (name, split, "de", "translation", 0, "Es rennt ein Hund", "en/machine/0"),
    ]


def test_what_is_behind_two_captions_of_a_language_left_out_is_named(root):
    path = write([row for each in SPLITS.items() for row in by_way_of_english(*each)], COMPLETE)
    made(root, new(path, "--language=de"))
    table = written(root)
    sources = dict(zip(table["annotation"], table["translation_of"], strict=True))
    assert sources == {"caption": "", "translation": "de/caption/0"}


def test_a_circle_of_translations_in_languages_left_out_ends_in_no_source(root):
    rows = [
        row
        for name, split in SPLITS.items()
        for row in (
            (name, split, "en", "translation", 0, "A dog runs", "en/machine/0"),
            (name, split, "en", "machine", 0, "One dog runs", "en/translation/0"),
            (name, split, "de", "translation", 0, "Es rennt ein Hund", "en/machine/0"),
        )
    ]
    made(root, new(write(rows, COMPLETE), "--language=de"))
    table = written(root)
    assert set(table["translation_of"]) == {""}


def test_a_translation_of_no_language_of_the_table_is_refused_with_languages_too(root):
    rows = [row for each in SPLITS.items() for row in of_three_languages(*each)]
    rows[1] = (*rows[1][:-1], "english/caption/0")
    result = new(write(rows, COMPLETE), "--language", "de")
    assert_refused(root, result, "captions.tsv:3: expected a caption of the same image as")


@pytest.mark.parametrize("table", ["few words", "many words"])
def test_word_vectors_of_a_new_study_can_be_learnt(root, table):
    """As the stages captions, pairs and word_vectors do it: of few words, vectors are small."""
    rows = SHORT
    if table == "many words":
        rows = [(name, "en", f"w{n} w{n + 1}") for n, name in enumerate(sorted(NAMES))]
    settings = made(root, new(write(rows)))
    pairs = select(
        tokenize_captions(captions(root, settings), settings.tokenizers),
        kinds=settings.pairs["mine"].captions,
        per_image=settings.pairs["mine"].per_image,
        images=settings.pairs["mine"].images,
        excluded=(),
        validation={},
        seed=settings.selection_seed,
    )
    options = settings.word_vectors["mine_latent"]
    vectors = latent_semantic_vectors(training_captions(pairs), options)
    assert options.dim == settings.recipe("mine").word_dim == vectors["en"][1].shape[1]
    photos = pairs["image_id"].nunique()
    assert options.dim == 2 if table == "few words" else 2 < options.dim <= photos // 2


def test_all_captions_of_a_photo_are_learnt(root):
    rows = [(name, "en", f"a dog {number}") for name in NAMES for number in range(9)]
    settings = made(root, new(write(rows)))
    assert settings.pairs["mine"].per_image == "all"


def test_empty_lines_are_passed_over_and_copies_are_warned_of(root):
    path = write(SHORT)
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines, "", lines[1], "", ""]) + "\n")
    result = new(path)
    made(root, result)
    said = "1 captions stand there twice, of the same photo, language and kind (first: line"
    assert f"{said} {len(lines) + 2}" in result.output
    assert result.output.count("stand there twice") == 1  # not again of the study's own copy


def test_photos_that_differ_in_their_suffix_alone_are_named_once(root):
    shutil.copy(root.parent / "photos" / NAMES[0], root.parent / "photos/other.jpg")
    other = NAMES[0].rpartition(".")[0] + ".jpeg"
    shutil.copy(root.parent / "photos" / NAMES[1], root.parent / "photos" / other)
    result = new(write([*SHORT, (other, "en", "another dog")]))
    assert result.exit_code == 2
    said = f"expected a name that differs from {NAMES[0]} in more than its suffix, found {other}"
    assert said in result.output
    assert "1 problem(s)" in result.output


def test_captions_without_a_common_word_are_refused(root):
    rows = [(name, "en", name.partition(".")[0]) for name in NAMES]
    assert_refused(root, new(write(rows)), "expected words that stand in the captions of 2")


@pytest.mark.parametrize("second", ["ja", "es"])
def test_a_corpus_in_its_own_layout_is_linked(root, second):
    """With a language that its publishers have, and one that the user added."""
    raw = write_flickr8k(root.parent / "raw")
    (raw / "flickr8k/images").mkdir()
    for number, name in enumerate(("11", "12", "13", "21", "31", "33", "35")):
        photo = Image.new("RGB", (8, 8), (number, 0, 0))
        photo.save(raw / f"flickr8k/images/{name}.jpg")
    more = {13: "train", 33: "val", 35: "test"}
    with open(raw / "flickr8k/images.csv", "a") as file:
        file.writelines(f"{n},images/{n}.jpg,{split},,8,8,1\n" for n, split in more.items())
    for kind in ("en.human", "ja.machine_translation"):
        with open(raw / f"flickr8k/captions/{kind}.tsv", "a") as file:
            file.writelines(f"{n}\t{i}\t{kind} {n} {i}\n" for n in more for i in range(5))
    spanish = [f"{n}.jpg\tes\tFoto {n}, {i}.\n" for n in (11, 21, 31, *more) for i in range(2)]
    (raw / "added_captions.tsv").write_text("image\tlanguage\ttext\n" + "".join(spanish))
    options = ["--from", "flickr8k", "--language", "en", "--language", second]
    result = new(raw, *options, images=raw / "flickr8k/images", name="photos")
    settings = made(root, result, "photos")
    assert set(captions(root, settings, "photos")["language"]) == {"en", second}
    home = root / "studies/photos"
    assert (home / settings.extractors["photos_lite0"].images / "31.jpg").is_file()


def test_flickr8k_is_read_as_its_publishers_have_it(root):
    raw = write_flickr8k_clone(root.parent / "raw")
    photos, data = root.parent / "Flicker8k_Dataset", raw / "flickr8kcn/data"
    photos.mkdir()
    with open(data / "flickr8kval.txt", "a") as file:
        file.write("35_35ab\n")
    with open(data / "flickr8kenc.caption.txt", "a") as file:
        file.writelines(f"35_35ab.jpg#enc#{number} en.human 35\n" for number in range(5))
    for number in (11, 13, 21, 24, 31, 35):
        Image.new("RGB", (8, 8), (number, 0, 0)).save(photos / f"{number}_{number}ab.jpg")
    result = new(raw, "--from", "flickr8k", "--language", "en", images=photos, name="photos")
    settings = made(root, result, "photos")
    assert len(captions(root, settings, "photos")) == 30
    images = root / "studies/photos" / settings.extractors["photos_lite0"].images
    assert (images / "24_24ab.jpg").is_file()


def test_without_a_choice_each_language_is_taken_once_published_or_added(root, monkeypatch):
    raw = write_flickr8k(root.parent / "raw")
    lines = ["image\tlanguage\tposition\ttext", "11.jpg\ten\t5\tMore.", "11.jpg\tes\t0\tUn."]
    (raw / "added_captions.tsv").write_text("".join(f"{line}\n" for line in lines))
    asked = []

    def read(*_, languages, **__):
        asked.extend(languages)
        raise ContractError("read")

    monkeypatch.setattr(layouts, "read_corpus", read)
    assert_refused(root, new(raw, "--from", "flickr8k"), "read")
    assert asked == ["en", "zh", "ja", "de", "fr", "cs", "es"]
    asked.clear()
    (raw / "flickr8k/captions/ja.machine_translation.tsv").unlink()  # nobody distributes it
    assert_refused(root, new(raw, "--from", "flickr8k"), "read")
    assert asked == ["en", "zh", "de", "fr", "cs", "es"]


def test_a_corpus_that_lacks_a_split_is_to_be_completed(root):
    raw = write_flickr8k(root.parent / "raw")
    photos = raw / "flickr8k/images.csv"
    photos.write_text(photos.read_text().replace(",val,", ",train,"))
    result = new(raw, "--from", "flickr8k", "--language", "en")
    assert_refused(root, result, "found none of val among test, train. Complete the corpus")


VALIDATED = next(name for name, split in SPLITS.items() if split == "val")
OF_EACH = {split: name for name, split in SPLITS.items()}
LACKS_VAL = [(name, "dev" if split == "val" else split) for name, split in SPLITS.items()]
REFUSED = {
    "a missing column": (
        [(name, "en") for name in NAMES], {"header": ("image", "language")},
        ["captions.tsv:1: expected a header of image, language, text", "['image', 'language']"],
    ),
    "a column that nobody knows": (
        [(*row, "x") for row in SHORT], {"header": ("image", "language", "text", "Split")},
        ["captions.tsv:1: expected a header of image", "'Split'"],
    ),
    "a column twice": (
        [(*row, "x") for row in SHORT], {"header": ("image", "language", "text", "text")},
        ["captions.tsv:1: expected a header of image"],
    ),
    "commas in a .tsv": (
        [(",".join(row),) for row in SHORT], {"header": ("image,language,text",)},
        ["between tabs", "a table with commas is called .csv"],
    ),
    "a wrong number of fields": (
        [*SHORT, ("a", "en"), ("b", "en", "x", "y")], {},
        ["captions.tsv:82: expected 3 fields as in the header, found 2",
         "captions.tsv:83: expected 3 fields as in the header, found 4"],
    ),
    "dev for val": (
        [(*row, "en", "x") for row in LACKS_VAL],
        {"header": ("image", "split", "language", "text")},
        ["found none of val among dev, test, train", "leave the column split out"],
    ),
    "too few photos for a draw": (
        SHORT[:4], {},
        ["found none of val among", "Of few photos the draw", "add photos, or name"],
    ),
    "a missing photo": (
        [*SHORT, ("lost.jpg", "en", "x")], {},
        ["captions.tsv:82: expected a file below", "'lost.jpg'"],
    ),
    "a photo outside": ([*SHORT, ("", "en", "x")], {}, ["captions.tsv:82: expected a file below"]),
    "a language without test captions": (
        [(name, "en", "x", split) for name, split in SPLITS.items()]
        + [(NAMES[0], "fr", "y", "train")],
        {"header": ("image", "language", "text", "split")},
        ["language fr: expected captions of one kind in train, val and test, found 1 caption of "
         "train", "--language"],
    ),
    "no language code": (
        [*SHORT, (NAMES[0], "English", "x")], {},
        ["captions.tsv:82: expected a language code of two or three small letters, found "
         "'English'"],
    ),
    "an empty text": ([*SHORT, (NAMES[0], "en", " ")], {}, ["captions.tsv:82: expected a caption"]),
    "an unknown kind": (
        [(*row, "spoken") for row in SHORT],
        {"header": ("image", "language", "text", "annotation")},
        ["captions.tsv:2: expected one of caption, translation, machine, found 'spoken'"],
    ),
    "Latin-1": (
        [*SHORT, (NAMES[0], "de", "schön")], {"encoding": "latin-1"},
        ["captions.tsv:82: expected UTF-8, found byte 0xf6", "Convert the file"],
    ),
    "semicolons": (
        SHORT, {"name": "captions.csv", "separator": ";"},
        ["found ['image;language;text']. Save the table with tabs or commas"],
    ),
    "a long line of something else": (
        [], {"header": ("x" * 100_000,)}, ["found ['xxxx", "xxxx.... Mend the header"],
    ),
    "an empty file": ([], {"header": ()}, ["expected lines of text, found an empty file"]),
    "a header alone": ([], {}, ["expected captions, found none"]),
    "a quote that does not end": (
        [*SHORT, (NAMES[0], "en", '"x')], {"name": "captions.csv"},
        ["captions.csv:82: expected CSV, found"],
    ),
    "a row of several lines with a quote too many": (
        [*SHORT, (NAMES[0], "en", '"x\ny\nz"'), (NAMES[1], "en", '"c')],
        {"name": "captions.csv"}, ["captions.csv:85: expected CSV, found"],
    ),
    "a row of several lines with a field too few": (
        [*SHORT, (NAMES[0], '"x\ny\nz"')], {"name": "captions.csv"},
        ["captions.csv:82: expected 3 fields as in the header, found 2"],
    ),
    "a caption that was quoted twice": (
        [*SHORT, (NAMES[0], "en", '\"""a """"big"""" dog"""')], {"name": "captions.csv"},
        ["captions.csv:82: expected a caption that is quoted once"],
    ),
    "one photo to validate on": (
        [
            (name, "en", "x", "train" if split == "val" and name != VALIDATED else split)
            for name, split in SPLITS.items()
        ],
        {"header": ("image", "language", "text", "split")},
        ["split: expected 2 photos or more of val, found 1. Name the splits so"],
    ),
    "one photo of a language in a split": (
        [(name, "en", "x", split) for name, split in SPLITS.items()]
        + [(name, "fr", "x", split) for split, name in OF_EACH.items()],
        {"header": ("image", "language", "text", "split")},
        [
            "language fr: expected captions of 2 photos or more in val, found one photo: alone it "
            "ranks first whatever was learnt. Add some",
            "language fr: expected captions of 2 photos or more in test",
        ],
    ),
    "a name longer than a file can have": (
        [*SHORT, ("x" * 300, "en", "x"), ("lost.jpg", "en", "x")], {},
        ["captions.tsv:82: expected a file below", "captions.tsv:83: expected a file below"],
    ),
    "a source without a kind": (
        [(n, "de", "x", "") for n in NAMES] + [(NAMES[0], "en", "x", "de/caption/0")],
        {"header": ("image", "language", "text", "translation_of")},
        ["captions.tsv:42: expected nothing, as annotation is caption (or translation in annotat"],
    ),
    "JSON": (
        [], {"header": ('{"image": "a"}',), "name": "captions.jsonl"},
        ["expected text between tabs or commas, found JSON. Export it as text"],
    ),
    "a Parquet table": (
        [], {"header": ("PAR1",), "name": "captions.parquet"}, ["found a Parquet table. Export it"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_used_is_refused_and_leaves_nothing(root, case):
    rows, options, said = REFUSED[case]
    assert_refused(root, new(write(rows, **options)), *said)


def assert_refused(root, result, *said):
    assert result.exit_code == 2, result.output
    assert isinstance(result.exception, SystemExit), result.exception
    for part in said:
        assert part in result.output
    assert list((root / "studies").iterdir()) == []


def test_a_folder_is_no_table(root):
    assert_refused(root, new("../photos"), "found a folder. Name a file in it")


def test_lines_may_end_with_a_carriage_return_alone(root):
    path = write(SHORT)
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r"))
    assert len(captions(root, made(root, new(path)))) == len(SHORT)


def test_what_the_first_stage_would_refuse_is_refused(root, monkeypatch):
    """Whatever the table's own check lets through."""
    findings = Findings(problems=["datasets.mine: x"])
    monkeypatch.setattr(import_module("pipeline_lib.cli.new"), "check_study", lambda _: findings)
    assert_refused(root, new(write(SHORT)), "the study cannot be made", "datasets.mine: x")


@pytest.mark.parametrize("found", ["<<<<<<< HEAD\n", "datasets"])
def test_a_root_whose_params_cannot_be_used_is_named_before_the_photos_are_read(root, found):
    params = root / "params.yaml"
    text = params.read_text()
    params.write_text(found + text if found != "datasets" else text.replace("datasets:", "datas:"))
    assert_refused(root, new(write(SHORT)), "params.yaml")


def test_all_problems_are_said_at_once_on_the_lines_of_the_users_own_table(root):
    """Lines are left out before others are read: of one field too few, of another language."""
    photos = root.parent / "photos"
    (photos / NAMES[3]).write_text("no photo")
    whole = (photos / NAMES[4]).read_bytes()
    (photos / NAMES[4]).write_bytes(whole[: len(whole) // 2])
    rows = [("", "fr", "x"), ("a", "en"), *SHORT, ("lost.jpg", "en", "x"), (NAMES[0], "en", "")]
    result = new(write(rows), "--language", "en", "--language", "cs")
    assert_refused(
        root,
        result,
        "captions.tsv:3: expected 3 fields",
        "captions.tsv:84: expected a file below",
        "captions.tsv:85: expected a caption, found no text",
        f"{NAMES[3]}: expected an image in one of JPEG",
        f"{NAMES[4]}: cannot be decoded",
        "found cs",
        "6 problem(s)",
    )
    assert "captions.tsv:2:" not in result.output


@pytest.mark.parametrize(
    "name", ["my-study", "../mine", "1st", "_mine", "münchen", "none", "random", ""]
)
def test_names_that_a_study_cannot_have(root, name):
    assert_refused(root, new(write(SHORT), name=name), "NAME: expected a letter, then letters")


@pytest.mark.parametrize("name", ["world", "coco_stair", "coco_shared", "multi30k_calixto"])
def test_data_of_ones_own_have_no_name_whose_licence_a_card_would_claim(root, name):
    result = new(write(SHORT), name=name)
    assert_refused(root, result, f"NAME: expected a name of your own, found {name}")


def test_the_data_set_itself_keeps_its_name(root):
    result = new("../photos", "--from", "multi30k", name="multi30k_calixto")
    assert_refused(root, result, "expected this file")
    result = new("../photos", "--from", "multi30k", name="coco")
    assert_refused(root, result, "NAME: expected a name of your own, found coco")


@pytest.mark.parametrize(("language", "text"), [("th", "สุนัข วิ่ง บน ชายหาด"), ("km", "ឆ្កែ រត់")])
def test_a_language_without_spaces_is_warned_of_and_its_words_stay_whole(root, language, text):
    result = new(write([(name, language, text) for name in NAMES]))
    settings = made(root, result)
    tokens = tokenize_captions(captions(root, settings), settings.tokenizers)["tokens"]
    assert [*tokens.map(tuple).unique()] == [tuple(text.split())]
    assert f"warning: {language} is written without spaces" in result.stderr
    assert "the other languages alone with --language" in result.stderr


@pytest.mark.parametrize(
    ("language", "tokenizer"), [("jpn", "mecab"), ("zho", "jieba"), ("tha", "whitespace")]
)
def test_codes_of_three_letters_have_the_tokenizers_of_two(root, language, tokenizer):
    result = new(write([(name, language, "日本 の 犬") for name in NAMES]))
    assert made(root, result).tokenizers[language].tokenizer == tokenizer


@pytest.mark.parametrize(
    ("language", "text", "warned"),
    [("cn", "一个男孩在海边的沙滩上跑步", True), ("zh", "一个男孩在海边的沙滩上跑步", False),
     ("de", "Straßenverkehrsordnung", True), ("de", "ein Hund auf der Straße", False),
     ("de", "ein Hund", False)],
)  # fmt: skip
def test_captions_without_spaces_under_a_code_of_a_language_with_them(root, language, text, warned):
    result = new(write([(name, language, text) for name in NAMES]))
    made(root, result)
    said = f"warning: {language}: {len(NAMES)} of {len(NAMES)} captions of 12 characters or more"
    assert (said in result.stderr) == warned


@pytest.mark.parametrize(
    ("language", "tokenizer"),
    [("fr", "moses"), ("es", "moses"), ("ca", "moses"), ("uk", "unicode"), ("yo", "unicode"),
     ("fa", "unicode")],
)  # fmt: skip
def test_moses_reads_languages_that_it_has_rules_for_and_unicode_the_others(
    root, language, tokenizer
):
    settings = made(root, new(write([(name, language, "L’école d’été") for name in NAMES])))
    assert settings.tokenizers[language].tokenizer == tokenizer
    [tokens] = {
        *tokenize_captions(captions(root, settings), settings.tokenizers)["tokens"].map(tuple)
    }
    assert ("école" in tokens) == (tokenizer == "moses")
    assert not {"&quot;", '"'}.intersection(tokens)


@pytest.mark.parametrize(
    ("language", "word"), [("te", "బీచ్\u200cలో"), ("hi", "क्\u200dया"), ("as", "ল'ৰা")]
)
def test_words_of_india_stay_whole(root, language, word):
    """Moses has rules for the languages, and breaks the words."""
    settings = made(root, new(write([(name, language, f"{word} {word}") for name in NAMES])))
    tokens = tokenize_captions(captions(root, settings), settings.tokenizers)["tokens"]
    assert {*tokens.map(tuple)} == {(word, word)}


def test_a_roots_own_tokenizers_are_taken(root):
    own = {"tokenizer": "whitespace", "lowercase": False, "normalize": False}
    with modify_yaml(root / "params.yaml") as params:
        params["tokenizers"]["de"] = own
    assert made(root, new(write(SHORT))).tokenizers["de"].model_dump() == own


@pytest.mark.parametrize("name", ["null", "true", "no"])
def test_a_study_may_have_a_name_that_yaml_takes_for_a_value(root, name):
    result = new(write(SHORT), name=name)
    assert result.exit_code == 0, result.output
    assert [*load_settings(root / f"studies/{name}/params.yaml").recipes] == [name]


def test_each_language_has_a_tokenizer_of_its_own(root):
    rows = [(name, language, "un perro corre") for name in NAMES for language in ("es", "it")]
    made(root, new(write(rows)))
    text = (root / "studies/mine/params.yaml").read_text(encoding="utf-8")
    assert "es: {tokenizer" in text or "es:\n" in text
    assert not re.search(r"[&*]id\d", text)


def test_a_packed_table_is_to_be_unpacked(root):
    path = root / "captions.tsv.gz"
    path.write_bytes(gzip.compress(b"image\tlanguage\ttext\n"))
    assert_refused(root, new(path), "found a packed file. Unpack it first")


def test_what_its_first_stage_would_warn_of_is_said_with_the_place_of_the_new_study(root):
    first, last = NAMES[0], NAMES[-1]
    shutil.copy(root.parent / "photos" / first, root.parent / "photos" / last)
    rows = [(name, SPLITS[name], "en", f"en {name}") for name in NAMES]
    result = new(write(rows, ("image", "split", "language", "text")))
    made(root, result)
    [said] = [line for line in result.stderr.splitlines() if line.startswith("warning: ")]
    place, sentence = said.removeprefix("warning: ").split(": line ")
    assert place == "studies/mine/params.yaml"
    assert "extractors.mine_lite0.images" in sentence
    assert first in sentence
    assert last in sentence


def test_languages_with_spaces_are_not_warned_of(root):
    result = new(write(SHORT))
    assert made(root, result).tokenizers["de"].tokenizer == "moses"
    warnings = [line for line in result.output.splitlines() if line.startswith("warning")]
    assert ["validation photos are too few" in line for line in warnings] == [True] * len(warnings)


def test_a_wrong_code_of_a_language_is_named_once_and_no_captions_in_it_are_asked_for(root):
    rows = [(name, SPLITS[name], "en", f"en {name}") for name in NAMES]
    rows.append((NAMES[0], SPLITS[NAMES[0]], "fra-CA", "x"))
    result = new(write(rows, ("image", "split", "language", "text")))
    assert_refused(root, result, "found 'fra-CA'")
    assert "language fra-CA" not in result.output


def test_a_table_of_a_header_alone_is_refused_with_a_language_too(root):
    assert_refused(root, new(write([]), "--language", "fr"), "captions.tsv")


def test_studies_that_lie_elsewhere_are_refused(root):
    """The links of a study to the code would lead astray."""
    (root / "studies").rename(root.parent / "elsewhere")
    (root / "studies").symlink_to(root.parent / "elsewhere")
    result = new(write(SHORT))
    assert_refused(root, result, "studies: expected a folder of the checkout, found a link to")


def test_a_study_that_is_there_is_left_alone(root):
    before = root / "studies/mine/params.yaml"
    made(root, new(write(SHORT)))
    before.write_text("mine")
    result = new(write(SHORT))
    assert (result.exit_code, before.read_text()) == (2, "mine")
    assert "studies/mine is there already" in result.output


def test_of_two_at_once_one_makes_the_study_and_the_other_says_so(root):
    path = write(SHORT)
    code = "from pipeline_lib.cli.main import main; main()"
    command = [sys.executable, "-c", code, "new", "mine", "--captions", str(path)]
    run = partial(subprocess.Popen, [*command, "--images", "../photos"], stderr=subprocess.PIPE)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    ended = [(one.communicate()[1], one.returncode) for one in [run(env=environment) for _ in "ab"]]
    assert sorted(code for _, code in ended) == [0, 2]
    assert any(b"error: studies/mine is there already" in said for said, _ in ended)
    assert [path.name for path in (root / "studies").iterdir()] == ["mine"]
    assert len(load_settings(root / "studies/mine/params.yaml").recipes) == 1


@pytest.mark.parametrize("reached", ["study_params", "_write_study", "check_study"])
def test_a_kill_leaves_nothing_that_looks_like_a_study_and_the_next_run_cleans_up(
    root, monkeypatch, reached
):
    path, child = write(SHORT), os.fork()
    if child == 0:
        kill = lambda *_: os.kill(os.getpid(), signal.SIGKILL)  # noqa: E731
        monkeypatch.setattr(import_module("pipeline_lib.cli.new"), reached, kill)
        new(path)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL
    [left] = (root / "studies").iterdir()
    assert left.name.startswith(".mine.partial-")
    made(root, new(path))


def test_elsewhere_than_in_the_root_it_says_where_to_run(root, monkeypatch):
    path = write(SHORT).resolve()
    monkeypatch.chdir(root / "studies")
    result = new(path, images=root.parent / "photos")
    assert_refused(root, result, "expected the root of Polyview's checkout")


def test_a_corpus_of_another_layout_is_refused(root):
    result = new("../photos", "--from", "multi30k")
    assert_refused(root, result, "expected this file")


def features(root, names=NAMES):
    vectors = np.arange(1.0, 4 * len(names) + 1).reshape(len(names), 4)
    return give(root.parent / "clip.h5", vectors, names)


def new_of_features(captions, path, *options):
    words = ["new", "mine", "--captions", str(captions), "--features", str(path), *options]
    return CliRunner().invoke(main, words)


def test_features_may_stand_for_photos(root):
    shutil.rmtree(root.parent / "photos")
    settings = made(root, new_of_features(write(SHORT), features(root)))
    assert [*settings.given_features] == ["mine_given"]
    recipe = settings.recipe("mine")
    assert (recipe.features, recipe.image_crops) == ("mine_given", 1)
    file = root / "studies/mine" / settings.extractors["mine_given"].images
    assert file.resolve() == features(root).resolve()
    assert len(captions(root, settings)) == len(SHORT)


def test_features_that_are_not_of_the_photos_are_refused(root):
    result = new_of_features(write(SHORT), features(root, NAMES[3:]))
    assert_refused(root, result, "clip.h5: image: expected the path of each photo, 3 of 40")
    path = features(root)
    with h5py.File(path, "r+") as file:
        file["features"][7] = np.nan
    result = new_of_features(write(SHORT), path)
    assert_refused(root, result, f"clip.h5: 1 rows have NaN or infinity (first: '{NAMES[7]}')")


def test_photos_or_features_are_to_be_named_and_not_both(root):
    path, table = features(root), write(SHORT)
    both = new_of_features(table, path, "--images", "../photos")
    assert_refused(root, both, "expected --images or --features, found both")
    neither = CliRunner().invoke(main, ["new", "mine", "--captions", str(table)])
    assert_refused(root, neither, "expected --images or --features, found neither")


@pytest.mark.parametrize("name", ["captions.tsv", "captions.csv"])
def test_lines_of_separators_alone_are_passed_over(root, name):
    path = write([*SHORT, ("", "", ""), (" ", "", "")], name=name)
    assert len(captions(root, made(root, new(path)))) == len(SHORT)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be"])
def test_utf_16_is_named_alone(root, encoding):
    path = write(SHORT, encoding="utf-16-le" if encoding == "utf-16" else encoding)
    mark = "\ufeff".encode("utf-16-le" if encoding == "utf-16" else encoding)
    path.write_bytes(mark + path.read_bytes())
    result = new(path)
    assert_refused(root, result, "found UTF-16. Save it as UTF-8")
    assert "Mend the header" not in result.output


def test_the_example_of_a_comparison_can_be_uncommented(root):
    rows = [(name, "en", f"en {name}") for name in NAMES]
    made(root, new(write(rows)))
    path = root / "studies/mine/params.yaml"
    text = path.read_text(encoding="utf-8")
    [example] = re.findall("(?m)^# (  larger: .*)$", text)
    text = text.replace("comparisons: {}\n", f"comparisons:\n{example}\n")
    path.write_text(text.replace("[mine_large]", "[mine]"), encoding="utf-8")
    found = read_yaml(path)["comparisons"]["larger"]
    assert found["question"] == "Does a larger space help?"
