"""Work on all cores at once, in processes that are forked from this one and hold what it holds.

Small operations gain nothing from the threads of a library, and threads of Python wait for each
other; so several pieces of work each get a core.
"""

import ctypes
import gc
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import connection, get_context, parent_process
from threading import Thread
from typing import TypeVar

from joblib import cpu_count

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""Numbers of glibc's malloc.h."""

_MOST_KEPT = 2**28
"""Bytes."""

Item = TypeVar("Item")
Result = TypeVar("Result")


_most_cores = sys.maxsize


def cores() -> int:
    """Return how many cores this process may use: its own, or what its container gets of them."""
    return min(cpu_count(), _most_cores)


def use_cores(most: int) -> None:
    """Use so many cores from now on, or as many as there are if that is less."""
    global _most_cores
    _most_cores = most
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(cores())


def on_all_cores(
    function: Callable[[Item], Result], items: Iterable[Item], at_once: int | None = None
) -> Iterator[Result]:
    """Yield ``function(item)`` of each item, in order, computed in processes on one core each.

    Args:
        function: Any, also a closure. It sees this process's memory as it is now; what it changes
            there is lost.
        items: Picklable, as the results.
        at_once: Number of processes, or as many as there are cores. With one, or one item, all is
            done in this process.

    Raises:
        Exception: What ``function`` raises first; the other processes are killed.
        RuntimeError: A process was killed. All end with this one, whatever ends it.
    """
    items = list(items)
    at_once = min(at_once or cores(), len(items))
    if at_once <= 1:
        yield from map(function, items)
        return
    size = max(1, len(items) // (16 * at_once))
    parts = [items[start : start + size] for start in range(0, len(items), size)]
    theirs, ours = os.pipe()
    processes = get_context("fork"), _begin, (function, theirs, ours)
    try:
        with (
            open(theirs),
            open(ours, "w") as lifeline,
            ProcessPoolExecutor(at_once, *processes) as pool,
        ):
            try:
                yield from _in_order([pool.submit(_call, part) for part in parts])
            except BaseException:
                lifeline.close()  # or the pool would wait for what its processes do
                raise
    except BrokenProcessPool as error:
        raise RuntimeError(
            "a process that did part of the work was killed, perhaps for lack of memory"
        ) from error


def _in_order(parts: list[Future]) -> Iterator[Result]:
    """Yield the results of parts in order; raise what one of them raises as soon as it does."""
    failure: Future = Future()

    def note(part: Future) -> None:
        if (error := part.exception()) and not failure.done():
            failure.set_exception(error)

    for part in parts:
        part.add_done_callback(note)
    for part in parts:
        wait([part, failure], return_when=FIRST_COMPLETED)
        if failure.done():
            failure.result()
        yield from part.result()


def keep_freed_memory() -> None:
    """Have glibc keep what this process frees, in blocks of up to 256 MiB, and give it out again.

    To get it anew from the kernel is a fifth of a short process's time, and an eighth of an update
    of MULE's. Where malloc is another library's, this does nothing.
    """
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt"):
        for option in (_TRIM_THRESHOLD, _MMAP_THRESHOLD):
            libc.mallopt(option, _MOST_KEPT)


_function: Callable


def _begin(function: Callable, lifeline: int, ours: int) -> None:
    global _function
    _function = function
    os.close(ours)
    # Garbage that the parent had not collected is not ours to destroy: what runs threads, such as
    # a network of OpenVINO's, would wait for those that only the parent has.
    gc.freeze()
    Thread(target=_end_with, args=(lifeline,), daemon=True).start()
    keep_freed_memory()
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(1)


def _end_with(lifeline: int) -> None:
    connection.wait([parent_process().sentinel, lifeline])
    os._exit(1)


def _call(part: list) -> list:
    return [_function(item) for item in part]
