"""``polyview embed``: tables and folders to Parquet."""

import os
import random
import re
import shutil

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from given import give

from benchmarks.bad_cases import mutated
from pipeline_lib.cli.main import main
from pipeline_lib.contract.problems import ContractError
from pipeline_lib.export import vectors
from pipeline_lib.export.vectors import embed_table, parts
from pipeline_lib.models.embedder import Embedder
from pipeline_lib.text.tokenizers import TOKENIZERS

pytestmark = pytest.mark.usefixtures("as_a_user")
ROWS = [("1", "en", "a red photo"), ("2", "de", 'ein "grün" Foto'), ("3", "en", "blue, white")] * 5


@pytest.fixture
def embed(colours, tmp_path):
    def run(source, *options):
        output = tmp_path / "vectors.parquet"
        words = ["embed", str(colours / "model"), str(source), str(output), *options]
        return CliRunner().invoke(main, words), output

    return run


def write(path, rows=ROWS, columns=("id", "language", "text")):
    table = pd.DataFrame(rows, columns=columns)
    if path.suffix == ".parquet":
        table.to_parquet(path, index=False)
    elif path.suffix == ".csv":
        table.to_csv(path, index=False)
    else:
        lines = ["\t".join(columns), *("\t".join(row) for row in rows)]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("name", ["t.tsv", "t.csv", "t.parquet"])
def test_rows_keep_their_order_and_columns(embed, colours, tmp_path, monkeypatch, name):
    monkeypatch.setattr(vectors, "_ROWS", 4)  # 15 rows in four parts
    result, output = embed(write(tmp_path / name))
    assert result.exit_code == 0, result.output
    table = pq.read_table(output)
    assert table.column_names == ["id", "language", "text", "vector"]
    assert [
        *zip(*(map(str, table[c].to_pylist()) for c in ("id", "language", "text")), strict=True)
    ] == ROWS
    embedder = Embedder.load(colours / "model")
    expected = [embedder.embed_sentences([text], language)[0] for _, language, text in ROWS]
    np.testing.assert_allclose(np.array(table["vector"].to_pylist()), expected, atol=1e-6)


@pytest.mark.parametrize("name", ["t.tsv", "t.csv"])
def test_values_of_a_text_table_come_out_as_they_stand(embed, tmp_path, name):
    columns = ("id", "day", "sure", "share", "note", "empty", "language", "text")
    rows = [
        ("000788", "2024-01-02", "TRUE", "1.50", "NA", "", "en", "a red photo"),
        ("000012", "2024-01-03", "false", "2", "", "", "de", "ein Foto"),
    ]
    result, output = embed(write(tmp_path / name, rows, columns))
    assert result.exit_code == 0, result.output
    table = pq.read_table(output).drop_columns("vector")
    assert table.to_pylist() == [dict(zip(columns, row, strict=True)) for row in rows]


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("name", ["t.tsv", "t.csv"])
def test_a_row_of_more_than_a_megabyte_is_refused(embed, tmp_path, name, first):
    rows = [("short", "en", "blue")] * first + [("x" * 2_500_000, "en", "a red photo")]
    result, output = embed(write(tmp_path / name, rows))
    assert (result.exit_code, output.exists()) == (2, False)
    assert f"{name}: expected rows of less than 1 MB, found a longer one" in result.output


def test_a_quoted_value_keeps_its_lines_and_commas(embed, tmp_path):
    (tmp_path / "t.csv").write_text('id,note,text\n007,"a,\n""b""",red\n008,"",blue\n009,,white\n')
    result, output = embed(tmp_path / "t.csv", "--language", "en")
    assert result.exit_code == 0, result.output
    table = pq.read_table(output)
    assert table["id"].to_pylist() == ["007", "008", "009"]
    assert table["note"].to_pylist() == ['a,\n"b"', "", ""]


@pytest.mark.parametrize(("first", "last"), [("", "late"), ("7", "seven"), ("1", "")])
@pytest.mark.parametrize("name", ["t.tsv", "t.csv"])
def test_a_column_may_change_its_look_after_the_first_megabyte(tmp_path, name, first, last):
    rows = [(first, "en", "x" * 1000)] * 1500 + [(last, "en", "red")]
    path = write(tmp_path / name, rows, ("note", "language", "text"))
    found = [value for part in parts(path) for value in part["note"].to_pylist()]
    assert found == [first] * 1500 + [last]


def test_the_language_of_all_rows_is_named(embed, tmp_path):
    path = write(tmp_path / "t.tsv", [("rot",), ("blau",)], ("text",))
    assert embed(path, "--language", "de")[0].exit_code == 0
    result, _ = embed(path)
    assert (result.exit_code, "--language" in result.output) == (2, True)


@pytest.mark.parametrize(
    ("lines", "line"),
    [
        (["language,text", "en,a red photo", 'en,"a blue photo', "en,a green photo"], 3),
        (["language,text", 'en,"a red', 'photo"', 'en,"a dog"x"', "en,a green photo"], 4),
        (["text", '"a red photo', "a blue photo"], 2),
    ],
)
def test_a_quote_that_is_not_closed_takes_no_rows_away(embed, tmp_path, lines, line):
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    result, output = embed(tmp_path / "t.csv", *(["--language", "en"] if line == 2 else []))
    assert (result.exit_code, output.exists()) == (2, False)
    assert f"t.csv:{line}: expected CSV, found" in result.output
    assert "Mend its quotes" in result.output


def test_quoted_cells_may_hold_lines_quotes_and_be_long(embed, tmp_path):
    texts = ["a red\nphoto", 'a "blue" photo', "red " * 100_000]
    (tmp_path / "t.csv").write_text(
        "text\n" + "".join('"{}"\n'.format(text.replace('"', '""')) for text in texts)
    )
    result, output = embed(tmp_path / "t.csv", "--language", "en")
    assert result.exit_code == 0, result.output
    assert pq.read_table(output)["text"].to_pylist() == texts


def test_sentences_of_more_words_than_are_read_are_counted(embed, colours, tmp_path, monkeypatch):
    monkeypatch.setattr(vectors, "_ROWS", 2)
    most = Embedder.load(colours / "model").max_tokens
    lengths = [most + 1, 1, most, 3 * most, most + 1]
    rows = [("en", " ".join(["red"] * length)) for length in lengths]
    result, output = embed(write(tmp_path / "t.tsv", rows, ("language", "text")))
    assert result.exit_code == 0, result.output
    assert f"3 sentences are longer: the model reads the first {most} words" in result.stderr
    found = pq.read_table(output)["vector"].to_pylist()
    assert found[0] == found[2] == found[3] == found[4] != found[1]
    assert "longer" not in embed(write(tmp_path / "t.tsv"))[0].stderr


def test_a_language_that_the_model_lacks_is_refused_before_the_table_is_read(embed, tmp_path):
    (tmp_path / "t.parquet").write_bytes(b"no table")
    result, output = embed(tmp_path / "t.parquet", "--language", "fr")
    assert (result.exit_code, output.exists()) == (2, False)
    assert "--language: expected language de, en; found 'fr'" in result.output


def test_of_many_problems_few_are_in_memory(colours, tmp_path, monkeypatch):
    monkeypatch.setattr(vectors, "_ROWS", 1)
    table = write(tmp_path / "t.tsv", [("fr", "rouge")] * 100, ("language", "text"))
    held, check = [], vectors._vectors

    def look(*given):
        held.append(len(given[-1].named))
        return check(*given)

    monkeypatch.setattr(vectors, "_vectors", look)
    with pytest.raises(ContractError, match="and 80 more"):
        embed_table(Embedder.load(colours / "model"), table, None, tmp_path / "o.parquet")
    assert max(held) == 20


def test_a_folder_of_which_no_photo_can_be_read_has_no_vectors(embed, tmp_path):
    (tmp_path / "photos").mkdir()
    for number in range(25):
        (tmp_path / f"photos/{number}.jpg").write_bytes(b"x")
    result, output = embed(tmp_path / "photos")
    assert (result.exit_code, output.exists()) == (2, False)
    assert f"photos: {vectors.NO_PHOTO} to read" in result.output
    assert "0.jpg: expected an image" in result.output
    assert "and 5 more" in result.output


def test_photos_whose_names_differ_in_bytes_that_are_no_utf_8_are_two(embed, colours, tmp_path):
    (tmp_path / "photos").mkdir()
    for byte, colour in ((b"\xfe", "red"), (b"\xff", "blue")):
        name = os.fsdecode(byte + b".png")
        shutil.copy(next((colours / "photos").glob(f"*{colour}*")), tmp_path / "photos" / name)
    result, output = embed(tmp_path / "photos")
    assert result.exit_code == 0, result.output
    table = pq.read_table(output).to_pydict()
    assert table["path"] == ["?.png", "?.png"]
    assert not np.allclose(*table["vector"])


def test_photos_of_a_folder(embed, colours, tmp_path):
    photos = shutil.copytree(colours / "photos", tmp_path / "photos")
    (photos / "broken.jpg").write_bytes(b"x")
    result, output = embed(photos)
    assert "unreadable: broken.jpg: expected an image" in result.stderr
    table = pq.read_table(output).to_pandas()
    embedder = Embedder.load(colours / "model")
    expected = embedder.embed_images([photos / path for path in table["path"]])
    assert [*table["path"]] == ["blue.png", "green.png", "red.png", "white.png"]
    np.testing.assert_allclose(np.stack(table["vector"]), expected, atol=1e-6)


@pytest.mark.parametrize(
    ("rows", "columns", "said"),
    [
        ([("red",)], ("sentence",), "no column text"),
        (
            [("en", "red"), ("fr", "rouge"), ("en", " ")],
            ("language", "text"),
            "row 2: expected lan",
        ),
        (
            [("en", "red"), ("fr", "rouge"), ("en", " ")],
            ("language", "text"),
            "row 3: expected wor",
        ),
        ([("fr", "rouge")] * 100, ("language", "text"), "and 80 more"),
        ([], ("language", "text"), "expected rows, found none"),
        ([("en", "red", "x")], ("language", "text", "text"), "the column text twice"),
        ([("en", "red", "x")], ("language", "text", "vector"), "a column vector, which is what"),
    ],
)
def test_what_cannot_be_embedded_is_named_and_nothing_is_written(
    embed, tmp_path, rows, columns, said
):
    result, output = embed(write(tmp_path / "t.tsv", rows, columns))
    assert (result.exit_code, output.exists()) == (2, False)
    assert said in result.output


def test_rows_whose_text_has_no_word_are_numbered(embed, tmp_path, monkeypatch):
    """Moses drops control characters; here the tokenizer keeps words alone."""
    monkeypatch.setitem(TOKENIZERS, "whitespace", lambda _: re.compile(r"\w+").findall)
    rows = [("red", "en"), ("\x07", "en"), ("blue", "en"), ("\x08", "en")]
    result, output = embed(write(tmp_path / "t.tsv", rows, ("text", "language")))
    assert (result.exit_code, output.exists()) == (2, False)
    assert "row 2: expected words, found '\\x07'" in result.output
    assert "row 4: expected words, found '\\x08'" in result.output


@pytest.mark.parametrize("name", ["t.tsv", "t.csv"])
def test_an_empty_line_is_a_row_where_there_is_one_column_alone(embed, tmp_path, name):
    (tmp_path / name).write_text("text\nred\n\nblue\n", encoding="utf-8")
    result, _ = embed(tmp_path / name, "--language", "en")
    assert (result.exit_code, "row 2: expected words, found ''" in result.output) == (2, True)
    path = write(tmp_path / name, [("red", "en"), ("blue", "en")], ("text", "language"))
    path.write_text(path.read_text() + "\n")
    assert embed(path)[0].exit_code == 0


def test_a_table_of_numbers_is_no_text(embed, tmp_path):
    pq.write_table(pa.table({"text": [1], "language": ["en"]}), tmp_path / "t.parquet")
    result, _ = embed(tmp_path / "t.parquet")
    assert (result.exit_code, "int64 in the column text: expected" in result.output) == (2, True)


@pytest.mark.parametrize("name", ["t.parquet", "t.tsv"])
def test_no_damage_of_a_table_is_a_fault_of_ours(tmp_path, name):
    table = pa.table({"text": ["a red photo", "ein Foto"] * 9, "language": ["en", "de"] * 9})
    path = tmp_path / name
    if name == "t.parquet":
        pq.write_table(table, path)
    else:
        write(path, zip(*table.to_pydict().values(), strict=True), table.column_names)
    whole, refused = path.read_bytes(), 0
    for number in range(300):
        path.write_bytes(mutated(whole, random.Random(number)))
        try:
            for part in parts(path):
                part.to_pylist()
        except ContractError:
            refused += 1
    assert 0 < refused < 300


@pytest.mark.parametrize("source", ["t.tsv", "photos"])
@pytest.mark.parametrize(
    ("output", "said"),
    [
        ("t.tsv", "t.tsv: expected a name that ends in .parquet"),
        ("other.parquet", "other.parquet: expected a new file, or one of polyview embed, which is"),
        ("index.parquet", "index.parquet: expected a new file, or one of polyview embed, which is"),
        ("photos/red.png", "red.png: expected a name that ends in .parquet"),
    ],
)
def test_only_vectors_are_replaced(colours, tmp_path, source, output, said):
    write(tmp_path / "t.tsv")
    write(tmp_path / "other.parquet")
    write(tmp_path / "index.parquet", [("a.jpg", "0.5")], ("path", "vector"))
    shutil.copytree(colours / "photos", tmp_path / "photos")
    before = (tmp_path / output).read_bytes()
    given = [str(each) for each in (colours / "model", tmp_path / source, tmp_path / output)]
    result = CliRunner().invoke(main, ["embed", *given])
    assert (result.exit_code, (tmp_path / output).read_bytes()) == (2, before)
    assert said in result.output


@pytest.mark.parametrize("made", ["derived", "damaged"])
def test_what_was_made_of_vectors_is_not_replaced(embed, colours, tmp_path, made):
    """Arrow hands the mark on to what is made of a table; a file without its end shows none."""
    table = write(tmp_path / "t.tsv")
    output = embed(table)[1]
    if made == "derived":
        found = pq.read_table(output)
        label = pa.array(["by hand"] * len(found))
        pq.write_table(found.append_column("label", label).drop_columns(["vector"]), output)
    else:
        content = bytearray(output.read_bytes())
        begin = len(content) - 8 - int.from_bytes(content[-8:-4], "little")  # of the footer
        content[begin : begin + 40] = bytes(40)
        output.write_bytes(content)
    before = output.read_bytes()
    result = embed(table)[0]
    assert (result.exit_code, output.read_bytes()) == (2, before)
    assert "expected a new file, or one of polyview embed" in result.output


def test_vectors_are_replaced_by_new_ones(embed, colours, tmp_path):
    embed(write(tmp_path / "t.tsv"))
    result, output = embed(colours / "photos")
    assert result.exit_code == 0, result.output
    assert pq.read_schema(output).names == ["path", "vector"]


def test_photos_are_in_no_language(embed, colours):
    result, output = embed(colours / "photos", "--language", "en")
    assert (result.exit_code, output.exists()) == (2, False)
    assert "--language: expected with a table of sentences, found with photos" in result.output


@pytest.mark.parametrize("name", ["t.csv", "t.tsv"])
def test_a_table_in_utf16_is_to_be_saved_as_utf8(embed, tmp_path, name):
    """As a spreadsheet saves "Unicode text"."""
    (tmp_path / name).write_text("text\tlanguage\nred\ten\n", encoding="utf-16")
    result, output = embed(tmp_path / name)
    assert "expected UTF-8, found UTF-16. Save the table as UTF-8" in result.output
    assert (result.exit_code, output.exists()) == (2, False)


@pytest.mark.parametrize("name", ["t.csv", "t.tsv"])
def test_where_a_table_is_no_utf8_is_said_however_long_it_is(embed, tmp_path, name):
    mark = "," if name == "t.csv" else "\t"
    lines = ["text", "language\n"], *[["red", "en\n"]] * 300_000, ["grün", "de\n"]
    content = "".join(mark.join(line) for line in lines)
    (tmp_path / name).write_bytes(content.encode("latin-1"))
    result, output = embed(tmp_path / name)
    assert f"{name}:300002: expected UTF-8, found byte 0xfc in column 3" in result.output
    assert (result.exit_code, output.exists()) == (2, False)


def test_a_pipe_is_to_be_saved_first(embed, tmp_path):
    """It can be read once, and a table is read twice."""
    os.mkfifo(tmp_path / "t.tsv")
    result, output = embed(tmp_path / "t.tsv")
    assert "t.tsv: expected a file or a folder, found a pipe. Save it first" in result.output
    assert (result.exit_code, output.exists()) == (2, False)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("t.csv", "text,language\nrot grün,de\n".encode("latin-1"), "Save the table as UTF-8"),
        ("t.csv", b"text;language\nred;en\n", "';' in its header: .csv has commas between columns"),
        ("t.tsv", b"text,language\nred,en\n", "',' in its header: .csv has commas between columns"),
    ],
)
def test_a_table_of_another_form_is_told_apart(embed, tmp_path, name, content, said):
    (tmp_path / name).write_bytes(content)
    result, output = embed(tmp_path / name)
    assert said in result.output
    assert (result.exit_code, output.exists()) == (2, False)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.csv", b'id, language, text\n1, en, "a red, red photo"\n2, de, Foto\n'),
        ("t.csv", b'id,language,text\r\n1,en ,"a red, red photo"\r\n2,de,Foto\r\n'),
        (
            "t.csv",
            b"\xef\xbb\xbfid\tlanguage\ttext\n".replace(b"\t", b",")
            + b'1,en,"a red, red photo"\n2,de,Foto',
        ),
        ("t.tsv", b"id\tlanguage\ttext\r1\ten\ta red, red photo\r2\tde\tFoto\r"),
        ("t.tsv", b"id\tlanguage\ttext\n1\t en\ta red, red photo\n\n2\tde\tFoto\n"),
    ],
)
def test_a_table_is_read_as_a_new_study_reads_it(embed, tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    result, output = embed(tmp_path / name)
    assert result.exit_code == 0, result.output
    table = pq.read_table(output).to_pydict()
    assert (table["id"], table["text"]) == (["1", "2"], ["a red, red photo", "Foto"])


def test_a_carriage_return_within_a_sentence_ends_no_row(embed, tmp_path):
    (tmp_path / "t.tsv").write_bytes(b"text\na red\rphoto\nblue\n")
    result, output = embed(tmp_path / "t.tsv", "--language", "en")
    assert result.exit_code == 0, result.output
    assert pq.read_table(output)["text"].to_pylist() == ["a red\rphoto", "blue"]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        (
            "t.csv", b"text,language\nred, blue,en\n",
            "t.csv:2: expected 2 fields as in the header, found 3. Put those with commas in quotes",
        ),
        ("t.tsv", b"text\tlanguage\nred\n", "t.tsv:2: expected 2 fields as in the header, found 1"),
        ("t.csv", b"text;language\nred, blue;en\n", "';' in its header: .csv has commas between"),
        ("t.csv", b"", "t.csv: expected a table with a header, found an empty file"),
        ("t.npz", b"PK\x03\x04....", "expected text between tabs or commas, found a packed file"),
        ("t.npy", b"\x93NUMPY\x01\x00", "found a NumPy array. Features of photos are read from"),
    ],
)  # fmt: skip
def test_a_table_of_another_form_is_named_with_its_line(embed, tmp_path, name, content, said):
    (tmp_path / name).write_bytes(content)
    result, output = embed(tmp_path / name)
    assert said in result.output
    assert (result.exit_code, output.exists()) == (2, False)


def test_text_of_every_form_of_arrow_is_text(embed, tmp_path):
    expected = None
    for form in (pa.string(), pa.large_string(), pa.string_view()):
        table = pa.table({"text": pa.array(["a red photo"], form)})
        pq.write_table(table, tmp_path / "t.parquet")
        result, output = embed(tmp_path / "t.parquet", "--language", "en")
        assert result.exit_code == 0, result.output
        found = pq.read_table(output)["vector"].to_pylist()
        expected = expected or found
        assert found == expected


def test_a_file_that_is_no_table(embed, tmp_path):
    (tmp_path / "t.parquet").write_bytes(b"x")
    result, _ = embed(tmp_path / "t.parquet")
    assert result.exit_code == 2
    assert "expected a table" in result.output


@pytest.mark.parametrize("name", ["t.tsv", "t.parquet"])
def test_a_table_is_in_memory_in_parts(embed, tmp_path, monkeypatch, name):
    """100 MB in one row group; Arrow reads up to 32 MiB of a text ahead, and we hold a part."""
    texts = [f"{row:01000d}" for row in range(100_000)]
    if name == "t.tsv":
        (tmp_path / name).write_text("\n".join(["text", *texts]))
    else:
        plain = {"compression": "none", "use_dictionary": False}
        pq.write_table(pa.table({"text": texts}), tmp_path / name, **plain)
    del texts
    before, held = pa.total_allocated_bytes(), []

    def look(_embedder, sentences, _language):
        held.append(pa.total_allocated_bytes() - before)
        return [["red"]] * len(sentences)

    monkeypatch.setattr(Embedder, "tokens", look)
    result, output = embed(tmp_path / name, "--language", "en")
    assert (result.exit_code, pq.read_metadata(output).num_rows) == (0, 100_000)
    assert max(held) < 60e6


def test_features_of_photos_are_embedded_under_their_names(embed, colours, tmp_path, monkeypatch):
    monkeypatch.setattr(vectors, "_ROWS", 4)  # 10 rows in three parts
    features = np.random.default_rng(0).random((10, 1280), np.float32)
    names = [f"{number}.jpg" for number in range(10)]
    result, output = embed(give(tmp_path / "features.h5", features, names))
    assert result.exit_code == 0, result.output
    table = pq.read_table(output)
    assert table["image"].to_pylist() == names
    expected = Embedder.load(colours / "model").embed_features(features)
    np.testing.assert_allclose(np.array(table["vector"].to_pylist()), expected, atol=1e-6)


@pytest.mark.parametrize(
    ("features", "options", "said"),
    [
        (np.ones((2, 3)), (), "features.h5, from row 1: features: expected numbers [images, 1280]"),
        (np.full((2, 1280), np.nan), (), "row 1: NaN or infinity"),
        (np.ones((2, 1280)), ("--language", "de"), "--language: expected with a table"),
    ],
)
def test_features_of_another_kind_are_refused(embed, tmp_path, features, options, said):
    result, output = embed(give(tmp_path / "features.h5", features, ["a", "b"]), *options)
    assert (result.exit_code, output.exists()) == (2, False)
    assert said in result.output


def test_an_index_of_pandas_is_kept(embed, tmp_path):
    rows = pd.DataFrame([row[1:] for row in ROWS], columns=["language", "text"])
    rows.index = [f"row {n}" for n in range(len(rows))]
    rows.to_parquet(tmp_path / "t.parquet")
    result, output = embed(tmp_path / "t.parquet")
    assert result.exit_code == 0, result.output
    found = pd.read_parquet(output)
    assert found.index.equals(rows.index)
    assert [*found] == ["language", "text", "vector"]
