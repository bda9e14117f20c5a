"""Read the files of a raw corpus and note every problem with its file and line.

The readers hand one list of problems along and raise it whole at the end, so that one run shows
all that is wrong with a corpus. A file that cannot be used at all is noted here and comes back
empty: callers skip what is empty and need not report it again.
"""

import gzip
import json
import re
import unicodedata
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pandas as pd

from pipeline_lib.contract.problems import named, warn
from pipeline_lib.text.letters import one_line

_SHOWN_HEADER = 200
"""Of a header, so many characters are shown: a file of another form may be one line."""

_LARGEST = 2**28
"""Bytes that a zipped file may hold: a small one can claim any number of them."""

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def is_there(path: Path) -> bool:
    """Return whether there is a file, plain or gzipped, as :func:`read_lines` looks for it."""
    return path.is_file() or _zipped(path).is_file()


def read_lines(path: Path, problems: list[str]) -> list[str]:
    """Return the lines of a UTF-8 text file, plain or gzipped under the name ``<path>.gz``.

    Lines end at newlines only: ``str.splitlines`` would also cut at form feeds and at U+2028,
    which occur inside captions, and shift every later line. Of a text without any newline, they
    end at carriage returns, as old programs write it.
    """
    content = _content(path, problems)
    lines = content.removeprefix(_BYTE_ORDER_MARK).split(b"\n" if b"\n" in content else b"\r")
    if not lines[-1]:
        lines.pop()
    try:
        return [line.decode() for line in lines]
    except UnicodeDecodeError:
        wrong = undecodable(lines)
        note_lines(
            problems, path, ((n, f"{said}. Convert the file to UTF-8.") for n, said in wrong)
        )
        return [line.decode(errors="replace") for line in lines]


def read_sentences(path: Path, problems: list[str]) -> list[str]:
    """Return the sentences of a file with one per line, cleaned by :func:`clean`."""
    lines = read_lines(path, problems)
    return clean(lines, range(1, len(lines) + 1), path, problems)


def read_table(
    path: Path, columns: Iterable[str], separator: str, problems: list[str]
) -> pd.DataFrame:
    """Return the named columns of a delimited file with a header and without quoting.

    Returns:
        One row of strings per line that has as many fields as the header, and its number in
        ``line``. Columns that are not asked for are left out.
    """
    header, *lines = [line.rstrip("\r") for line in read_lines(path, problems)] or [""]
    names = header.split(separator)
    fields = [line.split(separator) for line in lines]
    missing = [column for column in columns if column not in names]
    if missing and header:
        found = header if len(header) <= _SHOWN_HEADER else f"{header[:_SHOWN_HEADER]} ..."
        problems.append(
            f"{path}:1: expected a header with {', '.join(columns)} separated by {separator!r}; "
            f"found no {', '.join(missing)} in {found!r}"
        )
    twice = sorted(column for column in columns if names.count(column) > 1)
    if twice:
        problems.append(f"{path}:1: expected each column once, found {', '.join(twice)} twice")
    wrong = [(number, len(row)) for number, row in enumerate(fields, 2) if len(row) != len(names)]
    expected = f"expected {len(names)} fields as in the header, found"
    note_lines(problems, path, [(number, f"{expected} {count}") for number, count in wrong])
    if missing or twice:
        return pd.DataFrame(columns=[*columns, "line"])
    places = [names.index(column) for column in columns]
    rows = [
        (*(row[place] for place in places), number)
        for number, row in enumerate(fields, 2)
        if len(row) == len(names)
    ]
    return pd.DataFrame(rows, columns=[*columns, "line"])


def read_json(path: Path, problems: list[str]) -> object | None:
    """Return the content of a JSON file; None, with a problem, if there is none."""
    read = _content(path, problems)
    try:
        content = json.loads(read.decode("utf-8-sig")) if read else None
    # JSONDecodeError names line and column, UnicodeDecodeError a byte.
    except (ValueError, RecursionError) as error:
        problems.append(f"{path}: expected JSON in UTF-8, found: {error}. Fetch the file again.")
        return None
    if read and content is None:
        problems.append(f"{path}: expected JSON with content, found null. Fetch the file again.")
    if not _ESCAPED_HALF.search(read):  # as nearly always
        return content
    halves = list(_halves(content, ""))
    form = "expected text, found {}, half of a character. Write all of it, or remove it"
    note_lines(problems, path, [(place, form.format(name)) for place, name in halves])
    return None if halves else content


def _halves(content: object, place: str) -> Iterator[tuple[str, str]]:
    """Yield place and name of each half of a character, which no table holds, in JSON's strings."""
    if isinstance(content, str) and (half := _HALF.search(content)):
        yield place, _named(half[0])
    elif isinstance(content, list):
        for number, item in enumerate(content):
            yield from _halves(item, f"{place}[{number}]")
    elif isinstance(content, dict):
        for name, item in content.items():
            yield from _halves(item, f"{place}.{name}".lstrip("."))


_ESCAPED_HALF = re.compile(rb"\\u[dD][89a-fA-F]")

_HALF = re.compile(r"[\ud800-\udfff]")
"""What JSON writes twice for one character beyond U+FFFF: two that fit are read as that one."""


def clean(
    texts: list[str], lines: Sequence[int | str], path: Path, problems: list[str]
) -> list[str]:
    """Return texts in Unicode normal form NFC, stripped, each inner whitespace one blank.

    Args:
        texts: What was read.
        lines: The line of ``path`` that each text stands on, for the note on an empty text.
        path: File that the texts come from.
        problems: Where empty texts, and control characters in them, are noted.
    """
    cleaned = [*map(one_line, texts)]
    empty = [lines[place] for place, text in enumerate(cleaned) if not text]
    note_lines(problems, path, [(line, "expected a caption, found no text") for line in empty])
    form = "expected text, found the control character {}. Remove it"
    controls = _found(_CONTROL, cleaned, lines)
    note_lines(problems, path, [(line, form.format(name)) for line, name in controls])
    _warn_of_invisible(cleaned, lines, path)
    return cleaned


def _warn_of_invisible(texts: list[str], lines: Sequence[int | str], path: Path) -> None:
    """Warn of what a reader of the captions does not see, and of captions that say nothing."""
    hidden = _found(_INVISIBLE, texts, lines)
    if hidden:
        line, first = hidden[0]
        warn(
            f"{path}: {len(hidden)} captions have characters that nobody sees (first: line {line}, "
            f"{first}): words that look alike count as different. Remove them if they mean nothing"
        )
    mute = [
        line for line, text in zip(lines, texts, strict=True) if text and not _SAYS.search(text)
    ]
    if mute:
        warn(
            f"{path}: {len(mute)} captions have no letter and no digit (first: line {mute[0]}): "
            "they say nothing of their photos. Leave them out"
        )


def _found(
    pattern: re.Pattern[str], texts: list[str], lines: Sequence[int | str]
) -> list[tuple[int | str, str]]:
    """Return the lines of texts with a character, and the name of the first one of each."""
    if not pattern.search(" ".join(texts)):  # as nearly always, and many times faster
        return []
    found = [(line, pattern.search(text)) for line, text in zip(lines, texts, strict=True)]
    return [(line, _named(match[0])) for line, match in found if match]


def _named(character: str) -> str:
    return f"U+{ord(character):04X} {unicodedata.name(character, '')}".strip()


_SAYS = re.compile(r"[^\W_]")
"""A letter or digit of any script."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")

_INVISIBLE = re.compile(
    r"[\u00ad\u061c\u200b\u2060\ufeff\u200e\u200f\u202a-\u202e\u2066-\u2069]"
    r"|(?<=[\x21-\u024f])[\u200c\u200d]"
)
"""Soft hyphens, zero-width blanks, marks of direction, and joiners after Latin letters, which do
not join."""


def clean_column(table: pd.DataFrame, path: Path, problems: list[str]) -> list[str]:
    """Return the column ``text`` of a table with a column ``line``, cleaned by :func:`clean`."""
    # Lists, because iterating over a column of strings is many times slower.
    return clean(table["text"].tolist(), table["line"].tolist(), path, problems)


def note_lines(problems: list[str], path: Path, found: Iterable[tuple[int | str, str]]) -> None:
    """Note what was found on lines (or places) of a file: the first ones, then how many more."""
    lines = [f"{path}:{line}: {what}" for line, what in found]
    problems.extend(named(lines, f"{path}: ", "more lines like the last one"))


def note_rows(
    problems: list[str], path: Path, rows: pd.DataFrame, column: str, expected: str
) -> None:
    """Note rows of a table that :func:`read_table` read, with what one column of them holds."""
    shown = zip(rows["line"], rows[column], strict=True)
    note_lines(problems, path, [(line, f"expected {expected}, found {v!r}") for line, v in shown])


def _content(path: Path, problems: list[str]) -> bytes:
    zipped = _zipped(path)
    try:
        if path.is_file():
            content = path.read_bytes()
        elif zipped.is_file():
            with gzip.open(zipped) as file:
                content = file.read(_LARGEST + 1)
        else:
            problems.append(f"{path}: expected this file (or {zipped.name}), found none")
            return b""
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        problems.append(f"{path}: cannot be read: {error}. Fetch the file again.")
        return b""
    if len(content) > _LARGEST and not path.is_file():
        problems.append(f"{zipped}: expected at most {_LARGEST >> 20} MiB of text. Unpack it first")
        return b""
    if not content:
        problems.append(f"{path}: expected lines of text, found an empty file")
    return content


def _zipped(path: Path) -> Path:
    return path.parent / f"{path.name}.gz"  # a folder such as . has no other name


def undecodable(lines: Iterable[bytes]) -> Iterator[tuple[int, str]]:
    """Yield the numbers of lines that are no UTF-8, and what is wrong with each."""
    for number, line in enumerate(lines, 1):
        try:
            line.decode()
        except UnicodeDecodeError as error:
            place = f"in column {error.start + 1}"
            yield number, f"expected UTF-8, found byte {line[error.start]:#04x} {place}"
