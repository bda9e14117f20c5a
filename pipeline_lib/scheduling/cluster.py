"""Workers on a cluster of Ray, where the environment asks for one.

``POLYVIEW_RAY`` is ``local`` (workers on this machine), ``auto`` (the cluster that this machine
belongs to) or an address: ``host:6379`` of a head node, ``ray://host:10001`` from outside of the
cluster. These variables are no parameters: what they say changes no result, and no stage runs
again for them.

Each worker is an actor, a process of its own that loads the model once, in the driver's folder,
which all nodes must share. Its threads are the CPUs that Ray gave it. Results come back through
Ray's object store; the driver alone writes. When an actor ends, another one is started while the
others go on; Ray itself restarts and repeats nothing.
"""

import logging
import math
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from types import ModuleType

from pipeline_lib.compute.forks import cores, use_cores
from pipeline_lib.contract.problems import ContractError
from pipeline_lib.scheduling.shards import (
    IN_FLIGHT,
    Finished,
    Gone,
    Pool,
    Ready,
    Shard,
    ThisProcess,
    Worker,
    computed,
)

ADDRESS, WORKERS = "POLYVIEW_RAY", "POLYVIEW_RAY_WORKERS"
CPUS, GPUS = "POLYVIEW_RAY_CPUS", "POLYVIEW_RAY_GPUS"

LOCAL = "local"

_OBJECT_STORE = 2**28
"""Bytes of shared memory that ``local`` takes: results wait there for the driver."""

SETTINGS_OF_RAY = {
    "RAY_USAGE_STATS_ENABLED": "0",  # it would report over the network
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # else it warns
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",  # else, below `uv run`, it packs the whole folder
    "RAY_worker_niceness": "0",  # else workers get what other programs leave
}
"""Where the user has not set them."""

_MOST_SECONDS_WITHOUT = 300
"""So long no worker at all may be ready."""

_STARTS, _TOO_SLOW = 3, "timed out during startup"
"""So often Ray may need longer to start on this machine than it allows itself, and what it says."""

_NAMED = 4
"""Workers that the progress bar names."""


@dataclass(frozen=True)
class Asked:
    """What the environment asks for.

    Attributes:
        address: See above.
        workers: How many, or 0 for as many as the cluster has room for.
        cpus: Of each worker.
        gpus: Of each worker; may be a fraction.
    """

    address: str
    workers: int
    cpus: int
    gpus: float


def asked_for() -> Asked | None:
    """Return what the environment asks for, or None: then all is done in this process.

    Raises:
        ContractError: A variable is no such number.
    """
    address = os.environ.get(ADDRESS)
    if not address:
        return None
    return Asked(address, int(_number(WORKERS, 0)), int(_number(CPUS, 1)), _number(GPUS, 0))


def _number(variable: str, least: int) -> float:
    text = os.environ.get(variable, str(least))
    try:
        number = float(text) if variable == GPUS else int(text)
    except ValueError:
        number = -1
    if not least <= number < math.inf:
        kind = "number" if variable == GPUS else "whole number"
        raise ContractError(f"{variable}: expected a {kind} of at least {least}, found {text!r}")
    return number


@contextmanager
def open_pool(load: Callable[[], Worker], most: int = sys.maxsize) -> Iterator[Pool]:
    """Yield the pool that the environment asks for: this process, or workers of Ray.

    Args:
        load: Returns a worker; picklable, with all that it needs.
        most: Workers that there is work for.

    Raises:
        ContractError: There is no such cluster, it has no room, or a worker cannot work there.
    """
    asked = asked_for()
    if asked is None:
        process = ThisProcess(load())
        try:
            yield process
        finally:
            process.close()
        return
    ray = _import_ray()
    _connect(ray, asked)
    try:
        yield RayPool(ray, asked, load, most)
    finally:
        ray.shutdown()


def _import_ray() -> ModuleType:
    for variable, value in SETTINGS_OF_RAY.items():
        os.environ.setdefault(variable, value)
    try:
        import ray
    except ImportError as error:
        raise ContractError(
            f"{ADDRESS}: expected the package ray, found none. Install it: uv sync --group ray, "
            f"or unset {ADDRESS}"
        ) from error
    return ray


def _connect(ray: ModuleType, asked: Asked) -> None:
    options: dict[str, object] = {"log_to_driver": False, "logging_level": logging.CRITICAL}
    if asked.address == LOCAL:
        options |= {
            "num_cpus": asked.cpus * asked.workers or cores(),
            "include_dashboard": False,
            "object_store_memory": _OBJECT_STORE,
        }
    # What it says before init reads its options.
    logging.getLogger("ray").setLevel(logging.CRITICAL)
    try:
        _init(ray, asked.address, options)
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        said = (str(error).splitlines() or [type(error).__name__])[0]
        if asked.address == LOCAL:
            raise ContractError(
                f"{ADDRESS}: Ray does not start on this machine ({said}). Try again when it is "
                f"less busy, or unset {ADDRESS}"
            ) from error
        raise ContractError(
            f"{ADDRESS}: expected a cluster of Ray at {asked.address!r}, found none ({said}). "
            "Start it: ray start --head, and on the other nodes ray start --address HOST:6379"
        ) from error


def _init(ray: ModuleType, address: str, options: dict[str, object]) -> None:
    """Connect to a cluster, or start one; a busy machine is given more time than Ray gives it.

    Raises:
        RuntimeError: It does not start.
    """
    for _ in range(_STARTS):
        others = _children()
        try:
            ray.init(address=address, **options)
            return
        except Exception as error:
            if _TOO_SLOW not in str(error):
                raise
            for process in _children() - others:  # which Ray leaves until this process ends
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
    raise RuntimeError(f"the machine is too busy: Ray has not started in {_STARTS} half minutes")


def _children() -> set[int]:
    """Return the processes that this one started."""
    files = Path("/proc/self/task").glob("*/children")
    return {int(process) for file in files for process in file.read_text().split()}


class RayPool:
    """Actors of a cluster that this process is connected to; see :class:`shards.Pool`."""

    def __init__(
        self, ray: ModuleType, asked: Asked, load: Callable[[], Worker], most: int
    ) -> None:
        """Start the workers and wait for the first one."""
        self._ray, self._asked, self._load = ray, asked, ray.put(load)
        self._wanted = min(_workers(ray, asked), most)
        self._actor = ray.remote(_Actor).options(
            num_cpus=asked.cpus, num_gpus=asked.gpus, max_restarts=0, max_concurrency=IN_FLIGHT
        )
        self._actors: dict[str, object] = {}
        self._names: dict[str, str] = {}  # of those that are ready
        self._pending: dict[object, str] = {}  # the worker of each call
        self._numbers, self._ends = count(1), 0
        self.description: dict[str, object] = {}
        for _ in range(self._wanted):
            self._start()
        self._early: list[Ready | Finished | Gone] = []
        while not self._names:
            self._wait()

    def begin(self) -> None:
        """Forget earlier shards; those who are ready say so anew."""
        loading = {call: worker for call, worker in self._pending.items() if self._is_new(worker)}
        self._pending = loading
        self._early = [Ready(worker) for worker in self._names]

    def _is_new(self, worker: str) -> bool:
        return worker in self._actors and worker not in self._names

    def submit(self, worker: str, shard: Shard) -> None:
        """Send a shard to a worker."""
        if worker in self._actors:  # else that it is gone is among the events just returned
            self._pending[self._actors[worker].run.remote(worker, shard)] = worker

    def events(self) -> list[Ready | Finished | Gone]:
        """Return what has happened; wait for it."""
        early, self._early = self._early, []
        return early or self._wait()

    def status(self) -> str:
        """Return the workers that are ready, and how many are not."""
        names = [*self._names.values()]
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        starting = len(self._actors) - len(names)
        which = f": {', '.join(names[:_NAMED])}{more}" if names else ""
        return f"{len(names)} workers{which}" + (f"; {starting} start" if starting else "")

    def _start(self) -> None:
        worker, actor = str(next(self._numbers)), self._actor.remote()
        self._actors[worker] = actor
        call = actor.load.remote(os.getcwd(), self._asked.cpus, self._load)
        self._pending[call] = worker

    def _wait(self) -> list[Ready | Finished | Gone]:
        events: list[Ready | Finished | Gone] = []
        while not events:
            seconds = None if self._names else _MOST_SECONDS_WITHOUT
            calls = [*self._pending]
            if not self._ray.wait(calls, num_returns=1, timeout=seconds)[0]:
                raise ContractError(self._no_room())
            done, _ = self._ray.wait(calls, num_returns=len(calls), timeout=0)
            events = [event for call in done if (event := self._event(call))]
        return events

    def _event(self, call: object) -> Ready | Finished | Gone | None:
        worker = self._pending.pop(call)
        if worker not in self._actors:  # it has ended, and is replaced
            return None
        try:
            found = self._ray.get(call)
        except self._ray.exceptions.RayTaskError as error:
            raise error.cause from error
        except self._ray.exceptions.RayError as error:
            return self._end(worker, error)
        if isinstance(found, Finished):
            self._ends = 0
            return found
        self._names[worker], description = found
        self._check(worker, description)
        return Ready(worker)

    def _check(self, worker: str, description: dict[str, object]) -> None:
        self.description = self.description or description
        other = [key for key, value in description.items() if value != self.description.get(key)]
        if other:
            raise ContractError(
                f"{self._names[worker]}: expected a worker that computes as the first one does, "
                f"found another {', '.join(other)}. Give all nodes the same checkout, packages and "
                "kind of processor"
            )

    def _end(self, worker: str, error: Exception) -> Gone:
        """Note that a worker has ended, and start another one."""
        self._ray.kill(self._actors.pop(worker))
        self._names.pop(worker, None)
        self._ends += 1
        reason = _reason(self._ray, error)
        if self._ends > 3 * self._wanted + 3:
            raise ContractError(
                f"{ADDRESS}: expected workers that work, but {self._ends} have ended one after "
                f"the other without a result; the last one because: {reason}"
            )
        self._start()
        return Gone(worker, reason)

    def _no_room(self) -> str:
        asked = self._asked
        return (
            f"{ADDRESS}: expected a worker within {_MOST_SECONDS_WITHOUT} s, found none. Each one "
            f"needs {asked.cpus} CPUs and {asked.gpus:g} GPUs at once; the cluster has free: "
            f"{_words(self._ray.available_resources())}. Wait, or lower {CPUS} and {GPUS}"
        )


def _workers(ray: ModuleType, asked: Asked) -> int:
    """Return how many workers are to be started; of a cluster, also more than it has room for now.

    Raises:
        ContractError: There is no room for one, and none that is waited for.
    """
    if asked.workers and asked.address != LOCAL:
        return asked.workers
    return min(asked.workers or sys.maxsize, _room(ray, asked))


def _room(ray: ModuleType, asked: Asked) -> int:
    """Return how many workers the cluster has room for.

    Raises:
        ContractError: Not for one.
    """
    found = ray.cluster_resources()
    needed = {"CPU": asked.cpus, "GPU": asked.gpus}
    workers = min(int(found.get(kind, 0) / each) for kind, each in needed.items() if each)
    if not workers:
        raise ContractError(
            f"{ADDRESS}: expected room for a worker of {asked.cpus} CPUs and {asked.gpus:g} GPUs, "
            f"found a cluster of {_words(found)}. Lower {CPUS} and {GPUS}, or add a node"
        )
    return workers


def _words(resources: dict[str, float]) -> str:
    return ", ".join(f"{resources.get(kind, 0):g} {kind}s" for kind in ("CPU", "GPU"))


def _reason(ray: ModuleType, error: Exception) -> str:
    if isinstance(error, ray.exceptions.OutOfMemoryError):
        return "its node had too little memory, and Ray killed it"
    if isinstance(error, ray.exceptions.OutOfDiskError):
        return "the disk of its node's object store is full"
    return " ".join(str(error).split())[:300]


class _Actor:
    """A worker of Ray: one process."""

    def load(
        self, folder: str, cpus: int, load: Callable[[], Worker]
    ) -> tuple[str, dict[str, object]]:
        """Load the model; return this worker's name and description."""
        import torch  # noqa: F401 - use_cores sets its threads

        if not Path(folder).is_dir():
            raise ContractError(
                f"{socket.gethostname()}: expected the folder {folder}, found none. Mount the "
                "project's folder on all nodes at the same path"
            )
        os.chdir(folder)
        use_cores(cpus)
        self._one_computes = threading.Lock()
        with self._naming_the_node():
            self._worker = load()
        return f"{socket.gethostname()}:{os.getpid()}", self._worker.description

    def run(self, worker: str, shard: Shard) -> Finished:
        """Do one shard; the next one is read in another thread meanwhile."""
        with self._naming_the_node():
            read = self._worker.read(shard)
            with self._one_computes:
                return computed(self._worker, worker, shard.index, lambda: read)

    @contextmanager
    def _naming_the_node(self) -> Iterator[None]:
        try:
            yield
        except ContractError as error:
            raise ContractError(f"{socket.gethostname()}: {error}") from None
        except OSError as error:
            raise ContractError(
                f"{socket.gethostname()}: {error}. Each node needs what the driver reads at the "
                "same path: mount the project's folder, and those of images and weights, on all"
            ) from None
