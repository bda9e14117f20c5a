"""The index of a folder of photos: their vectors, kept beside the user's cache."""

import fcntl
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TextIO

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from tqdm import tqdm

from pipeline_lib.contract.problems import ContractError, raise_problems, warn
from pipeline_lib.images.decoding import ImageError, is_of_machine
from pipeline_lib.models.embedder import Embedder
from pipeline_lib.running.publishing import file_sha256, publish
from pipeline_lib.search.names import listed, printable

SUFFIXES = (".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff", ".ppm")
"""Names of photos end so; other files are not looked at."""

NO_PHOTO = f"expected photos ({', '.join(SUFFIXES)}), found none"

_AT_ONCE = 1024
"""Photos that are embedded before the next ones are looked at."""

_FOLDER = b"folder"
"""Key of the folder that an index is of."""

_KEPT_EVERY = 60
"""Seconds, at least, between two writes of the index while photos are embedded."""


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

    def file(self, number: int) -> Path:
        """Return where a photo lies.

        Raises:
            ContractError: If there is none of this number, or it now lies outside the folder.
        """
        if not 0 <= number < len(self.paths):
            raise ContractError(f"photo: expected 0 to {len(self.paths) - 1}, found {number}")
        path = self.folder / self.paths[number]
        if not _is_inside(path, self.folder):
            raise ContractError(f"photo {number}: expected a file of the folder, found none")
        return path


def default_index(model: Path, photos: Path) -> Path:
    """Return the file of the index of a folder for a model, in the user's cache.

    Of a model that is trained again it is the same: an index of the model before is replaced.
    """
    try:
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError as error:
        raise ContractError(
            "expected a home folder to keep the index in, found none. Set HOME, or name a file "
            "with --index"
        ) from error
    key = json.dumps([os.fsdecode(place.resolve()) for place in (photos, model)])
    return cache / "polyview" / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.parquet"


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
        of_content = {row[2]: row for row in known.values() if not row[3]}

        def write() -> None:
            write_rows(_kept(rows, known), schema, file)

        try:
            _add(rows, _embedded(embedder, photos, changed, found, of_content), write)
            for path in known.keys() - found.keys():
                if not any(PurePath(path).is_relative_to(folder) for folder in unlisted):
                    del rows[path]  # only now: until all are embedded, one may be known by content
        finally:
            if _written(_kept(rows, known)) != _written(known):
                write()
    return _index(photos, {path: rows[path] for path in found}, dim)


_Row = tuple[int, int, str, str, np.ndarray | None]
"""Size in bytes, time in ns, SHA-256, what is wrong (or nothing), vector (or none).

Without a SHA-256 the photo could not be read, which says nothing of its content.
"""

_Rows = dict[str, _Row]

_Outcome = tuple[str, str, np.ndarray | None]
"""What a row says of a photo's content: SHA-256, what is wrong (or nothing), vector (or none)."""


def photo_paths(folder: Path, unlisted: Callable[[OSError], None] | None = None) -> list[str]:
    """Return the paths of the photos in a folder and those below, relative to it and sorted.

    Args:
        folder: Where to look.
        unlisted: Is told of each folder that cannot be listed; it is warned of in any case.
    """

    def note(error: OSError) -> None:
        where, what = printable(error.filename), error.strerror
        warn(f"{where}: {what}. The photos in this folder are left out")
        if unlisted:
            unlisted(error)

    walk = os.walk(folder, onerror=note)
    files = (Path(parent, name) for parent, _, names in walk for name in names)
    found = (path for path in files if path.suffix.lower() in SUFFIXES and _is_file(path))
    return sorted(str(path.relative_to(folder)) for path in found)


def _is_file(path: Path) -> bool:
    """Return whether a path is a file; one that no right lets see is named when it is read."""
    try:
        return path.is_file()
    except PermissionError:
        return True


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


def _stat(path: Path) -> tuple[int, int] | None:
    """Return size and time of a photo, none if it is gone since it was listed."""
    try:
        stat = path.stat()
    except FileNotFoundError:
        return None
    except PermissionError:
        return 0, 0
    return stat.st_size, stat.st_mtime_ns


def _is_inside(path: Path, folder: Path) -> bool:
    # Not Path's: it raises where no right lets it look.
    return os.path.isfile(path) and not _leads_out(path, folder)


def _leads_out(path: Path, folder: Path) -> bool:
    return not path.resolve().is_relative_to(folder)


def _is_current(row: _Row | None, stat: tuple[int, int]) -> bool:
    """Return whether a row was made of a photo's content, and its size and time are the same."""
    return row is not None and bool(row[2]) and row[:2] == stat


def _kept(rows: _Rows, known: _Rows) -> _Rows:
    """Return rows with what was known of photos that could not be read this time."""
    return {path: row if row[2] else known.get(path, row) for path, row in rows.items()}


def _written(rows: _Rows) -> dict[str, tuple]:
    """Return what tells rows apart, of those that are written."""
    return {path: row[:3] for path, row in rows.items() if row[2]}


def _add(rows: _Rows, new: Iterable[tuple[str, _Row]], write: Callable[[], None]) -> None:
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
    of_content: dict[str, _Row],
) -> Iterator[tuple[str, _Row]]:
    """Yield the rows of new and changed photos, showing progress."""
    with tqdm(total=len(changed), desc="photos", unit=" photos", disable=not changed) as bar:
        for first in range(0, len(changed), _AT_ONCE):
            new: dict[str, list[str]] = {}
            for path in changed[first : first + _AT_ONCE]:
                digest, problem = _content(folder / path, folder)
                if problem:
                    row = (digest, problem, None)
                elif digest in of_content:
                    row = of_content[digest][2:]
                else:
                    new.setdefault(digest, []).append(path)
                    continue
                bar.update()
                yield path, (*found[path], *row)
            for path, outcome in _embedded_once(embedder, folder, new, found):
                bar.update()
                row = (*found[path], *outcome)
                if not row[3]:
                    of_content[row[2]] = row
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
    """Return the SHA-256 of a photo, what is wrong and its vector, as in a row."""
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


def _index(folder: Path, rows: _Rows, dim: int) -> PhotoIndex:
    readable = {path: row for path, row in sorted(rows.items()) if not row[3]}
    unreadable = {path: row[3] for path, row in sorted(rows.items()) if row[3]}
    if not readable:
        raise_problems(f"{folder}: {NO_PHOTO} to read", listed(unreadable))
    vectors = np.empty((len(readable), dim), np.float32)
    for number, row in enumerate(readable.values()):
        vectors[number] = row[4]
    first: dict[str, int] = {}
    originals = [first.setdefault(row[2], number) for number, row in enumerate(readable.values())]
    return PhotoIndex(folder, [*readable], vectors, unreadable, np.array(originals))


def index_schema(dim: int, digest: str, folder: Path) -> pa.Schema:
    """Return the schema of an index of vectors ``[dim]`` by the model of a digest."""
    columns = {
        "path": pa.binary(),  # a name need not be UTF-8
        "size": pa.int64(),
        "mtime_ns": pa.int64(),
        "sha256": pa.string(),
        "problem": pa.string(),
        "vector": pa.list_(pa.float32(), dim),
    }
    return pa.schema(columns, {"model": digest, _FOLDER: os.fsencode(folder)})


def read_rows(file: Path, schema: pa.Schema) -> _Rows:
    """Return the rows of an index; none if it is of another model, damaged, or not there.

    Of a folder that was moved, they are known by their content alone.

    Raises:
        ContractError: If the file is no index of this folder, but something else, which nobody
            wants replaced.
    """
    table = _table(file, schema.names)
    if table is None:
        return {}
    found = table.schema.metadata or {}
    moved = _check_folder(file, found.get(_FOLDER, b""), schema.metadata[_FOLDER])
    if not table.schema.equals(schema) or {**found, _FOLDER: schema.metadata[_FOLDER]} != (
        schema.metadata
    ):
        return {}
    present = table["vector"].is_valid().to_numpy()
    dim = schema.field("vector").type.list_size
    vectors = np.full((len(table), dim), np.nan, np.float32)
    flat = table["vector"].drop_null().combine_chunks()
    if present.any():
        vectors[present] = flat.flatten().to_numpy().reshape(-1, dim)
    if not _is_complete(table, vectors):
        return {}
    columns = [table[name].to_pylist() for name in ("size", "mtime_ns", "sha256", "problem")]
    if moved:  # of the same path, size and time, a photo may be another one
        columns[0] = [-1] * len(table)
    paths = map(os.fsdecode, table["path"].to_pylist())
    filled = (vector if there else None for vector, there in zip(vectors, present, strict=True))
    return dict(zip(paths, zip(*columns, filled, strict=True), strict=True))


def _table(file: Path, names: list[str]) -> pa.Table | None:
    """Return the columns of an index, none if it is damaged or not there."""
    if file.exists() and not file.is_file():
        raise _no_index(file)
    try:
        table = pq.read_table(file, page_checksum_verification=True)
        found = table.schema.names
    except FileNotFoundError:
        return None
    except UnicodeDecodeError:
        raise _no_index(file) from None
    except (OSError, pa.ArrowException) as error:
        if isinstance(error, MemoryError) or getattr(error, "errno", None):
            raise  # the machine's fault: a damaged file has no number
        if file.stat().st_size and not _begins_as_parquet(file):
            raise _no_index(file) from None
        return None
    if found != names:
        raise _no_index(file)
    return table


def _check_folder(file: Path, indexed: bytes, folder: bytes) -> bool:
    """Return whether the folder of an index was moved; raise where it is another one."""
    if indexed and indexed != folder and os.path.isdir(indexed):
        raise ContractError(
            f"{file}: expected the index of {printable(os.fsdecode(folder))}, found that of "
            f"{printable(os.fsdecode(indexed))}, which it would replace. Name another one with "
            "--index, or delete it"
        )
    return indexed != folder


def _is_complete(table: pa.Table, vectors: np.ndarray) -> bool:
    """Return whether rows lack nothing, and photos without a problem have vectors of numbers."""
    if any(column.null_count for column in table.drop_columns("vector").columns):
        return False
    readable = np.array(table["problem"].to_pylist(), object) == ""
    return bool(np.isfinite(vectors[readable]).all())


def _begins_as_parquet(file: Path) -> bool:
    with open(file, "rb") as content:
        return content.read(4) == b"PAR1"


def _no_index(file: Path) -> ContractError:
    return ContractError(
        f"{file}: expected an index of photos, found another file, which it would replace. Name "
        "another one with --index, or delete it"
    )


def write_rows(rows: _Rows, schema: pa.Schema, file: Path) -> None:
    """Publish the rows of an index, without those of photos that could not be read (no SHA-256)."""
    kept = [(os.fsencode(path), *row) for path, row in sorted(rows.items()) if row[2]]
    table = pa.Table.from_pandas(
        pd.DataFrame(kept, columns=schema.names), schema, preserve_index=False
    )
    with publish(file) as temporary:
        content = table.replace_schema_metadata(schema.metadata)
        pq.write_table(content, temporary, write_page_checksum=True)


@contextmanager
def _only_one(file: Path) -> Iterator[None]:
    """Wait until no other process updates this index."""
    with _lock_of(file) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def check_place(file: Path) -> None:
    """Raise ContractError where an index cannot be kept, before hours of work for it."""
    _lock_of(file).close()


def _lock_of(file: Path) -> TextIO:
    if not file.name:
        raise ContractError("--index: expected the name of a file, found ''")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        return open(file.with_name(f".{file.name}.lock"), "a")
    except OSError as error:
        raise ContractError(
            f"{file}: expected a place to keep the index in, found: {error.strerror}. Name a file "
            "elsewhere with --index"
        ) from error
