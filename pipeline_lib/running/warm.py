"""Stages that start at once: under DVC each is forked from one process that has the libraries.

A stage is a process, and importing torch takes 2 of the few seconds that a small one lives. So the
first stage of a ``dvc repro`` leaves a server behind, which imports what most stages import while
the first ones run on the other core. Each later ``python -m stages.STAGE`` hands its arguments,
environment, folder and open files to the server and waits; the server forks a child that runs the
stage. Our own modules are imported in the child: the server has none of their code.

The server and the stages end with the ``dvc`` process, and a child with the stage that asked for
it. Beside them the server trains what is ready (ahead.py). Where there is no server yet, the child
is the stage's own. Either way the process that DVC started only waits: it says how far the run has
come, and puts metrics back if the stage fails (progress.py). Without DVC a stage runs as any Python
module does.
"""

import contextlib
import json
import os
import runpy
import select
import signal
import socket
import struct
import sys
import threading
from pathlib import Path

from pipeline_lib.running.ahead import Ahead
from pipeline_lib.running.progress import Following, due_stages

LIBRARIES = (
    "click",
    "efficientnet_lite_pytorch",
    "h5py",
    "numpy",
    "pandas",
    "pyarrow.parquet",
    "pydantic.main",
    "pydantic.types",
    "ruamel.yaml",
    "sacrebleu",
    "sacremoses",
    "safetensors.torch",
    "torch",
    "torch._dynamo",
    "torchvision",
    "tqdm",
)
"""What most stages import. SciPy is not among them: its first import chooses its kernels."""

_INTERRUPTED, _MISTAKE = 130, 2
"""Exit codes: those of edge.py, which imports more than a process that only waits needs."""


def run_warm(package: str) -> None:
    """Run the module of ``python -m`` in a child and exit; return in the child, or without DVC.

    Called while ``package`` is imported, before the module itself.
    """
    module = _module_that_runs(package)
    dvc = _dvc_process() if module and "DVC_STAGE" in os.environ else None
    if dvc is None:
        return
    connection = _connected(dvc)
    if connection is None and os.fork() == 0:
        _serve(dvc)
    ours, its = socket.socketpair()
    child = os.fork() if connection is None else None
    if child == 0:
        ours.close()
        threading.Thread(target=_end_with, args=(its,), daemon=True).start()
        return
    threading.Thread(target=_end_after, args=(dvc,), daemon=True).start()
    code = _INTERRUPTED
    with contextlib.suppress(KeyboardInterrupt):
        following = _following(dvc)
        code = _followed(following, module, connection, child)
    os._exit(code)


def _end_after(dvc: int) -> None:
    """End this process, and so the stage, with DVC: the next run must not meet it at work."""
    with contextlib.suppress(ProcessLookupError):  # it has ended before
        select.select([os.pidfd_open(dvc)], [], [])
    os._exit(_INTERRUPTED)


def _followed(
    following: Following, module: str, connection: socket.socket | None, child: int | None
) -> int:
    """Wait for a stage, in the server or in a child of this process; return its exit code."""
    code, ahead = _MISTAKE, 0.0
    try:
        if following.watch.is_stale():
            _stop(child)
        else:
            if connection:
                ahead = _ask(connection, module, following)
            code = _ended(child) if child else _answered(connection)
        if not code and following.watch.is_edited():
            code = _MISTAKE
    except KeyboardInterrupt:
        code = _INTERRUPTED
    following.end(code, ahead)
    return code


def _stop(child: int | None) -> None:
    if child:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def _following(dvc: int) -> Following:
    words = Path(f"/proc/{dvc}/cmdline").read_text().split("\0")[:-1]
    names = [os.path.basename(word) for word in words]
    stage = os.environ["DVC_STAGE"].rpartition(":")[2]
    return Following(stage, _address(dvc), words[names.index("dvc") + 1 :])


def _connected(dvc: int) -> socket.socket | None:
    """Return a connection to the server, if there is one."""
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(_address(dvc))
        return connection if _peer(connection) == os.getuid() else None
    except OSError:
        return None


def _ended(child: int) -> int:
    """Wait for a child; return its exit code as shells do, above 128 if a signal ended it."""
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return code if code >= 0 else 128 - code


def _module_that_runs(package: str) -> str | None:
    """Return the name after ``-m`` on the command line, if it lies in the package."""
    if sys.argv[:1] != ["-m"] or "-m" not in sys.orig_argv:
        return None
    name = sys.orig_argv[sys.orig_argv.index("-m") + 1]
    return name if name.startswith(f"{package}.") else None


def _dvc_process() -> int | None:
    """Return the process of DVC that started this one, itself or through a shell."""
    process = os.getppid()
    for _ in range(2):
        with contextlib.suppress(OSError):
            words = Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")
            if any(os.path.basename(word) == b"dvc" for word in words[:4]):
                return process
            process = int(_status(process)[1])
    return None


def _status(process: int) -> list[str]:
    """Return the fields of a process's status after its name: state, parent, ..."""
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()


def _address(dvc: int) -> str:
    # The time at which it started tells a process from a later one with its number.
    return f"\0polyview-{os.getuid()}-{dvc}-{_status(dvc)[19]}"


def _peer(connection: socket.socket) -> int:
    """Return the user at the other end: anybody may take an abstract address."""
    size = struct.calcsize("3i")
    found = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
    return struct.unpack("3i", found)[1]


# The stage's side


def _ask(connection: socket.socket, module: str, following: Following) -> float:
    """Send what the stage needs; return the seconds that were spent on it ahead."""
    request = {
        "stage": following.stage,
        "ready": following.ready,
        "module": module,
        "arguments": sys.orig_argv[sys.orig_argv.index(module) + 1 :],
        "folder": os.getcwd(),
        "environment": dict(os.environ),
        "path": sys.path,
        "umask": _umask(),
    }
    message = json.dumps(request).encode()
    socket.send_fds(connection, [struct.pack("q", len(message))], [0, 1, 2])
    connection.sendall(message)
    seconds = _receive(connection, struct.calcsize("d"))
    return struct.unpack("d", seconds)[0] if seconds else 0.0


def _answered(connection: socket.socket) -> int:
    """Wait for the stage; return its exit code, as shells do where something killed it."""
    answer = connection.recv(1)
    if not answer:
        print("the stage was killed: perhaps memory was used up", file=sys.stderr)
        return 128 + signal.SIGKILL
    return answer[0]


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


# The server's side


def _serve(dvc: int) -> None:
    """Import the libraries, then fork a child for each stage until DVC ends; never return."""
    try:
        os.setsid()
        _close_standard_files()  # first: where one is closed already, its number would be taken
        alive = os.pidfd_open(dvc)
        listening = socket.socket(socket.AF_UNIX)
        # Two servers may start: the second finds this one's name taken and ends.
        starting = socket.socket(socket.AF_UNIX)
        starting.bind(_address(dvc) + "-starting")
        _import_libraries()
        listening.bind(_address(dvc))
        listening.listen()
        _answer_until_dead(listening, alive)
    finally:
        os._exit(0)


def _close_standard_files() -> None:
    """Let go of DVC's output: a pipe behind it would stay open as long as the server lives."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in range(3):
        os.dup2(nothing, descriptor)


def _import_libraries() -> None:
    for library in LIBRARIES:
        with contextlib.suppress(ImportError):
            __import__(library)


def _answer_until_dead(listening: socket.socket, alive: int) -> None:
    ahead = Ahead(_run_module, due_stages, [alive, os.pidfd_open(os.getpid())])
    while alive not in (found := select.select([listening, alive, *ahead.watched], [], [])[0]):
        if {*found} & {*ahead.watched}:
            ahead.next()
        if listening in found:
            connection, _ = listening.accept()
            with connection:
                trusted = _peer(connection) == os.getuid()
                request = _answer(connection, listening, ahead) if trusted else None
            if request:
                ahead.go_on(request)
        _reap(ahead)


def _reap(ahead: Ahead) -> None:
    """Take leave of the stages that have ended."""
    options = os.WEXITED | os.WNOHANG
    with contextlib.suppress(ChildProcessError):
        while ended := os.waitid(os.P_ALL, 0, options | os.WNOWAIT):
            if ended.si_pid == ahead.process:  # the next to be heard of, by its descriptor
                return
            os.waitpid(ended.si_pid, 0)


def _answer(connection: socket.socket, listening: socket.socket, ahead: Ahead) -> dict | None:
    """Run a stage in a child; return what was asked for, if it was asked to the end."""
    header, files, _, _ = socket.recv_fds(connection, struct.calcsize("q"), 3)
    size = struct.unpack("q", header)[0] if header else 1
    message = _receive(connection, size)
    request = json.loads(message) if len(message) == size else None
    if request:
        ahead.make_way(request)
        with contextlib.suppress(OSError):  # it was killed
            connection.sendall(struct.pack("d", ahead.seconds.get(request["stage"], 0.0)))
        if os.fork() == 0:
            listening.close()
            for descriptor, file in enumerate(files):
                os.dup2(file, descriptor)
            os._exit(_run(connection, request))
    for file in files:
        os.close(file)
    return request


def _run(connection: socket.socket, request: dict) -> int:
    """Run a stage in this process, and send its exit code."""
    threading.Thread(target=_end_with, args=(connection,), daemon=True).start()
    code = _run_module(request)
    with contextlib.suppress(OSError):
        connection.sendall(bytes([code]))
    return code


def _receive(connection: socket.socket, size: int) -> bytes:
    parts = bytearray()
    while len(parts) < size and (part := connection.recv(size - len(parts))):
        parts += part
    return bytes(parts)


def _end_with(connection: socket.socket) -> None:
    """End this process when the stage that asked for it is gone."""
    with contextlib.suppress(OSError):
        if connection.recv(1):
            return
    os._exit(_INTERRUPTED)


def _run_module(request: dict) -> int:
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    os.umask(request["umask"])
    sys.path[:] = request["path"]
    sys.argv = ["-m", *request["arguments"]]
    sys.stdin, sys.stdout, sys.stderr = (
        open(descriptor, mode, buffering=1, errors=errors, closefd=False)  # noqa: SIM115
        for descriptor, mode, errors in (
            (0, "r", "surrogateescape"),
            (1, "w", "surrogateescape"),
            (2, "w", "backslashreplace"),  # as Python's own: an error can always be printed
        )
    )
    try:
        runpy.run_module(request["module"], run_name="__main__", alter_sys=True)
        return 0
    except SystemExit as end:
        return _exit_code(end)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        return 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


def _exit_code(end: SystemExit) -> int:
    if end.code is None or isinstance(end.code, int):
        return (end.code or 0) & 0xFF
    print(end.code, file=sys.stderr)
    return 1
