"""A user's own table of captions, as the reader ``table`` wants it.

What a table must say is which sentence of which language describes which image. Kinds, numbers and
splits that it does not name are filled in.
"""

import codecs
import csv
import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import pandas as pd

from pipeline_lib.contract.problems import ContractError
from pipeline_lib.corpora.columns import COLUMNS
from pipeline_lib.corpora.files import note_lines, read_lines

REQUIRED = ("image", "language", "text")

DEFAULTS: dict[str, Callable[[pd.DataFrame], object]] = {
    "split": lambda table: table["image"].map(_drawn_split),
    "annotation": lambda _: "caption",
    "position": lambda table: (
        table.groupby(["image", "language", "annotation"]).cumcount().astype(str)
    ),
    "translation_of": lambda _: "",
}
"""What a column that a table lacks holds."""

_LONGEST = 100
"""Characters of a header that a message shows: a file of another form may be one long line."""

_Rows = list[tuple[int, list[str]]]  # each with the number of its line


def complete_table(
    path: Path, problems: list[str], columns: Sequence[str] = COLUMNS
) -> pd.DataFrame:
    """Read a table and fill in the columns that it lacks.

    Args:
        path: UTF-8 with a header; separated by tabs without quoting, or by commas with it if it is
            called ``.csv``. Columns :data:`REQUIRED`, and any of :data:`DEFAULTS`. Empty lines
            are passed over, and those of nothing but separators.
        problems: Where lines that cannot be used are noted; they are left out.
        columns: Those that it may have; :data:`REQUIRED` are among them.

    Returns:
        All of these columns as strings, and ``line``. Where the table has none, ``split`` is
        ``train`` for eight of ten images, ``val`` and ``test`` for one each, by the image's name;
        ``annotation`` is ``caption``; ``position`` counts an image's captions of one language and
        kind; ``translation_of`` is empty.
    """
    if found := other_form(path):
        problems.append(f"{path}: expected text between tabs or commas, found {found}")
        return pd.DataFrame(columns=[*columns, "line"])
    header, rows = _header_and_rows(path, columns, problems)
    expected = f"expected {len(header)} fields as in the header, found"
    wrong = [(line, f"{expected} {len(row)}") for line, row in rows if len(row) != len(header)]
    note_lines(problems, path, wrong)
    whole = [(*map(_one_line, row), line) for line, row in rows if len(row) == len(header)]
    table = pd.DataFrame(whole, columns=[*header, "line"])
    for column, default in DEFAULTS.items():
        if column not in table:
            table[column] = default(table)
    return table[[*columns, "line"]]


def _header_and_rows(
    path: Path, columns: Sequence[str], problems: list[str]
) -> tuple[list[str], _Rows]:
    """Return the columns and the lines that are not empty; no line where columns are unusable."""
    lines = [line.rstrip("\r").replace("\r", " ") for line in read_lines(path, problems)]
    comma = path.suffix.lower() == ".csv"
    rows = _comma_rows(lines, path, problems) if comma else _tab_rows(lines)
    header = rows[0][1] if rows else []
    separator = "commas" if comma else "tabs"
    if not lines or not _usable(header, columns, path, separator, problems):
        return [*REQUIRED], []
    return header, [(line, row) for line, row in rows[1:] if any(map(str.strip, row))]


def other_form(path: Path) -> str:
    """Return what a file is that is no table of text, with what to do; empty if it may be one."""
    if path.is_dir():
        return "a folder. Name a file in it, or say with --from which corpus it is"
    if not path.is_file():
        return ""
    with open(path, "rb") as file:
        begin = file.read(6)
    return next((found for start, found in _FORMS.items() if begin.startswith(start)), "")


_FORMS = {
    b"\x1f\x8b": "a packed file. Unpack it first",
    b"PK\x03\x04": "a packed file, as spreadsheets save themselves. Unpack or export it first",
    (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE): "UTF-16. Save it as UTF-8",
    b"\x93NUMPY": "a NumPy array. Features of photos are read from HDF5 (docs/data.md)",
    b"PAR1": "a Parquet table. Export it as text: pandas.read_parquet(...).to_csv(...)",
    (b"\xff\xd8\xff", b"\x89PNG", b"GIF8", b"RIFF"): "a photo. Name a table of texts",
    (b"{", b"["): "JSON. Export it as text: pandas.read_json(...).to_csv(...)",
}
"""By how they begin: what files of other forms are, and what to do."""


def _tab_rows(lines: list[str]) -> _Rows:
    return [(number, line.split("\t")) for number, line in enumerate(lines, 1)]


def _comma_rows(lines: list[str], path: Path, problems: list[str]) -> _Rows:
    rows: _Rows = []
    try:
        for number, row in comma_rows((f"{line}\n" for line in lines), path):
            rows.append((number, row))  # those before a mistake are kept
    except ContractError as error:
        problems.append(str(error))
    return rows


def comma_rows(lines: Iterable[str], path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of the first line, and the cells, of each row of a .csv.

    Blanks after a comma are left out: with them, what stands in quotes would keep these.

    Raises:
        ContractError: If a quote is not closed, or closed amid a cell; names the line, of ``path``.
    """
    reader, start = csv.reader(lines, strict=True, skipinitialspace=True), 1
    try:
        for row in reader:
            yield start, row
            start = reader.line_num + 1
    except csv.Error as error:
        raise ContractError(
            f"{path}:{start}: expected CSV, found: {error}. Mend its quotes"
        ) from error


def _usable(
    header: list[str], columns: Sequence[str], path: Path, separator: str, problems: list[str]
) -> bool:
    complete = {*header}.issuperset(REQUIRED) and {*header}.issubset(columns)
    if complete and len({*header}) == len(header):
        return True
    found = str(header)
    found = found if len(found) <= _LONGEST else f"{found[:_LONGEST]}..."
    mend = "Mend the header; a table with commas is called .csv"
    if len(header) == 1 and ";" in header[0]:
        mend = "Save the table with tabs or commas: semicolons are not read"
    others = [column for column in DEFAULTS if column in columns]
    problems.append(
        f"{path}:1: expected a header of {', '.join(REQUIRED)}, and any of {', '.join(others)}, "
        f"between {separator}; found {found}. {mend}"
    )
    return False


def _one_line(field: str) -> str:
    return field.translate(_AS_BLANKS).strip()


_AS_BLANKS = str.maketrans("\t\n\r", "   ")


def _drawn_split(image: str) -> str:
    draw = int.from_bytes(hashlib.sha256(image.encode()).digest()[:8]) % 10
    return {0: "val", 1: "test"}.get(draw, "train")
