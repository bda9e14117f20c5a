"""Publish an artefact whole or not at all, and keep what a killed stage had done.

Every stage writes its outputs through :func:`publish`; long stages keep their unfinished work in
:func:`resume_folder`, outside DVC's outputs, because DVC deletes outputs before a run and its
``persist`` flag would reuse stale work after a code change.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def publish(path: Path) -> Iterator[Path]:
    """Yield a temporary sibling of ``path``; rename it onto ``path`` when the block succeeds.

    The caller creates a file or a folder at the yielded path. Everything is flushed to disk before
    the rename, so ``path`` is either the complete new artefact or what it was before. If the block
    raises, the temporary is removed; after ``kill -9`` the next call removes it.
    """
    path = Path(path)
    temporary = path.with_name(f".{path.name}.partial")
    path.parent.mkdir(parents=True, exist_ok=True)
    _remove(temporary)
    try:
        yield temporary
        _flush(temporary)
        if path.is_dir():  # os.replace cannot replace a folder that has content
            _remove(path)
        os.replace(temporary, path)
        _fsync(path.parent)
    except BaseException:
        _remove(temporary)
        raise


def resume_folder(stage: str, identity: object) -> Path:
    """Return the folder that holds the unfinished work of ``stage`` for exactly this ``identity``.

    Args:
        stage: Name of the stage instance, such as ``features@world_lite0``.
        identity: JSON-serialisable description of everything the result depends on: settings,
            input hashes, the version of the algorithm. Work left under any other identity of the
            same stage is deleted: it can never be used again.

    The caller deletes the folder (:func:`discard`) once the result is published.
    """
    text = json.dumps([identity, _source_sha256()], sort_keys=True, ensure_ascii=False)
    home = Path(".resume") / stage
    folder = home / hashlib.sha256(text.encode()).hexdigest()[:32]
    if home.is_dir():
        for other in home.iterdir():
            if other != folder:
                _remove(other)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def discard(folder: Path) -> None:
    """Delete a resume folder, and its parents as far as they are empty."""
    _remove(folder)
    for parent in (folder.parent, folder.parent.parent):
        if parent.is_dir() and not any(parent.iterdir()):
            parent.rmdir()


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file's content, in hexadecimal."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def tree_sha256(path: Path) -> str:
    """Return the SHA-256 of a file, or of all names and contents of a folder, in hexadecimal."""
    if path.is_file():
        return file_sha256(path)
    files = sorted(item for item in path.rglob("*") if item.is_file())
    content = json.dumps([[str(f.relative_to(path)), file_sha256(f)] for f in files])
    return hashlib.sha256(content.encode()).hexdigest()


def _source_sha256() -> str:
    modules = sorted(Path(__file__).parent.rglob("*.py"))
    return hashlib.sha256("".join(map(file_sha256, modules)).encode()).hexdigest()


def _flush(path: Path) -> None:
    if not path.exists():
        raise FileNotFoundError(f"nothing was written to {path}: the artefact cannot be published")
    for item in [path, *path.rglob("*")] if path.is_dir() else [path]:
        _fsync(item)


def _fsync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
