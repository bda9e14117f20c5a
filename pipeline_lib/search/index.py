"""The index of a folder of photos: their vectors, kept beside the user's cache."""

import fcntl
import os
import time
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePath
from typing import TextIO

import numpy as np
from tqdm import tqdm

from pipeline_lib.contract.problems import ContractError, raise_problems
from pipeline_lib.images.decoding import ImageError, is_of_machine
from pipeline_lib.models.embedder import Embedder
from pipeline_lib.running.publishing import NO_LOCKS, file_sha256
from pipeline_lib.search.index_file import Row, Rows, index_schema, read_rows, write_rows
from pipeline_lib.search.names import cache_name, listed
from pipeline_lib.search.photos import NO_PHOTO, photo_paths

_AT_ONCE = 1024
"""Photos that are embedded before the next ones are looked at."""

_KEPT_EVERY = 60
"""Seconds, at least, between two writes of the index while photos are embedded."""

_LAST_TIME = 2**63 - 1
"""Nanoseconds: the year 2262, behind which a broken clock may date a file."""


@dataclass(frozen=True)
class PhotoIndex:
    """Photos of a folder and their vectors.

    Attributes:
        folder: What paths are relative to.
        paths: One of each readable photo, sorted.
        vectors: One of each ``float32 [photos, dim]``, contiguous.
        unreadable: What is wrong with each other photo, by path.
        originals: Number of the first photo that has the same content, ``int64 [photos]``.
    """

    folder: Path
    paths: list[str]
    vectors: np.ndarray
    unreadable: dict[str, str]
    originals: np.ndarray

    def path(self, number: int) -> str:
        """Return a photo's path as it was indexed, relative to the folder.

        Raises:
            ContractError: If there is none of this number.
        """
        if not 0 <= number < len(self.paths):
            raise ContractError(f"photo: expected 0 to {len(self.paths) - 1}, found {number}")
        return self.paths[number]

    def file(self, number: int) -> Path:
        """Return where a photo lies.

        Raises:
            ContractError: If there is none of this number, or it now lies outside the folder.
        """
        path = self.folder / self.path(number)
        if not _is_inside(path, self.folder):
            raise ContractError(f"photo {number}: expected a file of the folder, found none")
        return path


def default_index(model: Path, photos: Path) -> Path:
    """Return the file of the index of a folder for a model, in the user's cache.

    A retrained model keeps the same file: its old index is replaced.
    """
    try:
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError as error:
        raise ContractError(
            "expected a home folder to keep the index in, found none. Set HOME, or name a file "
            "with --index"
        ) from error
    return cache / "polyview" / f"{cache_name(photos, model)}.parquet"


def update_index(embedder: Embedder, photos: Path, file: Path) -> PhotoIndex:
    """Bring the index of a folder up to date, and return it.

    Only new and changed photos are embedded: those of another size or time whose content (SHA-256)
    no readable photo of the index has, and of equal ones one. Photos that the machine could not
    read are tried again, damaged ones when they have changed. If this is interrupted, what is done
    is kept; if it is killed, what was written last, a minute or so ago.

    Args:
        embedder: The model; of an index of another one nothing is kept.
        photos: Folder, with the folders in it.
        file: Of the index; is replaced as a whole.

    Raises:
        ContractError: If the folder has no photo (a drive that is not mounted has none: what was
            indexed stays in the file), or none that can be read; or if the file is something else,
            or the index of another folder that is still there.
    """
    embedder.check_sees_photos()
    photos = photos.resolve()
    dim = embedder.model.architecture.embed_dim
    schema = index_schema(dim, embedder.digest, photos)
    with _only_one(file):
        known = read_rows(file, schema)
        found, unlisted = _look(photos)
        rows = known.copy()
        changed = [
            path
            for path, stat in found.items()
            if not _is_current(known.get(path), stat)
            # A link has the size and the time of what it leads to.
            or (os.path.islink(photos / path) and _leads_out(photos / path, photos))
        ]
        of_content = {row.sha256: row for row in known.values() if not row.problem}

        def write() -> None:
            write_rows(_kept(rows, known), schema, file)

        try:
            _add(rows, _embedded(embedder, photos, changed, found, of_content), write)
            for path in _gone(photos, rows, found, unlisted):
                del rows[path]  # only now: until all are embedded, one may be known by content
        finally:
            if _written(_kept(rows, known)) != _written(known):
                write()
    return _index(photos, {path: rows[path] for path in found}, dim)


_Outcome = tuple[str, str, np.ndarray | None]
"""SHA-256, problem and vector of a :class:`Row`: what it says of a photo's content."""


def _look(folder: Path) -> tuple[dict[str, tuple[int, int]], list[Path]]:
    """Return size and time of each photo in a folder, sorted by path, and what is not listed.

    Raises:
        ContractError: If there is no photo.
    """
    unlisted: list[Path] = []
    paths = photo_paths(
        folder, lambda error: unlisted.append(Path(error.filename).relative_to(folder))
    )
    stats = ((path, _stat(folder / path)) for path in paths)
    found = {path: stat for path, stat in stats if stat}
    if not found:
        raise ContractError(f"{folder}: {NO_PHOTO}")
    return found, unlisted


def _gone(folder: Path, rows: Rows, found: Container[str], unlisted: Sequence[Path]) -> list[str]:
    """Return the paths of photos that are no longer there, but for those that may come back.

    These lie in what is not listed, or below a folder that is empty now: a drive may be mounted
    there. Photos that were moved from there have the same content elsewhere.
    """
    elsewhere = {row.sha256 for path, row in rows.items() if path in found}

    @cache
    def is_empty(parent: PurePath) -> bool:
        if not os.path.isdir(folder / parent):
            return is_empty(parent.parent)
        with os.scandir(folder / parent) as entries:
            return next(entries, None) is None

    return [
        path
        for path, row in rows.items()
        if path not in found
        and not any(PurePath(path).is_relative_to(each) for each in unlisted)
        and (row.sha256 in elsewhere or not is_empty(PurePath(path).parent))
    ]


def _stat(path: Path) -> tuple[int, int] | None:
    """Return size and time of a photo, none if it is gone since it was listed."""
    try:
        stat = path.stat()
    except FileNotFoundError:
        return None
    except OSError:  # reading it will say why
        return 0, 0
    return stat.st_size, min(stat.st_mtime_ns, _LAST_TIME)


def _is_inside(path: Path, folder: Path) -> bool:
    # Not Path's: it raises where no right lets it look.
    return os.path.isfile(path) and not _leads_out(path, folder)


def _leads_out(path: Path, folder: Path) -> bool:
    return not path.resolve().is_relative_to(folder)


def _is_current(row: Row | None, stat: tuple[int, int]) -> bool:
    """Return whether a row was made of a photo's content, and its size and time are the same."""
    return row is not None and bool(row.sha256) and (row.size, row.mtime_ns) == stat


def _kept(rows: Rows, known: Rows) -> Rows:
    """Return rows with what was known of photos that could not be read this time."""
    return {path: row if row.sha256 else known.get(path, row) for path, row in rows.items()}


def _written(rows: Rows) -> dict[str, tuple]:
    """Return what tells rows apart, of those that are written."""
    return {path: (row.size, row.mtime_ns, row.sha256) for path, row in rows.items() if row.sha256}


def _add(rows: Rows, new: Iterable[tuple[str, Row]], write: Callable[[], None]) -> None:
    """Add new rows; write all from time to time, for at most a tenth of the time."""
    due = time.monotonic() + _KEPT_EVERY
    for path, row in new:
        rows[path] = row
        start = time.monotonic()
        if start >= due:
            write()
            end = time.monotonic()
            due = end + max(_KEPT_EVERY, 9 * (end - start))


def _embedded(
    embedder: Embedder,
    folder: Path,
    changed: Sequence[str],
    found: dict[str, tuple[int, int]],
    of_content: dict[str, Row],
) -> Iterator[tuple[str, Row]]:
    """Yield the rows of new and changed photos, showing progress."""
    with tqdm(total=len(changed), desc="photos", unit=" photos", disable=not changed) as bar:
        for first in range(0, len(changed), _AT_ONCE):
            new: dict[str, list[str]] = {}
            for path in changed[first : first + _AT_ONCE]:
                digest, problem = _content(folder / path, folder)
                if problem:
                    row = Row(*found[path], digest, problem, None)
                elif digest in of_content:
                    row = Row(*found[path], digest, "", of_content[digest].vector)
                else:
                    new.setdefault(digest, []).append(path)
                    continue
                bar.update()
                yield path, row
            for path, outcome in _embedded_once(embedder, folder, new, found):
                bar.update()
                row = Row(*found[path], *outcome)
                if not row.problem:
                    of_content[row.sha256] = row
                yield path, row


def _embedded_once(
    embedder: Embedder,
    folder: Path,
    equal: dict[str, list[str]],
    found: Mapping[str, tuple[int, int]],
) -> Iterator[tuple[str, _Outcome]]:
    """Yield what becomes of photos, given by their SHA-256: of equal ones one is embedded.

    Where that one could not be read, or is another meanwhile, the next is tried: no photo inherits
    a problem, or the vector of what is no copy.
    """
    while equal:
        vectors = embedder.embed_each([folder / paths[0] for paths in equal.values()])
        for (digest, paths), vector in zip(equal.items(), vectors, strict=True):
            outcome = _outcome(digest, vector)
            if _stat(folder / paths[0]) != found[paths[0]]:
                outcome = "", "has changed while it was read", None
            done = paths[:1] if outcome[1] else paths[:]
            del paths[: len(done)]
            yield from ((path, outcome) for path in done)
        equal = {digest: paths for digest, paths in equal.items() if paths}


def _outcome(digest: str, vector: np.ndarray | ImageError) -> _Outcome:
    """Return the SHA-256 of a photo, its problem and its vector, as in a row."""
    if not isinstance(vector, ImageError):
        return digest, "", np.float32(vector)
    return "" if is_of_machine(vector.__cause__) else digest, str(vector), None


def _content(path: Path, folder: Path) -> tuple[str, str]:
    """Return the SHA-256 of a photo, and what is wrong with it, or nothing."""
    try:
        if _leads_out(path, folder):
            return "", "leads out of the folder: copy the photo into it"
        return file_sha256(path), ""
    except OSError as error:
        return "", error.strerror


def _index(folder: Path, rows: Rows, dim: int) -> PhotoIndex:
    readable = {path: row for path, row in sorted(rows.items()) if not row.problem}
    unreadable = {path: row.problem for path, row in sorted(rows.items()) if row.problem}
    if not readable:
        raise_problems(f"{folder}: {NO_PHOTO} to read", listed(unreadable))
    vectors = np.empty((len(readable), dim), np.float32)
    for number, row in enumerate(readable.values()):
        vectors[number] = row.vector
    first: dict[str, int] = {}
    originals = [
        first.setdefault(row.sha256, number) for number, row in enumerate(readable.values())
    ]
    return PhotoIndex(folder, [*readable], vectors, unreadable, np.array(originals))


@contextmanager
def _only_one(file: Path) -> Iterator[None]:
    """Wait until no other process updates this index."""
    with _lock_of(file) as lock:
        _lock(lock, fcntl.LOCK_EX, file)
        yield


def check_place(file: Path) -> None:
    """Raise ContractError where an index cannot be kept, before hours of work for it."""
    with _lock_of(file) as lock, suppress(BlockingIOError):  # another process has it
        _lock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB, file)


def _lock(lock: TextIO, how: int, file: Path) -> None:
    try:
        fcntl.flock(lock, how)
    except OSError as error:
        if error.errno in NO_LOCKS:
            raise _no_place(file, "a file system without locks") from error
        raise


def _lock_of(file: Path) -> TextIO:
    if not file.name:
        raise ContractError("--index: expected the name of a file, found ''")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        return open(file.with_name(f".{file.name}.lock"), "a")
    except OSError as error:
        raise _no_place(file, error.strerror) from error


def _no_place(file: Path, found: str) -> ContractError:
    return ContractError(
        f"{file}: expected a place to keep the index in, found: {found}. Name a file elsewhere "
        "with --index"
    )
