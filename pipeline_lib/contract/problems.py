"""Finding out everything that is wrong with an artefact, and saying it at once."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # nearly all modules import this one, and most of them no tables
    import pandas as pd


class ContractError(ValueError):
    """An artefact does not have the form that the contract promises."""


def raise_problems(where: object, problems: Iterable[str]) -> None:
    """Raise one :class:`ContractError` that lists all ``problems``; do nothing if there is none."""
    problems = list(problems)
    if problems:
        listed = "\n".join(f"  - {problem}" for problem in problems)
        raise ContractError(f"{where}: {len(problems)} problem(s)\n{listed}")


NAMED = 20
"""Problems of one kind that are named; the others are counted."""


def named(problems: Sequence[str], before: str = "", others: str = "more") -> list[str]:
    """Return the first problems, and where there are more: ``before``, "and", how many others."""
    more = len(problems) - NAMED
    return [*problems[:NAMED], *([f"{before}and {more:,} {others}"] if more > 0 else [])]


def lacks_memory(error: BaseException) -> bool:
    """Return whether an error says that memory is used up, as Python or as PyTorch says it."""
    words = ("out of memory", "can't allocate memory", "not enough memory")
    torch_says = isinstance(error, RuntimeError) and any(w in str(error).lower() for w in words)
    return isinstance(error, MemoryError) or torch_says


@cache
def warn(sentence: str) -> None:
    """Say on stderr, once, what is suspicious, and may be meant: the work goes on."""
    if not _SAID_BEFORE.get():
        print(f"warning: {sentence}", file=sys.stderr)


@contextmanager
def said_before() -> Iterator[None]:
    """Warn of nothing meanwhile: what is read is a copy of what has been warned of."""
    token = _SAID_BEFORE.set(True)
    try:
        yield
    finally:
        _SAID_BEFORE.reset(token)


_SAID_BEFORE = ContextVar("said_before", default=False)


def duplicate_rows(frame: pd.DataFrame, key: list[str]) -> Iterator[str]:
    """Yield one sentence if rows repeat the columns ``key``."""
    repeated = frame[frame.duplicated(key)]
    yield from faulty(repeated, key[-1], f"are repeated (expected unique {' + '.join(key)})")


def empty_text(frame: pd.DataFrame, columns: list[str]) -> Iterator[str]:
    """Yield one sentence per column that has missing or empty text."""
    for column in columns:
        empty = frame[column].isna() | (frame[column] == "")
        yield from faulty(frame[empty], column, f"have no {column}")


def faulty(frame: pd.DataFrame, column: str, what: str) -> Iterator[str]:
    """Yield one sentence that counts the offending rows and names the first."""
    if len(frame):
        yield f"{len(frame)} rows {what} (first: {frame[column].iloc[0]!r})"
