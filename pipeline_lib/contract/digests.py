"""Digests that artefacts carry, so that a changed byte never passes for a result.

A table or HDF5 file holds the SHA-256 of all its own bytes, with zeros where the digest stands. A
model's folder holds ``SHA256SUMS``, which ``sha256sum --check`` reads, too.
"""

import errno
import hashlib
import mmap
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pipeline_lib.contract.problems import ContractError, raise_problems
from pipeline_lib.running.publishing import file_sha256

SUMS = "SHA256SUMS"
"""Digests of the other files of a folder."""

_MARK = b"polyview-sha256:"

_OF_THE_SYSTEM = {
    errno.EACCES, errno.EPERM, errno.EMFILE, errno.ENFILE, errno.EIO, errno.ESTALE, errno.ENOMEM,
}  # fmt: skip
"""Why a file that may be whole cannot be read."""

NO_DIGEST = (_MARK + 64 * b"0").decode()
"""What a file's writer puts into its attributes; :func:`seal` fills in the digest."""

REMEDY = "Delete it and run dvc checkout, which has a copy in the cache, or dvc repro to make it"


def seal(path: Path) -> None:
    """Write the SHA-256 of a file over its :data:`NO_DIGEST`.

    Raises:
        ContractError: If the text does not stand in the file once.
    """
    with open(path, "r+b") as file, mmap.mmap(file.fileno(), 0) as content:
        place = content.find(NO_DIGEST.encode())
        if place < 0 or content.rfind(NO_DIGEST.encode()) != place:
            raise ContractError(f"{path}: expected {NO_DIGEST} once, in its attributes")
        start = place + len(_MARK)
        content[start : start + 64] = hashlib.sha256(content).hexdigest().encode()


def _check_seal(path: Path, form: str) -> None:
    """Raise :class:`ContractError` if a file is not what its digest says: 0.1 s per 100 MB."""
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as content:
        marks = list(_marks(content))
        sealed = any(_is_sealed(content, place) for place in marks)
    if not marks:
        raise ContractError(
            f"{path}: expected {form} with a digest, found a file without one: it is damaged, cut "
            f"off or something else. {REMEDY}"
        )
    if not sealed:
        raise ContractError(
            f"{path}: expected the content whose digest it carries, found a changed one: the file "
            f"is damaged, or was edited. {REMEDY}"
        )


def _marks(content: mmap.mmap) -> Iterator[int]:
    place = content.find(_MARK)
    while place >= 0:
        yield place + len(_MARK)
        place = content.find(_MARK, place + 1)


def _is_sealed(content: mmap.mmap, start: int) -> bool:
    digest = content[start : start + 64]
    if not re.fullmatch(b"[0-9a-f]{64}", digest):
        return False
    found = hashlib.sha256(memoryview(content)[:start])
    found.update(64 * b"0")
    found.update(memoryview(content)[start + 64 :])
    return found.hexdigest().encode() == digest


@contextmanager
def reading(path: Path, form: str) -> Iterator[None]:
    """Turn what a library raises while it reads a file into an error of ours."""
    if not path.is_file():
        raise ContractError(f"{path}: not found. Run dvc repro, which makes it")
    if not path.stat().st_size:
        raise ContractError(f"{path}: expected an artefact, found an empty file. {REMEDY}")
    try:
        yield
    except (ContractError, MemoryError):
        raise
    except OSError as error:
        if error.errno in _OF_THE_SYSTEM:
            raise OSError(error.errno, os.strerror(error.errno), str(path)) from error
        raise _damaged(path, form, error) from error
    except Exception as error:  # Arrow, HDF5, safetensors and JSON each have their own types
        raise _damaged(path, form, error) from error


def _damaged(path: Path, form: str, error: Exception) -> ContractError:
    return ContractError(
        f"{path}: expected {form}, found a file that is damaged, cut off or something else "
        f"({type(error).__name__}: {_first_line(error)}). {REMEDY}"
    )


@contextmanager
def reading_sealed(path: Path, form: str) -> Iterator[None]:
    """Do what :func:`reading` does, with a file that must carry its own digest.

    A library sees none of a damaged file: libhdf5 may never return from one.
    """
    with reading(path, form):
        _check_seal(path, form)
        yield


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [""])[0][:200]


def write_sums(folder: Path) -> None:
    """Write :data:`SUMS` of all files in a folder."""
    files = sorted(path for path in folder.iterdir() if path.name != SUMS)
    lines = "".join(f"{file_sha256(path)}  {path.name}\n" for path in files)
    (folder / SUMS).write_text(lines, encoding="utf-8")


def check_sums(folder: Path, needed: tuple[str, ...]) -> None:
    """Raise :class:`ContractError` if files of a folder are missing, or others than :data:`SUMS`.

    Args:
        folder: Of a model.
        needed: Files that must be there, whether it has digests or not.
    """
    sums = _sums(folder / SUMS)
    missing = [name for name in {**dict.fromkeys(needed), **sums} if not (folder / name).is_file()]
    problems = [f"{name}: not found" for name in missing]
    for name in sums.keys() - missing:
        if file_sha256(folder / name) != sums[name]:
            problems.append(f"{name}: other bytes than {SUMS} says: damaged, or edited")
    raise_problems(f"{folder} holds no whole model. {REMEDY}", sorted(problems))


def _sums(path: Path) -> dict[str, str]:
    if not path.is_file():
        return {}
    with reading(path, "lines of a SHA-256, two blanks and a file name"):
        pairs = [line.split("  ", 1) for line in path.read_text(encoding="utf-8").splitlines()]
        return {Path(name).name: digest for digest, name in pairs}
