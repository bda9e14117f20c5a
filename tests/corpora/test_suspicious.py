"""Tables that can be read and should not pass as they are: an error, or a warning that names it."""

from pathlib import Path

import pytest
from refusals import refused

from pipeline_lib.corpora.columns import COLUMNS
from pipeline_lib.corpora.corpus import split_hint
from pipeline_lib.corpora.files import clean
from pipeline_lib.corpora.own_table import complete_table
from pipeline_lib.corpora.table import read_captions_table


def read(folder, *rows):
    """Read a table of photos a.jpg and b.jpg with these rows."""
    (folder / "images/a").mkdir(parents=True)
    (folder / "a.jpg").write_bytes(b"x")
    for name in ("a.jpg", "b.jpg", "a/b.jpg"):
        (folder / "images" / name).write_bytes(b"x")
    lines = ["\t".join(COLUMNS), *("\t".join(row) for row in rows)]
    (folder / "captions.tsv").write_text("".join(f"{line}\n" for line in lines))
    return read_captions_table(folder, "own")


def row(image="a.jpg", text="a dog", language="en", kind="caption", position="0", of=""):
    return (image, "train", language, kind, position, text, of)


REFUSED = {
    "a path out of the folder": ([row("../a.jpg")], ":2: expected a path inside the folder"),
    "an absolute path": ([row("/a.jpg")], ":2: expected a path inside the folder of photos"),
    "a second name of a photo": ([row("./a.jpg")], ":2: expected a path inside the folder"),
    "a name that is too long": ([row(5000 * "a")], ":2: expected a file below"),
    "NUL": ([row(text="a\0dog")], ":2: expected text, found the control character U+0000"),
    "escape": ([row(text="a\x1b[31mdog")], ":2: expected text, found the control character U+001B"),
    "a spreadsheet's quotes": (
        [row(text='"a ""big"" dog"')], ":2: expected no quoting between tabs",
    ),
    "a circle of translations": (
        [row(kind="translation", of="de/translation/0"),
         row(language="de", kind="translation", of="en/translation/0")],
        ":2: expected no circle of translations",
    ),
    "a translation of another photo's caption": (
        [row("a/b.jpg", "a secret"), row("a.jpg", kind="translation", of="b/en/caption/0")],
        ":3: expected a caption of the same image as <language>/<annotation>/<position>",
    ),
    "a translation of itself": (
        [row(kind="translation", of="en/translation/0")], ":2: expected a caption of the same",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_must_not_pass_is_refused_on_its_line(tmp_path, case):
    rows, said = REFUSED[case]
    with refused(said):
        read(tmp_path, *rows)


WARNED = {
    "a zero-width blank": (row(text="a\u200bdog"), "line 2, U+200B ZERO WIDTH SPACE): words that"),
    "a byte order mark": (row(text="a\ufeff dog"), "U+FEFF ZERO WIDTH NO-BREAK SPACE"),
    "a mark of direction": (row(text="a dog\u202e"), "U+202E RIGHT-TO-LEFT OVERRIDE"),
    "a joiner in Latin": (row(text="do\u200dg"), "U+200D ZERO WIDTH JOINER"),
    "punctuation": (row(text="?!…"), "1 captions have no letter and no digit (first: line 2)"),
    "quotes": (row(text='"a dog"'), "1 captions stand in quotes as a whole (first: line 2)"),
    "a translation of nothing": (
        row(kind="translation"), "1 translations do not say of what (first: line 2)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", WARNED)
def test_what_may_be_meant_is_named_and_kept(tmp_path, capsys, case):
    given, said = WARNED[case]
    found = read(tmp_path, given, row("b.jpg")).captions
    warned = capsys.readouterr().err
    assert warned.startswith(f"warning: {tmp_path}/captions.tsv: ")
    assert said in warned
    assert found["text"].tolist() == [given[5], "a dog"]


@pytest.mark.parametrize("text", ["a dog", 'a "big" dog', "می‌خواهم", "क्‍ष", "5", "犬", "👩‍👧 here"])
def test_what_is_right_passes_without_a_word(tmp_path, capsys, text):
    read(tmp_path, row(text=text))
    assert capsys.readouterr().err == ""


def test_each_kind_of_warning_comes_once_for_a_file(capsys):
    texts = ["\u200bone", "\u200btwo", "!", "?"]
    for _ in range(2):
        assert clean(texts, range(1, 5), Path("f"), []) == texts
    assert capsys.readouterr().err.count("warning: f: 2 captions") == 2


def test_other_names_of_splits_are_understood():
    assert (
        split_hint(["dev", "tset", "train"])
        == ". Did you mean 'val' for 'dev' and 'test' for 'tset'?"
    )
    assert split_hint(["train", "extra"]) == "."


def test_a_translation_of_something_unknown_that_others_translate_is_not_warned_of(
    tmp_path, capsys
):
    german = row(language="de", kind="translation")
    french = row(language="fr", kind="translation", of="de/translation/0")
    read(tmp_path, german, french, row("b.jpg"))
    assert not capsys.readouterr().err


def test_a_caption_that_begins_and_ends_with_quoted_words_is_no_quoted_one(tmp_path, capsys):
    read(tmp_path, row(text='"Stop" says the sign to "Bob"'))
    assert capsys.readouterr().err == ""


def test_of_a_repeated_place_no_warning_says_that_it_counts(tmp_path, capsys):
    with refused(":3: expected each caption's place once"):
        read(tmp_path, row(), row())
    assert "further caption" not in capsys.readouterr().err


def test_a_lone_carriage_return_is_a_blank_between_commas_too(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b"image,language,text\na.jpg,en,a dog\ron the beach\n")
    problems = []
    assert complete_table(path, problems)["text"].tolist() == ["a dog on the beach"]
    assert problems == []


@pytest.mark.parametrize("begin", [b"\xff\xd8\xff\xe0", b"\x89PNG\r\n", b"GIF89a", b"RIFF"])
def test_a_photo_is_no_table(tmp_path, begin):
    path, problems = tmp_path / "a.tsv", []
    path.write_bytes(begin + bytes(range(256)))
    complete_table(path, problems)
    assert problems == [
        f"{path}: expected text between tabs or commas, found a photo. Name a table of texts"
    ]
