"""Each of some items, done by workers of Ray where the environment asks for them.

For work whose results are small: they come back to the stage, which makes of them what it
publishes. Nothing of it is kept for a later run.
"""

import hashlib
import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path

from pipeline_lib.compute.device import best_device, cpu_kernels
from pipeline_lib.compute.forks import cores
from pipeline_lib.contract.problems import raise_problems
from pipeline_lib.running.fingerprints import ROOT
from pipeline_lib.scheduling.cluster import LOCAL, asked_for, open_pool
from pipeline_lib.scheduling.shards import InMemory, Pool, Shard, in_shards, run_shards

Function = Callable[[object], object]
"""From an item to its result, both picklable."""

Each = Callable[[Sequence], Iterator]
"""From items to the results of all, in their order."""


@contextmanager
def open_workers(
    load: Callable[[], Function], most: int, *, unit: str, label: str, one_at_a_time: bool = False
) -> Iterator[Each | None]:
    """Yield what has workers do items; None where this process should.

    That is where nobody asks for Ray, where there is one item at the most, and where all workers
    would be of this machine and have no GPU: this process has its cores at work already.

    Args:
        load: Returns the function of items; picklable, with all that it needs.
        most: Items at a time.
        unit: Of the items, for the progress bar.
        label: Of the progress bar.
        one_at_a_time: See :func:`~shards.run_shards`.

    Raises:
        ContractError: As :func:`~cluster.open_pool`.
    """
    if most < 2 or not workers_bring_more():
        yield None
        return
    with open_pool(partial(_FunctionWorker, load), most) as pool:
        yield partial(_results, pool, unit, label, one_at_a_time)


def workers_bring_more() -> bool:
    """Return whether workers are asked for that have cores or GPUs which this process has not."""
    asked = asked_for()
    return asked is not None and (asked.address != LOCAL or asked.gpus > 0)


def _results(
    pool: Pool, unit: str, label: str, one_at_a_time: bool, items: Sequence
) -> Iterator[object]:
    shards, store = in_shards(items, 1), InMemory()
    problems = run_shards(shards, pool, store, unit=unit, label=label, one_at_a_time=one_at_a_time)
    raise_problems(label, problems)
    return (pickle.loads(store.read(shard.index)) for shard in shards)


class _FunctionWorker:
    """A worker of shards that are one item each."""

    def __init__(self, load: Callable[[], Function]) -> None:
        self.description = computation()
        self._function = load()

    def read(self, shard: Shard) -> object:
        """Return the item."""
        return shard.items[0]

    def compute(self, read: object) -> bytes:
        """Return the result of an item."""
        return pickle.dumps(self._function(read))


def computation() -> dict[str, object]:
    """Return what decides the last bits of what this process computes."""
    return {
        "code": _code(ROOT / "pipeline_lib"),
        "packages": [version("torch"), version("numpy")],
        "device": best_device().type,
        "kernels": cpu_kernels(),
        "threads": cores(),
    }


@cache
def _code(folder: Path) -> str:
    files = (path.read_bytes() for path in sorted(folder.rglob("*.py")))
    return hashlib.sha256(b"".join(files)).hexdigest()
