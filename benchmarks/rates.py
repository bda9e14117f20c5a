"""How many items a device gets through in a second: rounds of calls, timed by the device itself."""

import time
from collections.abc import Callable

import torch

Work = Callable[[], float]
"""Does some work and returns how many items that was. It may return before the device is done."""

ROUNDS = 5
WARM_UP = 0.2
"""Share of the time that goes by before anything counts: kernels are chosen, clocks rise."""


def rates(device: torch.device, work: Work, seconds: float) -> list[float]:
    """Return the items per second of each of up to :data:`ROUNDS` rounds of equally many calls.

    Args:
        device: What ``work`` runs on.
        work: Is called again and again.
        seconds: For all of it. What takes longer is called twice, and the second call counts.
    """
    end = time.perf_counter() + seconds
    each = _warm_up(device, work, WARM_UP * seconds)
    calls = max(1, int((end - time.perf_counter()) / ROUNDS / each))
    found: list[float] = []
    while not found or (len(found) < ROUNDS and time.perf_counter() + calls * each < end):
        elapsed, items = timed(device, work, calls)
        found.append(items / elapsed)
        each = elapsed / calls
    return found


def timed(device: torch.device, work: Work, calls: int = 1) -> tuple[float, float]:
    """Return the seconds that some calls take, until the device has done them, and their items.

    On CUDA, events of the stream are the clock: the first is recorded when the device is idle, the
    last when all work has been given to it.
    """
    if device.type != "cuda":
        start = time.perf_counter()
        items = sum(work() for _ in range(calls))
        return time.perf_counter() - start, items
    begun, done = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize(device)
    begun.record()
    items = sum(work() for _ in range(calls))
    done.record()
    done.synchronize()
    return begun.elapsed_time(done) / 1e3, items


def _warm_up(device: torch.device, work: Work, seconds: float) -> float:
    """Call ``work`` for some time, at least twice if it is that fast; return its last seconds."""
    end, calls = time.perf_counter() + seconds, 0
    while True:
        elapsed, _ = timed(device, work)
        calls += 1
        if time.perf_counter() >= end and (calls > 1 or elapsed > seconds):
            return elapsed
