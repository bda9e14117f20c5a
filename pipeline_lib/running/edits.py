"""Edits that a user makes while DVC runs: none is recorded as if it had not been made, or had been.

DVC looks at what a stage reads before it runs, and records it as it is afterwards: of a file that
is edited in between, the record is wrong. And most stages depend on ``data/resolved``, which the
first stage of a run writes, while each imports the code and reads the parameters of its own time.
So a stage fails if what it reads was edited meanwhile, or if code and parameters are no longer
those of which ``data/resolved`` was made. Its outputs stay, and nothing is recorded.

What ``resolve`` read is known by the times and sizes of its files (:func:`sources`). Where these
differ, ``python -m stages.resolve --compare`` says whether the edit means something to the stage.
"""

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from pipeline_lib.running import notes

ROOT = Path(__file__).resolve().parents[2]
"""The folder that holds this package, ``stages`` and papers.yaml."""

RESOLVED = "data/resolved/"
"""Where the first stage of a run says what the code and the settings of the others are."""

PARAMS = "params.yaml"

READING = 30.0
"""Seconds within which a stage has imported its code and read its parameters."""

_SOURCES = notes.HOME / "sources.json"
_NOT_READ = {"__pycache__"}

Times = dict[str, list[int]]
"""Of files: when they changed, in nanoseconds, their number on the disk and their size in bytes."""


def sources() -> Times:
    """Return the times of all that data/resolved is made of."""
    return times(
        [PARAMS, *(str(ROOT / name) for name in ("papers.yaml", "pipeline_lib", "stages"))]
    )


def remember(found: Times) -> None:
    """Keep the times of the files that data/resolved was made of, where DVC is at work."""
    if notes.is_possible():
        notes.write(_SOURCES, found)


def times(paths: Iterable[str]) -> Times:
    """Return the times of files, and of all files in folders; what is not there has none."""
    found: Times = {}
    for path in paths:
        for folder, inner, files in os.walk(path):
            inner[:] = [name for name in inner if name not in _NOT_READ]
            for name in files:
                _add(found, f"{folder}/{name}")
        if not os.path.isdir(path):
            _add(found, path)
    return found


def _add(found: Times, path: str) -> None:
    with contextlib.suppress(OSError):
        status = os.stat(path)
        # The time of the last change of content, owner or name: no program sets it to an old one.
        found[path] = [status.st_ctime_ns, status.st_ino, status.st_size]


def changed(before: Times, after: Times) -> list[str]:
    """Return the files that are new, gone, or not as they were, sorted."""
    return sorted(path for path in before | after if before.get(path) != after.get(path))


class Watch:
    """What a stage reads and no other stage writes, as it is when the stage begins.

    Args:
        reads: Paths of files and folders that it reads.
        keys: Of params.yaml that it reads, such as ``datasets.world``.
        written: Paths that stages write.
    """

    def __init__(self, reads: Sequence[str], keys: Sequence[str], written: Iterable[str]) -> None:
        ours = {*written}
        self._own = [path for path in reads if not {path, *_above(path)} & ours and path != PARAMS]
        self._whole = PARAMS in reads and not keys
        self._keys = keys
        self._resolved = [path for path in reads if path.startswith(RESOLVED)]
        self._times, self._params = times(self._own), _bytes(PARAMS)
        self._begun, self._sources = time.time_ns(), sources() if self._resolved else {}

    def is_stale(self) -> bool:
        """Return whether data/resolved is of other code or parameters; if so, say it on stderr."""
        return notes.read(_SOURCES) != self._sources and self._differs()

    def is_edited(self) -> bool:
        """Return whether what the stage read was edited since it began; if so, say it on stderr."""
        edited = changed(self._times, times(self._own))
        now = _bytes(PARAMS)
        if now != self._params:
            edited += [PARAMS] if self._whole else _edited_keys(self._keys, self._params, now)
        if edited:
            more = f" and {len(edited) - 3:,} more" if len(edited) > 3 else ""
            print(
                f"error: edited while this stage ran: {', '.join(edited[:3])}{more}. Its outputs "
                "are not recorded: nobody knows whether it read this before or after. Run dvc "
                "repro again.",
                file=sys.stderr,
            )
        return bool(edited) or self._was_edited_early()

    def _was_edited_early(self) -> bool:
        """Return whether code or settings that count for the stage changed while it read them."""
        if not self._resolved:
            return False
        now, until = sources(), self._begun + READING * 1e9
        early = [path for path in changed(self._sources, now) if _time(now, path) < until]
        return bool(early) and self._differs()

    def _differs(self) -> bool:
        """Return whether the stage's part of data/resolved would be another one by now."""
        if not self._resolved:
            return False
        command = [sys.executable, "-m", "stages.resolve"]
        asked = [word for path in self._resolved for word in ("--compare", path)]
        environment = {key: value for key, value in os.environ.items() if key != "DVC_STAGE"}
        return subprocess.run([*command, *asked], env=environment).returncode != 0


def _above(path: str) -> list[str]:
    return [parent.as_posix() for parent in Path(path).parents]


def _bytes(path: str) -> bytes:
    with contextlib.suppress(OSError):
        return Path(path).read_bytes()
    return b""


def _time(found: Times, path: str) -> int:
    """Return when a file changed; of one that is gone, nobody knows."""
    return found[path][0] if path in found else 0


def _edited_keys(keys: Sequence[str], before: bytes, after: bytes) -> list[str]:
    """Return the keys of params.yaml that have another value; all if it cannot be read."""
    if not keys:
        return []
    from ruamel.yaml import YAML, YAMLError  # here: a stage's own process imports no library

    read = YAML(typ="safe", pure=True).load
    try:
        old, new = read(before), read(after)
    except (YAMLError, ValueError):
        return [PARAMS]
    return [f"{PARAMS}: {key}" for key in keys if _value(old, key) != _value(new, key)]


def _value(content: object, key: str) -> object:
    for name in key.split("."):
        content = content.get(name) if isinstance(content, Mapping) else None
    return content
