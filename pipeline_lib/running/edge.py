"""The edge of the program: where an error becomes a message and an exit code.

Every stage and every command of ``polyview`` is a command of the classes here. Below them errors
are raised and never printed. What a user can mend (input, parameters, the disk) ends with
:data:`MISTAKE` and its message alone; anything else is our fault and ends with :data:`FAULT`, the
line of code, and how to see the traceback.
"""

import errno
import os
import signal
import sys
import traceback
from collections.abc import Sequence
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import click

from pipeline_lib.contract.problems import ContractError, lacks_memory
from pipeline_lib.settings.strict import SettingsError

MISTAKE, FAULT = 2, 1
"""Exit codes: of what the user can mend, and of a bug of ours."""

INTERRUPTED = 128 + signal.SIGINT
"""Exit code after Ctrl+C, as shells have it."""

CLOSED = 128 + signal.SIGPIPE
"""Exit code where the reader of the output has closed it, such as ``head``, as shells have it."""

TRACEBACK, VARIABLE = "--traceback", "POLYVIEW_TRACEBACK"

_EPILOG = (
    f"{TRACEBACK}, or {VARIABLE}=1 in the environment, shows where in the code an error arose."
)

_MISTAKES = (ContractError, SettingsError, FloatingPointError)

DISK = {
    errno.ENOSPC: "the disk is full. Free some space and run the command again",
    errno.EDQUOT: "your quota of the disk is used up. Free some space and run the command again",
    errno.EFBIG: "the file is larger than the file system or ulimit -f allows. Raise the limit",
    errno.EROFS: "the file system is read-only. Mount it for writing, or work elsewhere",
    errno.EIO: "the disk cannot be read or written (input/output error). Check its health, that "
    "what is mounted there is still connected, and that it did not fill up",
    errno.EACCES: "permission denied. Change the permissions, or the owner",
    errno.EPERM: "permission denied. Change the permissions, or the owner",
    errno.ENOENT: "not found. Run dvc repro, which makes what a stage needs, or mend the path",
    errno.ENOTDIR: "expected a folder, found a file. Move it away",
    errno.EISDIR: "expected a file, found a folder. Move it away",
    errno.ENAMETOOLONG: "the name is too long for this file system. Take a shorter one",
    errno.ELOOP: "a link that leads back to itself. Remove it",
    errno.EMFILE: "too many files are open. Raise the limit: ulimit -n 4096",
    errno.ENFILE: "too many files are open on this machine. Close other programs",
    errno.EAGAIN: "the system starts no more processes or threads. Raise the limit: ulimit -u",
    errno.ESTALE: "the network disk was connected anew meanwhile. Run the command again",
    errno.ENOMEM: "the memory of this machine is used up",
}
"""What an error of the operating system means, and what to do."""


class _Edge:
    def __init__(self, *arguments: object, **options: object) -> None:
        super().__init__(*arguments, **{"epilog": _EPILOG, **options})

    def main(self, args: Sequence[str] | None = None, *rest: object, **options: object) -> object:
        """Run the command; unless tracebacks are asked for, end with a message on any error."""
        given = list(sys.argv[1:] if args is None else args)
        own = [argument for argument in given if argument != TRACEBACK]
        try:
            return super().main(own, *rest, **options)
        except Exception as error:
            if len(own) < len(given) or os.environ.get(VARIABLE) == "1":
                raise
            message, code = explained(error)
            if _is_of_output(error):
                _print_no_more()
        click.echo(f"error: {message}", err=True)
        sys.exit(code)

    def invoke(self, ctx: click.Context) -> object:
        """Do the work; of an interruption say no more than what comes next."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            if not _is_of_output(error):
                raise
            _print_no_more()  # who read it has read enough
            ctx.exit(CLOSED)
        except KeyboardInterrupt:
            click.echo(
                "\ninterrupted. Run the command again: what is kept is not done anew", err=True
            )
            ctx.exit(INTERRUPTED)


class EdgeCommand(_Edge, click.Command):
    """A command that ends with a message where something is wrong: every stage."""


class EdgeGroup(_Edge, click.Group):
    """A group of such commands: ``polyview``."""


def explained(error: Exception) -> tuple[str, int]:
    """Return what to tell the user of an error, and the exit code."""
    if isinstance(error, _MISTAKES):
        return str(error), MISTAKE
    if isinstance(error, OSError) and error.errno in DISK:
        where = error.filename or ("standard output" if _is_of_output(error) else os.getcwd())
        return f"{where}: {DISK[error.errno]}.", MISTAKE
    if isinstance(error, OSError) and error.errno and error.filename:
        return f"{error.filename}: the system says: {error.strerror}. Mend it there.", MISTAKE
    if lacks_memory(error) or isinstance(error.__cause__, BrokenProcessPool):
        said = str(error) or type(error).__name__
        return (
            f"memory is used up ({said}). Close other programs, or lower batch_size and the sizes "
            "of layers: polyview check estimates what a study needs.",
            MISTAKE,
        )
    return (
        f"a fault of Polyview, not of your input: {type(error).__name__}: {error}\n"
        f"{_place(error)}. {TRACEBACK} or {VARIABLE}=1 shows more; please report it.",
        FAULT,
    )


def _is_of_output(error: Exception) -> bool:
    """Return whether what failed is printing; else it was a file, or another pipe."""
    frames = traceback.extract_tb(error.__traceback__)
    return any(frame.filename == click.utils.__file__ for frame in frames)


def _print_no_more() -> None:
    """Let Python's own last flush succeed."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _place(error: Exception) -> str:
    """Return the last line of our own code that an error passed."""
    root = Path(__file__).resolve().parents[2]
    frames = [frame for frame in traceback.extract_tb(error.__traceback__)[1:] if frame.lineno]
    paths = [(Path(frame.filename), frame.lineno) for frame in frames]
    ours = [
        f"in {path.relative_to(root)}, line {line}"
        for path, line in paths
        if path.is_relative_to(root) and "site-packages" not in path.parts
    ]
    return ours[-1] if ours else "in a library"
