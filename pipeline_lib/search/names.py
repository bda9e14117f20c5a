"""Names of files as they are shown, and of what is kept in the cache."""

import hashlib
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path

from pipeline_lib.contract.problems import named

_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def printable(name: Path | str) -> str:
    """Return a name as text that can be encoded: its bytes that are no UTF-8 as question marks."""
    return str(name).encode(errors="replace").decode()


def on_one_line(name: Path | str) -> str:
    """Return a name as :func:`printable` does, its line breaks and other controls escaped.

    Of these are marks of direction, too, which turn round what stands beside them.
    """
    return _CONTROLS.sub(lambda found: ascii(found[0])[1:-1], printable(name))


def listed(unreadable: Mapping[str, str]) -> list[str]:
    """Return what is wrong with photos, by path: a line for each of the first, then how many."""
    lines = [f"{on_one_line(path)}: {problem}" for path, problem in unreadable.items()]
    return named(lines)


def cache_name(*places: Path) -> str:
    """Return the name under which something is kept that is made of what lies in some places."""
    key = json.dumps([os.fsdecode(place.resolve()) for place in places])
    return hashlib.sha256(key.encode()).hexdigest()[:32]
