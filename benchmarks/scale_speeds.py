"""Extraction by workers of Ray against one process: ``python -m benchmarks.scale_speeds``.

The same photos and network, in rounds that alternate between all sides. The clock starts when all
workers are ready. Beside the time stands what the processors did, of this process and all that it
started, Ray's own ones too: on a machine that has other work to do, only that can be compared.
"""

import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import click
import psutil

from benchmarks.photos import draw_photos
from benchmarks.scale_ray import EXTRACTOR, Counted
from pipeline_lib import forks
from pipeline_lib.images.extraction import ImageWorker
from pipeline_lib.images.weights import WeightsFile, find_weights
from pipeline_lib.scheduling import cluster
from pipeline_lib.scheduling.cluster import RayPool, open_pool
from pipeline_lib.scheduling.shards import Pool, in_shards, run_shards
from pipeline_lib.settings.images import Extractor

SIDES = {
    "one process, 1 core": (1, 0),
    "one process, 2 cores": (2, 0),
    "1 worker of 1 core": (1, 1),
    "2 workers of 1 core": (1, 2),
}
"""Cores of each process, and workers."""


@dataclass(frozen=True)
class Measured:
    """Seconds of one side in one round, by the clock and of all processors."""

    clock: float
    processors: float


def load(settings: Extractor, folder: Path, weights: WeightsFile, count: int) -> ImageWorker:
    """Load a worker and have it compute once: what is slow the first time is not measured."""
    forks.use_cores(count)
    worker = ImageWorker.load(settings, folder, weights)
    [shard] = in_shards(sorted(folder.iterdir())[: settings.batch_size], settings.batch_size)
    worker.compute(worker.read(shard))
    return worker


def measure(photos: list[Path], side: tuple[int, int]) -> Measured:
    """Extract the features of photos and forget them."""
    (count, workers), settings = side, EXTRACTOR
    weights = find_weights(settings.backbone, settings.weights)
    loading = partial(load, settings, photos[0].parent, weights, count)
    shards = in_shards(photos, settings.batch_size)
    with _asked(workers), open_pool(loading) as pool:
        wait_for_all(pool, workers)
        clock, processors = time.perf_counter(), _processors()
        run_shards(shards, pool, Counted(), unit="images", label="measured")
        return Measured(time.perf_counter() - clock, _processors() - processors)


def wait_for_all(pool: Pool, workers: int) -> None:
    """Return when all workers are ready."""
    while isinstance(pool, RayPool) and not pool.status().startswith(f"{workers} workers"):
        pool.events()


@contextmanager
def _asked(workers: int) -> Iterator[None]:
    os.environ.update(
        {cluster.WORKERS: str(workers)} | ({cluster.ADDRESS: "local"} if workers else {})
    )
    try:
        yield
    finally:
        os.environ.pop(cluster.ADDRESS, None)


def _processors() -> float:
    """Return the processor seconds of this process and all below it, so far."""
    here = psutil.Process()
    total = 0.0
    for process in [here, *here.children(recursive=True)]:
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system
    return total


@click.command(help=__doc__)
@click.option("--images", default=192, help="Photos of each round.")
@click.option("--rounds", default=3, help="Of all sides.")
def main(images: int, rounds: int) -> None:
    """Print the table: medians of all rounds."""
    found: dict[str, list[Measured]] = {side: [] for side in SIDES}
    with tempfile.TemporaryDirectory() as name:
        photos = draw_photos(Path(name) / "photos", images)
        for _ in range(rounds):
            for side, settings in SIDES.items():
                found[side].append(measure(photos, settings))
    click.echo(f"{'':<24}{'images/s':>12}{'processor s':>14}")
    for side, each in found.items():
        clock = statistics.median(one.clock for one in each)
        processors = statistics.median(one.processors for one in each)
        click.echo(f"{side:<24}{images / clock:>12.1f}{processors:>14.1f}")


if __name__ == "__main__":
    main()
