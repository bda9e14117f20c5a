"""Publish an artefact whole or not at all, and lose nothing that a killed stage had done.

Every stage writes its outputs through :func:`publish`; long stages keep their work in
:func:`resume_folder`, outside DVC's outputs, because DVC deletes outputs before a run. Its flag
``persist`` keeps them, whatever changed, so that a stage that uses it looks at the identity of what
it finds (training/seeds.py).

A stage is done when DVC has written it into dvc.lock, some moments after the stage has ended. Until
then a kill makes DVC run it again. So its work stays after it is published
(:func:`keep_until_recorded`): a second run under the same identity finds it whole, and publishes
without an update. It goes when a later stage finds the stage in dvc.lock, written since, with these
outputs. (That may be a record from before, which names the same bytes made of other inputs: then
the work is done again.) Work of runs without DVC is never recorded; of each stage there is one
folder at most, and to delete ``.resume`` is always safe.

DVC writes dvc.lock in place, so a kill may cut it off, anywhere. Whole lines that remain would be
a valid lock in which later stages have never run, and ``dvc repro`` would delete their outputs. So
the line ``schema``, without which DVC refuses a lock, is put at its end, where DVC leaves it, and
each stage keeps a copy of the lock before DVC writes it anew: docs/start.md, "After a kill".
"""

import errno
import fcntl
import glob
import hashlib
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from pipeline_lib.running.fingerprints import stage_code

_HOME = Path(".resume")
_LOCK, _KEPT_LOCK = Path("dvc.lock"), _HOME / "dvc.lock"
_END_OF_LOCK = "schema: '2.0'\n"
_PUBLISHED = "published.json"

NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)
"""What flock says on a file system that has none."""


@contextmanager
def publish(path: Path) -> Iterator[Path]:
    """Yield a temporary sibling of ``path``; rename it onto ``path`` when the block succeeds.

    The caller creates a file or a folder at the yielded path. Everything is flushed to disk before
    the rename, so ``path`` is either the complete new artefact or what it was before (or nothing,
    between the two renames by which a folder takes the place of another). If the block
    raises, the temporary is removed; after ``kill -9`` the next call removes it. Of several
    processes at once each writes its own, and the last one stays. Files and folders get the
    permissions of the umask, whatever wrote them.
    """
    _keep_lock()
    with _replace(Path(path)) as temporary:
        yield temporary


def resume_folder(stage: str, identity: object) -> Path:
    """Return the folder that holds the work of ``stage`` for exactly this ``identity``.

    Args:
        stage: Name of the stage instance as in dvc.lock, such as ``features@world_lite0``.
        identity: JSON-serialisable description of everything the result depends on beside the
            code that the stage imports: settings, input hashes, versions of libraries. Work left
            under any other identity of the same stage is deleted: it can never be used again.

    The caller hands the folder to :func:`keep_until_recorded` once the result is published.
    """
    [folder] = resume_folders(stage, [identity])
    return folder


def resume_folders(stage: str, identities: Iterable[object]) -> list[Path]:
    """Return a folder for each piece of a stage's work, as :func:`resume_folder` does for all.

    Another piece, or one less, leaves the folders of the others as they are. A folder's name is
    the digest of its identity and of the stage's code.
    """
    _keep_lock()
    code = stage_code(stage.partition("@")[0])
    texts = [json.dumps([one, code], sort_keys=True, ensure_ascii=False) for one in identities]
    home = _HOME / stage
    folders = [home / hashlib.sha256(text.encode()).hexdigest()[:32] for text in texts]
    for other in set(home.glob("*")) - {*folders}:
        _drop(other)
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)
        if (folder / _PUBLISHED).is_file():
            print(
                f"{stage}: was finished, but DVC has not recorded it. What still holds of its work "
                f"is used again; to do all of it anew, delete {folder}",
                file=sys.stderr,
            )
    return folders


def keep_until_recorded(folder: Path, outputs: Iterable[Path]) -> None:
    """Mark the work in a resume folder as published; it goes when DVC has recorded the stage.

    Args:
        folder: Of :func:`resume_folder`.
        outputs: What the stage published, by whose content its record is recognised.
    """
    digests = {path.as_posix(): dvc_md5(path) for path in outputs}
    with publish(folder / _PUBLISHED) as temporary:
        temporary.write_text(json.dumps(digests), encoding="utf-8")


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file's content, in hexadecimal."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def digest_in_name(path: Path) -> str | None:
    """Return the first digits of its SHA-256 that a file's name ends in; None if it has none."""
    found = re.search(r"-([0-9a-f]{8,64})$", path.stem)
    return found and found[1]


def tree_sha256(path: Path) -> str:
    """Return the SHA-256 of a file, or of all names and contents of a folder, in hexadecimal."""
    if path.is_file():
        return file_sha256(path)
    files = sorted(item for item in path.rglob("*") if item.is_file())
    content = json.dumps([[str(f.relative_to(path)), file_sha256(f)] for f in files])
    return hashlib.sha256(content.encode()).hexdigest()


def dvc_md5(path: Path) -> str:
    """Return the digest by which DVC records a file, or a folder with all that is in it."""
    if path.is_dir():
        found = {f.relative_to(path).as_posix(): dvc_md5(f) for f in path.rglob("*") if f.is_file()}
        listed = [{"md5": found[name], "relpath": name} for name in sorted(found)]
        return hashlib.md5(json.dumps(listed).encode()).hexdigest() + ".dir"
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "md5").hexdigest()


def _keep_lock() -> None:
    """Copy dvc.lock, which DVC writes only when this stage has ended, and drop recorded work."""
    if "DVC_STAGE" not in os.environ:
        return
    new = f"{_END_OF_LOCK}stages: {{}}\n"
    text = _LOCK.read_text(encoding="utf-8") if _LOCK.exists() else new
    if text.startswith(_END_OF_LOCK):
        text = text.removeprefix(_END_OF_LOCK) + _END_OF_LOCK
        _write(_LOCK, text)
    written = _LOCK.stat().st_mtime_ns
    is_whole = text.endswith(_END_OF_LOCK)  # another DVC may be writing it
    if is_whole and not (_KEPT_LOCK.exists() and _KEPT_LOCK.stat().st_mtime_ns == written):
        _write(_KEPT_LOCK, text)
        os.utime(_KEPT_LOCK, ns=(written, written))
        _drop_recorded_work()


def _drop_recorded_work() -> None:
    markers = list(_HOME.glob(f"*/*/{_PUBLISHED}"))
    if not markers:
        return
    from ruamel.yaml import YAML  # where DVC is, and few other things are

    stages = YAML(typ="safe").load(_KEPT_LOCK)["stages"]
    for marker in filter(Path.is_file, markers):
        outputs = stages.get(marker.parent.parent.name, {}).get("outs", [])
        recorded = {output["path"]: output.get("md5") for output in outputs}
        published = _published(marker)
        # A lock from before may name the same outputs, of other code.
        written_since = _KEPT_LOCK.stat().st_mtime_ns > marker.stat().st_mtime_ns
        if written_since and published.items() <= recorded.items():
            _drop(marker.parent)


def _published(marker: Path) -> dict[str, str]:
    """Return the digests of a marker; none if it is damaged: then its work is done anew."""
    try:
        return {**json.loads(marker.read_text(encoding="utf-8"))}
    except (ValueError, TypeError):
        return {}


def _drop(folder: Path) -> None:
    """Delete a resume folder; what a kill leaves of it is never taken for all of it."""
    dropped = _HOME / f".dropped-{os.getpid()}"
    for each in _HOME.glob(".dropped-*"):  # by a killed run
        shutil.rmtree(each, ignore_errors=True)
    with suppress(FileNotFoundError):  # another process was faster
        os.rename(folder, dropped)
    shutil.rmtree(dropped, ignore_errors=True)
    with suppress(OSError):  # others are left
        folder.parent.rmdir()


def _write(path: Path, text: str) -> None:
    with _replace(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


@contextmanager
def own_folder(path: Path) -> Iterator[Path]:
    """Yield a new folder beside a path, which no other process touches, to write there first.

    It is removed at the end, if it is still there; those of killed processes are removed now.

    Raises:
        OSError: Names the path, whatever of the folder could not be written.
    """
    try:
        with ExitStack() as own:
            yield _new_folder(path, own)
    except BaseException as error:
        number = 0 if _names_another(error, path) else _disk_failure(error, path.parent)
        if number:
            raise OSError(number, os.strerror(number), str(path)) from error
        raise


@contextmanager
def _replace(path: Path) -> Iterator[Path]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with own_folder(path) as folder:
        temporary = folder / path.name
        yield temporary
        flush(temporary)
        _move(temporary, path, folder / "replaced")
        _fsync(path.parent)


def _new_folder(path: Path, own: ExitStack) -> Path:
    prefix = _partial(path)
    with _locked(path.parent, fcntl.LOCK_EX):  # until the new folder is locked
        for left in path.parent.glob(f"{glob.escape(prefix)}*"):
            with suppress(OSError), _locked(left, fcntl.LOCK_EX | fcntl.LOCK_NB):
                _remove(left)
        folder = Path(tempfile.mkdtemp(prefix=prefix, dir=path.parent))
        own.enter_context(_locked(folder, fcntl.LOCK_EX))
    own.push(lambda *_: _discard(folder))
    return folder


def _partial(path: Path) -> str:
    return f".{path.name}.partial-"


def _discard(path: Path) -> None:
    with suppress(OSError):  # a disk that cannot be written
        _remove(path)


@contextmanager
def _locked(folder: Path, how: int) -> Iterator[None]:
    """Lock a folder until the end of the block, or of the process that is killed in it."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        _lock(descriptor, how, folder)
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int, how: int, folder: Path) -> None:
    try:
        fcntl.flock(descriptor, how)
    except OSError as error:
        if error.errno in NO_LOCKS:
            said = "the file system has no locks (flock), which two runs at once need"
            raise OSError(error.errno, said, str(folder)) from error
        raise


def _move(source: Path, target: Path, aside: Path) -> None:
    """Rename a file or a folder onto what may be there; os.replace leaves a folder with content.

    What was there goes aside, to be deleted later: the name is free for two renames, no longer.
    """
    while True:
        if target.is_dir() or source.is_dir():
            with suppress(FileNotFoundError):  # of the turn before
                _remove(aside)
            with suppress(FileNotFoundError):
                os.rename(target, aside)
        try:
            os.replace(source, target)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):  # another process was faster
                raise
        else:
            return


def _names_another(error: BaseException, path: Path) -> bool:
    """Return whether an error is of a file that is not being published: one that was read."""
    if not isinstance(getattr(error, "filename", None), str):
        return False
    written = getattr(error, "filename2", None)  # of a copy, whose source is the first
    named = Path(os.path.abspath(written or error.filename))
    folder = Path(os.path.abspath(path.parent))
    if not named.is_relative_to(folder):
        return True
    own = named.relative_to(folder).parts[:1]
    return own not in ((), (path.name,)) and not own[0].startswith(_partial(path))


_DISK_FAILURES = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO, errno.EACCES)

_NUMBER = re.compile(r"(?:errno = |os error |Errno )(\d+)")
"""How HDF5, safetensors and Python name an error of the operating system."""


def _disk_failure(error: BaseException, folder: Path) -> int:
    """Return the number of what the operating system said of a write, or 0 if that did not fail."""
    if isinstance(error, ValueError):  # a mistake in what was read; it may quote anything
        return 0
    numbers = [getattr(error, "errno", None), *map(int, _NUMBER.findall(str(error)))]
    known = [number for number in numbers if number in _DISK_FAILURES]
    if known:
        return known[0]
    if any(said in str(error) for said in _WITHOUT_NUMBER):
        reason = getattr(error.__context__, "errno", None)
        if reason in _DISK_FAILURES:
            return reason
        return errno.ENOSPC if os.statvfs(folder).f_bavail < _FULL_BLOCKS else errno.EIO
    return 0


_WITHOUT_NUMBER = ("PytorchStreamWriter", "inline_container", " requested and ")
"""What torch.save and np.save say where they could not write."""

_FULL_BLOCKS = 256
"""Of a disk with fewer free blocks (a MiB) we say that it is full."""


def flush(path: Path) -> None:
    """Bring a file or a folder to the disk, with the permissions of the umask."""
    if not path.exists():
        raise FileNotFoundError(f"nothing was written to {path}: the artefact cannot be published")
    mask = os.umask(0)
    os.umask(mask)
    for item in [path, *path.rglob("*")] if path.is_dir() else [path]:
        if item.is_symlink():  # what it leads to is not ours
            continue
        item.chmod((0o777 if item.is_dir() else 0o666) & ~mask)
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
