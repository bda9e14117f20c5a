"""``polyview embed``: tables and folders to Parquet."""

import shutil

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from pipeline_lib.cli.main import main
from pipeline_lib.export import vectors
from pipeline_lib.models.embedder import Embedder

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


def test_the_language_of_all_rows_is_named(embed, tmp_path):
    path = write(tmp_path / "t.tsv", [("rot",), ("blau",)], ("text",))
    assert embed(path, "--language", "de")[0].exit_code == 0
    result, _ = embed(path)
    assert (result.exit_code, "--language" in result.output) == (2, True)


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
    ],
)
def test_what_cannot_be_embedded_is_named_and_nothing_is_written(
    embed, tmp_path, rows, columns, said
):
    result, output = embed(write(tmp_path / "t.tsv", rows, columns))
    assert (result.exit_code, output.exists()) == (2, False)
    assert said in result.output


def test_a_file_that_is_no_table(embed, tmp_path):
    (tmp_path / "t.parquet").write_bytes(b"x")
    result, _ = embed(tmp_path / "t.parquet")
    assert result.exit_code == 2
    assert "expected a table" in result.output
