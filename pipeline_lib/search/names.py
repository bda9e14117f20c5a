"""Names of files as they are shown."""

from collections.abc import Mapping
from pathlib import Path

_NAMED = 20
"""Photos of a list that are named; the others are counted."""


def printable(name: Path | str) -> str:
    """Return a name as text that can be encoded: its bytes that are no UTF-8 as question marks."""
    return str(name).encode(errors="replace").decode()


def listed(unreadable: Mapping[str, str]) -> list[str]:
    """Return what is wrong with photos, by path: a line for each of the first, then how many."""
    lines = [f"{printable(path)}: {problem}" for path, problem in unreadable.items()]
    more = [f"and {len(lines) - _NAMED:,} more"] if len(lines) > _NAMED else []
    return lines[:_NAMED] + more
