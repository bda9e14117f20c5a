"""Names of files as they are shown."""

from pathlib import Path


def printable(name: Path | str) -> str:
    """Return a name as text that can be encoded: its bytes that are no UTF-8 as question marks."""
    return str(name).encode(errors="replace").decode()
