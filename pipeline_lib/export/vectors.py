"""Vectors of sentences, photos or features of photos, in Parquet, a part at a time."""

import codecs
import csv
import json
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TextIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from tqdm import tqdm

from pipeline_lib.contract.problems import NAMED, ContractError, raise_problems
from pipeline_lib.corpora.files import undecodable
from pipeline_lib.corpora.own_table import comma_rows, other_form
from pipeline_lib.images.decoding import ImageError
from pipeline_lib.images.given import open_given
from pipeline_lib.models.embedder import Embedder, WordlessError
from pipeline_lib.running.publishing import publish
from pipeline_lib.search.names import listed, printable
from pipeline_lib.search.photos import NO_PHOTO, photo_paths

_MARK = b"polyview"
"""Key, in the metadata of what is written, of the names of its columns: only that is replaced."""

_ROWS = 4096
"""Rows in memory at a time."""

_LONGEST = 2**20
"""Characters of a line, or cell, of a table of text: a longer one is no sentence."""

_TOO_LONG = (
    "{}: expected rows of less than 1 MB, found a longer one. Shorten it, or save the table as "
    ".parquet"
)


class _Problems:
    """Problems, the first of which are named and the others counted."""

    def __init__(self) -> None:
        self.named, self.more = [], 0

    def add(self, problem: str) -> None:
        if len(self.named) < NAMED:
            self.named.append(problem)
        else:
            self.more += 1

    def listed(self) -> list[str]:
        return self.named + ([f"and {self.more:,} more"] if self.more else [])


def embed_table(
    embedder: Embedder, table: Path, language: str | None, output: Path
) -> tuple[int, int]:
    """Write the rows of a table with the column ``vector`` added.

    Args:
        embedder: The model.
        table: ``.parquet``, ``.csv`` (quoted) or tabs (not quoted), with the column ``text``. All
            columns of the latter two are text.
        language: Of all rows; else the column ``language`` says it.
        output: Parquet to publish.

    Returns:
        How many there are, and how many of them are longer than what the model reads.

    Raises:
        ContractError: If a column or a language is missing, or rows have no word, or the output is
            another file; nothing is published then.
    """
    _check_output(output)
    if language and language not in embedder.languages:
        raise ContractError(f"--language: {_other_language(embedder, language)}")
    problems = _Problems()
    row = longer = 0
    with publish(output) as temporary, tqdm(desc="sentences", unit=" sentences") as bar:
        writer = None
        try:
            for part in parts(table):
                _check_columns(part, table, language)
                if not part:
                    continue
                vectors, cut = _vectors(embedder, part, language, row, problems)
                whole = part.append_column("vector", _column(vectors))
                writer = writer or pq.ParquetWriter(temporary, _ours(whole.schema))
                writer.write_table(whole)
                row, longer = row + len(part), longer + cut
                bar.update(len(part))
        finally:
            if writer:
                writer.close()
        raise_problems(table, problems.listed() if row else ["expected rows, found none"])
    return row, longer


def embed_folder(embedder: Embedder, folder: Path, output: Path) -> tuple[int, dict[str, str]]:
    """Write paths and vectors of the photos below a folder.

    Returns:
        How many there are, and what is wrong with each of those that cannot be read and are left
        out, by path. Where a path is no UTF-8, a question mark stands for each such byte.

    Raises:
        ContractError: If there is no photo, or none that can be read, or the output is another
            file; nothing is published then.
    """
    _check_output(output)
    folder = folder.resolve()
    paths, unreadable, count = photo_paths(folder), {}, 0
    if not paths:
        raise ContractError(f"{folder}: {NO_PHOTO}")
    with publish(output) as temporary, tqdm(total=len(paths), unit=" photos") as bar:
        schema = _ours(pa.schema({"path": pa.string(), "vector": _type(embedder)}))
        with pq.ParquetWriter(temporary, schema) as writer:
            for first in range(0, len(paths), _ROWS):
                part, names, kept = paths[first : first + _ROWS], [], []
                vectors = embedder.embed_each([folder / path for path in part])
                for path, vector in zip(part, vectors, strict=True):
                    if isinstance(vector, ImageError):
                        unreadable[path] = str(vector)
                    else:
                        names.append(printable(path))
                        kept.append(vector)
                    bar.update()
                if kept:
                    column = _column(np.stack(kept))
                    writer.write_table(pa.table([names, column], schema=schema))
                count += len(kept)
        if not count:
            raise_problems(f"{folder}: {NO_PHOTO} to read", listed(unreadable))
    return count, unreadable


def embed_given(embedder: Embedder, given: Path, output: Path) -> int:
    """Write the names and vectors of the rows of a file of features; return how many there are.

    Args:
        embedder: The model.
        given: Of the form that images/given.py describes.
        output: Parquet to publish.

    Raises:
        ContractError: If it is no such file, or the model reads other features, or the output is
            another file; nothing is published then.
    """
    _check_output(output)
    schema = _ours(pa.schema({"image": pa.string(), "vector": _type(embedder)}))
    with (
        open_given(given) as (names, matrix),
        publish(output) as temporary,
        pq.ParquetWriter(temporary, schema) as writer,
        tqdm(total=len(names), unit=" photos") as bar,
    ):
        for first in range(0, len(names), _ROWS):
            part = slice(first, first + _ROWS)
            try:
                column = _column(embedder.embed_features(matrix[part]))
            except ContractError as error:
                raise ContractError(f"{given}, from row {first + 1}: {error}") from error
            writer.write_table(pa.table([[*names[part]], column], schema=schema))
            bar.update(len(column))
        return len(names)


def _check_output(output: Path) -> None:
    """Raise :class:`ContractError` where something lies that this module did not write."""
    found = pa.schema([])
    try:
        found = pq.read_schema(output) if output.is_file() else found
    except (pa.ArrowException, UnicodeDecodeError, OSError) as error:
        if getattr(error, "errno", None):  # of the operating system; a damaged footer has none
            raise
    # Arrow keeps the mark in a table that somebody made from ours, too.
    ours = (found.metadata or {}).get(_MARK) == _columns(found)
    if output.exists() and not ours:
        raise ContractError(
            f"{output}: expected a new file, or one of polyview embed, which is replaced; found "
            "another one. Name a new file, or delete this one"
        )


def _ours(schema: pa.Schema) -> pa.Schema:
    """Return a schema that tells a file of vectors from others that have such a column."""
    return schema.with_metadata({**(schema.metadata or {}), _MARK: _columns(schema)})


def _columns(schema: pa.Schema) -> bytes:
    return json.dumps(schema.names).encode()


def parts(table: Path) -> Iterator[pa.Table]:
    """Yield the rows of a table, whose text is known to be UTF-8.

    Raises:
        ContractError: If it is no table, or damaged.
    """
    is_text = table.suffix.lower() != ".parquet"
    try:
        for batch in _of_text(table) if is_text else _of_parquet(table):
            part = pa.Table.from_batches([batch])
            part.validate(full=True)
            renamed = part.rename_columns(part.column_names)  # raises where one is no UTF-8
            yield renamed.replace_schema_metadata(part.schema.metadata)  # with pandas' index
    except (pa.ArrowException, UnicodeDecodeError, OSError) as error:
        if getattr(error, "errno", None):  # of the operating system; a damaged page has none
            raise
        if is_text and isinstance(error, UnicodeDecodeError):  # it counts from what was read last
            with open(table, "rb") as file:
                line, problem = next(undecodable(file))
            raise ContractError(f"{table}:{line}: {problem}. Save the table as UTF-8") from error
        raise ContractError(f"{table}: expected a table with a header, found {error}") from error


def _of_parquet(table: Path) -> Iterator[pa.RecordBatch]:
    # Else a row group, which may be all of the table, is in memory as a whole.
    with pq.ParquetFile(table, buffer_size=2**20, pre_buffer=False) as file:
        yield from file.iter_batches(_ROWS)


def _of_text(table: Path) -> Iterator[pa.RecordBatch]:
    """Yield the rows of text between commas, with quotes, or between tabs, without."""
    with open(table, "rb") as file:
        begin = file.read(_LONGEST)
    if begin.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise ContractError(f"{table}: expected UTF-8, found UTF-16. Save the table as UTF-8")
    if found := other_form(table):
        raise ContractError(f"{table}: expected text between tabs or commas, found {found}")
    end = "\n" if b"\n" in begin else "\r"  # as old programs write it
    with open(table, encoding="utf-8-sig", newline=end) as file:
        rows = _cells(_lines(file, table), table)
        _, header = next(rows, (1, []))
        if not header:
            raise ContractError(f"{table}: expected a table with a header, found an empty file")
        yield _batch([], header)  # so that the header is judged before the rows
        whole = _whole(rows, header, table)
        while part := [*islice(whole, _ROWS)]:
            yield _batch(part, header)


def _batch(rows: list[list[str]], header: list[str]) -> pa.RecordBatch:
    columns = zip(*rows, strict=True) if rows else [[]] * len(header)
    return pa.record_batch([pa.array(own, pa.string()) for own in columns], names=header)


def _lines(file: TextIO, table: Path) -> Iterator[str]:
    """Yield lines with their end, none of which is so long that memory could not hold it."""
    while line := file.readline(_LONGEST):
        if len(line) == _LONGEST:
            raise ContractError(_TOO_LONG.format(table))
        yield line


def _cells(lines: Iterator[str], table: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of the first line, and the cells, of each row."""
    if table.suffix.lower() != ".csv":
        yield from ((line, row.rstrip("\r\n").split("\t")) for line, row in enumerate(lines, 1))
        return
    most = csv.field_size_limit(_LONGEST)
    try:
        yield from comma_rows(lines, table)
    except ContractError as error:
        if "field limit" in str(error):
            raise ContractError(_TOO_LONG.format(table)) from error
        raise
    finally:
        csv.field_size_limit(most)


def _whole(
    rows: Iterator[tuple[int, list[str]]], header: list[str], table: Path
) -> Iterator[list[str]]:
    """Yield rows that have as many cells as the header; an empty line is one where it has one."""
    for line, cells in rows:
        row = cells or [""]
        if len(row) == len(header):
            yield row
        elif row != [""]:
            hint = ". Put those with commas in quotes" if len(row) > len(header) else ""
            raise ContractError(
                f"{table}:{line}: expected {len(header)} fields as in the header, found "
                f"{len(row)}{hint if table.suffix.lower() == '.csv' else ''}"
            )


def _check_columns(part: pa.Table, table: Path, language: str | None) -> None:
    needed = ["text"] if language else ["text", "language"]
    names = part.column_names
    missing = [f"no column {name}" for name in needed if name not in names]
    if len(names) == 1 and missing and (other := re.search("[,;\t]", names[0])):
        missing.append(f"{other[0]!r} in its header: .csv has commas between columns, others tabs")
    if missing == ["no column language"]:
        missing = ["no column language: add it, or name the one of all rows with --language"]
    twice = [f"the column {name} twice" for name in dict.fromkeys(names) if names.count(name) > 1]
    taken = ["a column vector, which is what is written"] if "vector" in names else []
    other = [
        f"{part.schema.field(name).type} in the column {name}: expected text"
        for name in needed
        if names.count(name) == 1 and not _is_text(part.schema.field(name).type)
    ]
    raise_problems(f"{table} has {', '.join(names)}", [*missing, *twice, *taken, *other])


def _is_text(form: pa.DataType) -> bool:
    if pa.types.is_dictionary(form):
        return _is_text(form.value_type)
    return form in (pa.string(), pa.large_string(), pa.string_view(), pa.null())


def _vectors(
    embedder: Embedder, part: pa.Table, language: str | None, row: int, problems: _Problems
) -> tuple[np.ndarray, int]:
    """Embed the sentences of a part whose first row is number ``row``; note what cannot be.

    Returns:
        Their vectors, and how many have more tokens than the model reads.
    """
    texts = part["text"].to_pylist()
    languages = [language] * len(texts) if language else part["language"].to_pylist()
    vectors = np.zeros((len(texts), embedder.model.architecture.embed_dim), np.float32)
    rows: dict[str, list[int]] = {}
    longer = 0
    for place, (text, named) in enumerate(zip(texts, languages, strict=True)):
        own = named and named.strip()
        if own not in embedder.languages:
            problems.add(f"row {row + place + 1}: {_other_language(embedder, own)}")
        elif not (text and text.strip()):
            problems.add(f"row {row + place + 1}: expected words, found {text!r}")
        else:
            rows.setdefault(own, []).append(place)
    for own, places in rows.items() if not problems.named else ():
        try:
            tokens = embedder.tokens([texts[place] for place in places], own)
        except WordlessError as error:
            for place in sorted(places[each] for each in error.places):
                problems.add(f"row {row + place + 1}: expected words, found {texts[place]!r}")
        else:
            vectors[places] = embedder.embed_tokens(tokens, own)
            longer += sum(len(each) > embedder.max_tokens for each in tokens)
    return vectors, longer


def _other_language(embedder: Embedder, language: object) -> str:
    return f"expected language {', '.join(embedder.languages)}; found {language!r}"


def _column(vectors: np.ndarray) -> pa.FixedSizeListArray:
    flat = pa.array(np.ascontiguousarray(vectors, np.float32).reshape(-1))
    return pa.FixedSizeListArray.from_arrays(flat, vectors.shape[1])


def _type(embedder: Embedder) -> pa.DataType:
    return pa.list_(pa.float32(), embedder.model.architecture.embed_dim)
