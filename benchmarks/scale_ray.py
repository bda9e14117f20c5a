"""The scheduler at a thousand workers, in simulated time: ``python -m benchmarks.scale_ray``.

The code that hands out shards and takes them back is the pipeline's own; only the workers are
not: each shard takes a time drawn from measured ones, and the clock jumps to the next event. Some
workers are slow from the start, some end at a random moment and never come back.

Efficiency is the least time that the work can take, over the time it took: all work at the speed
of the workers that are there, each counted until it ends and a slow one for what it does.
"""

import hashlib
import heapq
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import click
import numpy as np

from benchmarks.photos import draw_photos
from pipeline_lib.contract.features import Features, write_features
from pipeline_lib.images.batches import FeatureStore
from pipeline_lib.images.extraction import ImageWorker
from pipeline_lib.images.weights import find_weights
from pipeline_lib.scheduling.shards import (
    Finished,
    Gone,
    Ready,
    Shard,
    ThisProcess,
    in_shards,
    run_shards,
)
from pipeline_lib.settings.images import Extractor

RESULT = b"result"
SHA256 = hashlib.sha256(RESULT).digest()


@dataclass(frozen=True)
class Simulation:
    """What is simulated.

    Attributes:
        workers: How many.
        shards: Of one worker, on average.
        failing: Share of workers that end while they work.
        slow: Share of workers that take ``slowness`` times as long.
        slowness: See ``slow``.
        seed: Of all that is drawn.
    """

    workers: int = 1000
    shards: int = 50
    failing: float = 0.02
    slow: float = 0.05
    slowness: float = 10
    seed: int = 1


@dataclass(frozen=True)
class Simulated:
    """What came of it.

    Attributes:
        seconds: That the run took, in simulated time.
        efficiency: See above.
        lost: Shards that nobody did.
        repeated: Shards that were done more than once, or begun and not ended.
        ended: Workers that ended before the run did.
    """

    seconds: float
    efficiency: float
    lost: int
    repeated: int
    ended: int


@dataclass
class SimulatedPool:
    """Workers that only take time: a pool of the scheduler.

    Attributes:
        speed: Of each worker, 1 being the measured one.
        ends: When each worker ends; infinite for most.
        seconds: What each shard takes at speed 1.
    """

    speed: np.ndarray
    ends: np.ndarray
    seconds: np.ndarray
    description: dict[str, object] = field(default_factory=dict)
    now: float = 0
    begun: int = 0

    def __post_init__(self) -> None:
        self._queues: list[deque[int]] = [deque() for _ in self.speed]
        self._events: list[tuple[float, int, str]] = []
        for worker, end in enumerate(self.ends):
            heapq.heappush(self._events, (0.0, worker, "ready"))
            if np.isfinite(end):
                heapq.heappush(self._events, (float(end), worker, "gone"))

    def begin(self) -> None:
        """Do nothing: there is one call of the scheduler."""

    def submit(self, worker: str, shard: Shard) -> None:
        """Queue a shard; an idle worker begins it."""
        number = int(worker)
        self._queues[number].append(shard.index)
        self.begun += 1
        if len(self._queues[number]) == 1:
            self._begin(number)

    def _begin(self, worker: int) -> None:
        done = self.now + self.seconds[self._queues[worker][0]] / self.speed[worker]
        heapq.heappush(self._events, (float(done), worker, "finished"))

    def events(self) -> list[Ready | Finished | Gone]:
        """Go to the next moment at which something happens."""
        while True:
            self.now, worker, kind = heapq.heappop(self._events)
            if kind == "ready":
                return [Ready(str(worker))]
            if kind == "gone":
                self._queues[worker].clear()
                return [Gone(str(worker), "it ended")]
            if self.now < self.ends[worker]:
                index = self._queues[worker].popleft()
                if self._queues[worker]:
                    self._begin(worker)
                return [Finished(str(worker), index, RESULT, SHA256, ())]

    def status(self) -> str:
        """Return nothing: no bar is shown."""
        return ""


class Counted:
    """A store that only counts."""

    def __init__(self) -> None:
        self.finished: list[int] = []

    def is_finished(self, index: int) -> bool:
        """Return False: nothing was done before."""
        return False

    def write(self, index: int, result: bytes, sha256: bytes) -> None:
        """Count a shard."""
        self.finished.append(index)


def simulate(settings: Simulation, measured: Sequence[float]) -> Simulated:
    """Run the scheduler on simulated workers.

    Args:
        settings: See :class:`Simulation`.
        measured: Seconds of single shards, from which each shard's are drawn.
    """
    drawn, count = np.random.default_rng(settings.seed), settings.workers * settings.shards
    seconds = drawn.choice(np.asarray(measured, float), count)
    order = drawn.permutation(settings.workers)
    slow = order[: round(settings.slow * settings.workers)]
    failing = order[::-1][: round(settings.failing * settings.workers)]
    speed = np.ones(settings.workers)
    speed[slow] /= settings.slowness
    ideal = seconds.sum() / speed.sum()
    ends = np.full(settings.workers, np.inf)
    ends[failing] = drawn.uniform(0, ideal, len(failing))
    pool, store = SimulatedPool(speed, ends, seconds), Counted()
    run_shards(in_shards(range(count), 1), pool, store, unit="shards", label="simulated")
    there = np.minimum(ends, pool.now) * speed  # seconds of work that could have been done
    return Simulated(
        seconds=pool.now,
        efficiency=float(seconds.sum() / there.sum()),
        lost=count - len(set(store.finished)),
        repeated=pool.begun - count,
        ended=int((ends < pool.now).sum()),
    )


EXTRACTOR = Extractor(
    dataset="drawn",
    images="photos",
    backbone="efficientnet_lite0",
    weights="package",
    transform="squash",
    resize=224,
    crop=224,
    precision="f32",
    batch_size=16,
)
"""Whose shards are measured."""


def measured_seconds(shards: int) -> list[float]:
    """Return the processor seconds that shards of an extractor take on this machine."""
    settings, found = EXTRACTOR, []
    weights = find_weights(settings.backbone, settings.weights)
    with tempfile.TemporaryDirectory() as name:
        photos = draw_photos(Path(name) / "photos", settings.batch_size)
        worker = ImageWorker.load(settings, photos[0].parent, weights)
        for index in range(shards + 1):
            start = time.process_time()  # other programs run, too
            worker.compute(worker.read(Shard(index, photos)))
            found.append(time.process_time() - start)
    return found[1:]  # the first one loads libraries


MEMORY_IMAGES = (20_000, 100_000)
MEMORY_SHARD_ROWS = 2**14
MEMORY_DIM = 1280

MEMORY_SCRIPT = """
import sys
from pathlib import Path
from benchmarks.scale_ray import print_peak_memory
print_peak_memory(Path(sys.argv[1]), int(sys.argv[2]))
"""


def peak_memory(count: int) -> float:
    """Return what :func:`print_peak_memory` prints in a process of its own."""
    with tempfile.TemporaryDirectory() as name:
        command = [sys.executable, "-c", MEMORY_SCRIPT, name, str(count)]
        return float(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def print_peak_memory(folder: Path, count: int) -> None:
    """Print the driver's peak of memory of its own in MiB, from the first result to the last file.

    Its workers take no time: results are drawn. Pages of files that the kernel may drop at any
    moment do not count.
    """
    peak, ended = [0.0], threading.Event()

    def watch() -> None:
        while not ended.wait(0.02):
            lines = Path("/proc/self/status").read_text().splitlines()
            peak.append(max(peak.pop(), _mebibytes(lines, "RssAnon")))

    ids = np.array([f"d:{number:09d}" for number in range(count)], object)
    shards = in_shards(range(count), 64)
    keys = [shard.index.to_bytes(32) for shard in shards]
    watching = threading.Thread(target=watch)
    watching.start()
    with FeatureStore(folder / "resume", keys, 64, count, MEMORY_DIM) as store:
        pool = ThisProcess(_Drawn())
        run_shards(shards, pool, store, unit="images", label="drawn")
        pool.close()
        features = Features(ids, store.read(), {})
        write_features(features, folder / "features", MEMORY_SHARD_ROWS)
    ended.set()
    watching.join()
    click.echo(peak[0])


def _mebibytes(lines: Sequence[str], field: str) -> float:
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(field))


class _Drawn:
    description: dict[str, object]

    def __init__(self) -> None:
        self.description = {}

    def read(self, shard: Shard) -> np.ndarray:
        drawn = np.random.default_rng(shard.index)
        return drawn.standard_normal((len(shard.items), MEMORY_DIM), np.float32)

    def compute(self, read: np.ndarray) -> bytes:
        return read.tobytes()


COLUMNS = "workers", "shards", "failing", "slow", "efficiency", "lost", "done again"
RUNS = (
    Simulation(failing=0, slow=0),
    Simulation(failing=0),
    Simulation(slow=0),
    Simulation(),
    Simulation(shards=20),
    Simulation(shards=5),
    Simulation(workers=64),
    Simulation(workers=8, failing=0.25, slow=0.25),
)


def table(measured: Sequence[float]) -> str:
    """Return the table of all simulations."""
    lines = ["".join(f"{column:>12}" for column in COLUMNS)]
    for settings in RUNS:
        found = [simulate(replace(settings, seed=seed), measured) for seed in (1, 2, 3)]
        least = min(each.efficiency for each in found)
        cells = [
            settings.workers,
            settings.workers * settings.shards,
            f"{settings.failing:.0%}",
            f"{settings.slow:.0%}",
            f"{least:.3f}",
            sum(each.lost for each in found),
            f"{max(each.repeated for each in found) / (settings.workers * settings.shards):.1%}",
        ]
        lines.append("".join(f"{cell:>12}" for cell in cells))
    return "\n".join(lines)


@click.command(help=__doc__)
@click.option("--shards", default=30, help="To measure.")
@click.option("--memory", is_flag=True, help="Measure the driver's memory instead.")
def main(shards: int, memory: bool) -> None:
    """Measure shards, and print the table of the least efficiency of three seeds."""
    if memory:
        for count in MEMORY_IMAGES:
            click.echo(f"{count:>8} images: at most {peak_memory(count):.0f} MiB")
        return
    measured = measured_seconds(shards)
    quartiles = np.percentile(measured, [0, 50, 100])
    click.echo(
        f"{len(measured)} shards measured: {quartiles.round(2).tolist()} s (least, median, most)"
    )
    click.echo(table(measured))


if __name__ == "__main__":
    main()
