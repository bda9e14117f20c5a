"""Shards of a stage's work: handed out, taken back and kept, whoever computes them.

A shard is a fixed range of a stage's items, in the order of their ids, whatever the number of
workers. So its bytes are the same wherever and whenever it is computed. The driver, which is the
stage's own process, alone writes: each shard whole or not at all, with its SHA-256 from where it
was computed. What is finished is the resume, whoever wrote it.

A worker that ends takes nothing with it but what it held, which others do anew. Where nothing else
is left, an idle worker also does what another one has held for longest, and the first result
counts: backup tasks (Dean and Ghemawat 2004, §3.6), without which the slowest worker decides.
"""

import hashlib
import sys
import textwrap
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tqdm import tqdm

from pipeline_lib.contract.problems import ContractError
from pipeline_lib.running.publishing import publish

IN_FLIGHT = 2
"""Shards that a worker has: it reads the second while it computes the first."""

_DIGEST_BYTES = 32

MOST_LOSSES = 4
"""So often a shard may be lost with its worker before it is taken for the cause."""


@dataclass(frozen=True)
class Shard:
    """A fixed part of a stage's work.

    Attributes:
        index: Its place among all shards.
        items: What it is made of, picklable, such as paths of images.
    """

    index: int
    items: Sequence


class UnusableError(Exception):
    """A shard failed for its own sake: ``problems`` has one sentence for each item at fault."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__(problems)
        self.problems = problems


class Worker(Protocol):
    """What computes shards; it holds the model.

    Attributes:
        description: All that decides the last bits of its results, JSON-serialisable: equal in all
            workers of a run.
    """

    description: dict[str, object]

    def read(self, shard: Shard) -> object:
        """Return the input of a shard. May be called while another shard is computed."""

    def compute(self, read: object) -> bytes:
        """Return the result of what :meth:`read` returned, or raise :class:`UnusableError`."""


class Store(Protocol):
    """Where finished shards are, readable after a kill at any moment."""

    def is_finished(self, index: int) -> bool:
        """Return whether a shard's result is there, with the digest it had when it was made."""

    def write(self, index: int, result: bytes, sha256: bytes) -> None:
        """Keep the result of a shard, whole or not at all."""


@dataclass(frozen=True)
class Ready:
    """A worker can take shards."""

    worker: str


@dataclass(frozen=True)
class Finished:
    """A worker has done a shard.

    Attributes:
        worker: Its name.
        index: The shard's.
        result: Empty if there are problems.
        sha256: Of the result, where it was computed.
        problems: Why the shard itself cannot be done.
    """

    worker: str
    index: int
    result: bytes
    sha256: bytes
    problems: tuple[str, ...]


@dataclass(frozen=True)
class Gone:
    """A worker has ended, with all that it held."""

    worker: str
    reason: str


class Pool(Protocol):
    """Workers, on this process or elsewhere.

    Attributes:
        description: Of each of its workers.
    """

    description: dict[str, object]

    def begin(self) -> None:
        """Forget earlier shards, also those that are still done; all who are ready say so anew."""

    def submit(self, worker: str, shard: Shard) -> None:
        """Give a shard to a worker that is ready."""

    def events(self) -> list[Ready | Finished | Gone]:
        """Return what has happened since the last call; wait until there is something."""

    def status(self) -> str:
        """Return who works, in words for the progress bar; nothing if that is this process."""


def in_shards(items: Sequence, size: int) -> list[Shard]:
    """Return the shards of items: ``size`` of them in each, the last one with the rest."""
    starts = range(0, len(items), size)
    return [Shard(index, items[start : start + size]) for index, start in enumerate(starts)]


def run_shards(
    shards: Sequence[Shard],
    pool: Pool,
    store: Store,
    *,
    unit: str,
    label: str,
    one_at_a_time: bool = False,
) -> list[str]:
    """Have all shards computed that ``store`` lacks, showing progress.

    Args:
        shards: The work.
        pool: Who does it.
        store: Where the results go.
        unit: Of the items, for the progress bar.
        label: Of the progress bar.
        one_at_a_time: A worker has one shard, and a shard one worker: for long ones that write as
            they go.

    Returns:
        The problems of all shards that failed for their own sake, in the order of the shards; these
        stay unfinished.

    Raises:
        ContractError: Workers ended again and again while they had one shard.
    """
    missing = [shard for shard in shards if not store.is_finished(shard.index)]
    total = _items(shards)
    resumed = total - _items(missing)
    if resumed:
        label += f", {resumed} done before"
    with tqdm(total=total, initial=resumed, desc=label, unit=f" {unit}") as bar:
        return _Run(missing, pool, store, bar, one_at_a_time).problems()


def _items(shards: Iterable[Shard]) -> int:
    return sum(len(shard.items) for shard in shards)


class _Run:
    def __init__(
        self, shards: Sequence[Shard], pool: Pool, store: Store, bar: tqdm, one_at_a_time: bool
    ) -> None:
        self._pool, self._store, self._bar = pool, store, bar
        self._one_at_a_time = one_at_a_time
        self._left = {shard.index: shard for shard in shards}
        self._waiting = deque(shards)
        self._holders: dict[int, set[str]] = {}  # of each shard that somebody has, oldest first
        self._held: dict[str, list[int]] = {}  # by each worker
        self._losses: Counter[int] = Counter()
        self._problems: dict[int, tuple[str, ...]] = {}

    def problems(self) -> list[str]:
        self._pool.begin()
        while self._left:
            for event in self._pool.events():
                self._take(event)
            self._bar.set_postfix_str(self._status(), refresh=False)
        return [problem for index in sorted(self._problems) for problem in self._problems[index]]

    def _take(self, event: Ready | Finished | Gone) -> None:
        if isinstance(event, Gone):
            self._lose(event)
            return
        if isinstance(event, Finished):
            self._held[event.worker].remove(event.index)
            self._finish(event)
        self._hand_out(event.worker)

    def _hand_out(self, worker: str) -> None:
        held = self._held.setdefault(worker, [])
        while len(held) < self._most(held) and (shard := self._next(held)):
            held.append(shard.index)
            self._holders.setdefault(shard.index, set()).add(worker)
            self._pool.submit(worker, shard)

    def _most(self, held: list[int]) -> int:
        """Return how many shards a worker may have that has these; one that was lost, alone."""
        alone = self._one_at_a_time or any(map(self._losses.__getitem__, held))
        return 1 if alone else IN_FLIGHT

    def _next(self, held: list[int]) -> Shard | None:
        if self._waiting:
            lost_before = self._losses[self._waiting[0].index]
            return None if held and lost_before else self._waiting.popleft()
        if held or self._one_at_a_time:
            return None
        alone = (index for index, holders in self._holders.items() if len(holders) == 1)
        return self._left.get(next(alone, -1))

    def _finish(self, event: Finished) -> None:
        if event.index not in self._left:  # another worker was faster
            return
        if event.problems:
            self._problems[event.index] = event.problems
        elif hashlib.sha256(event.result).digest() != event.sha256:
            raise ContractError(
                f"shard {event.index}: expected the result as it was computed, found another. The "
                "network or a node's memory is faulty"
            )
        else:
            self._store.write(event.index, event.result, event.sha256)
        self._bar.update(len(self._left.pop(event.index).items))
        del self._holders[event.index]

    def _lose(self, event: Gone) -> None:
        held = [index for index in self._held.pop(event.worker, []) if index in self._left]
        self._losses.update(held)  # which one it was shows once each is with a worker alone
        for index in held:
            if self._losses[index] == MOST_LOSSES:
                raise ContractError(_lost(self._left[index], event.reason))
        for index in reversed(held):
            self._holders[index].remove(event.worker)
            if not self._holders[index]:
                del self._holders[index]
                self._waiting.appendleft(self._left[index])
        for worker in self._held:
            self._hand_out(worker)

    def _status(self) -> str:
        workers = self._pool.status()
        return f"{workers}; {len(self._waiting)} shards wait" if workers else ""


def _lost(shard: Shard, reason: str) -> str:
    return (
        f"shard {shard.index} ({_short(shard.items[0])} to {_short(shard.items[-1])}): expected a "
        "result, but "
        f"{MOST_LOSSES} workers that had it ended; the last one because: {reason}. Nothing is "
        "published, and what is finished is kept. If memory is short, lower batch_size or the "
        "workers of each node"
    )


def _short(item: object) -> str:
    return textwrap.shorten(str(item), 100, placeholder=" ...")


class FileStore:
    """Results of shards, each a file of its SHA-256 and what was computed.

    Args:
        folder: Where they lie, from this run or an earlier one, which had the same shards.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def is_finished(self, index: int) -> bool:
        """Return whether a shard's file is there and whole; say on stderr that it is not whole."""
        path = self._path(index)
        if not path.is_file():
            return False
        digest, result = _parts(path)
        is_whole = hashlib.sha256(result).digest() == digest
        if not is_whole:
            print(f"{path}: this part of the work is damaged: it is made anew", file=sys.stderr)
        return is_whole

    def write(self, index: int, result: bytes, sha256: bytes) -> None:
        """Publish a shard's file."""
        with publish(self._path(index)) as temporary:
            temporary.write_bytes(sha256 + result)

    def read(self, index: int) -> bytes:
        """Return the result of a shard that is finished."""
        return _parts(self._path(index))[1]

    def _path(self, index: int) -> Path:
        return self._folder / f"{index:09d}.shard"


def _parts(path: Path) -> tuple[bytes, bytes]:
    content = path.read_bytes()
    return content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]


class InMemory:
    """Results of shards, for this run alone."""

    def __init__(self) -> None:
        self._results: dict[int, bytes] = {}

    def is_finished(self, index: int) -> bool:
        """Return whether a shard's result is there."""
        return index in self._results

    def write(self, index: int, result: bytes, sha256: bytes) -> None:
        """Keep the result of a shard."""
        self._results[index] = result

    def read(self, index: int) -> bytes:
        """Return the result of a shard that is finished, and forget it."""
        return self._results.pop(index)


def computed(worker: Worker, name: str, index: int, read: Callable[[], object]) -> Finished:
    """Compute one shard of what ``read`` returns."""
    try:
        result = worker.compute(read())
    except UnusableError as error:
        return Finished(name, index, b"", b"", tuple(error.problems))
    return Finished(name, index, result, hashlib.sha256(result).digest(), ())


class ThisProcess:
    """The pool of one process: a worker that computes, and a thread that reads ahead of it."""

    def __init__(self, worker: Worker) -> None:
        self.description = worker.description
        self._worker, self._is_new = worker, True
        self._reader = ThreadPoolExecutor(1)
        self._reading: deque[tuple[int, Future]] = deque()

    def begin(self) -> None:
        """Be ready: all that was begun is done."""
        self._is_new = True

    def submit(self, worker: str, shard: Shard) -> None:
        """Begin to read a shard."""
        self._reading.append((shard.index, self._reader.submit(self._worker.read, shard)))

    def events(self) -> list[Ready | Finished | Gone]:
        """Compute the oldest shard."""
        if self._is_new:
            self._is_new = False
            return [Ready("")]
        index, reading = self._reading.popleft()
        return [computed(self._worker, "", index, reading.result)]

    def status(self) -> str:
        """Return nothing: the user knows."""
        return ""

    def close(self) -> None:
        """Read no further."""
        self._reader.shutdown(cancel_futures=True)
