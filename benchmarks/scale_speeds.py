"""Ray's workers against one process: ``python -m benchmarks.scale_speeds [NAME]...``.

The same photos and network (``features``), or sentences and translator (``translations``), in
rounds that alternate between all sides. The clock starts when all workers are ready. Beside the
time stands what the processors did, of this process and all that it started, Ray's own ones too:
on a machine that has other work to do, only that can be compared. The translator is untrained: a
translation is as long as it may be.
"""

import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import click
import psutil

from benchmarks.photos import draw_photos
from benchmarks.scale_ray import EXTRACTOR, Counted
from benchmarks.translation import RECIPE
from pipeline_lib import forks
from pipeline_lib.images.extraction import ImageWorker
from pipeline_lib.images.weights import find_weights
from pipeline_lib.models.translator import Translator
from pipeline_lib.scheduling import cluster
from pipeline_lib.scheduling.cluster import RayPool, open_pool
from pipeline_lib.scheduling.shards import Pool, Worker, in_shards, run_shards
from pipeline_lib.settings.synthesis import OwnTranslation
from pipeline_lib.synthesis.engines import build_engine
from pipeline_lib.synthesis.translate import CHUNK, TranslationWorker
from pipeline_lib.text.subwords import Subwords

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


@dataclass(frozen=True)
class Work:
    """What is spread over workers.

    Attributes:
        items: Photos, or sentences.
        shard: How many of them a worker takes at a time.
        load: Loads a worker.
    """

    items: Sequence[object]
    shard: int
    load: Callable[[], Worker]


def features(folder: Path) -> Work:
    """Draw photos."""
    photos = draw_photos(folder / "photos", 384)
    return Work(photos, EXTRACTOR.batch_size, partial(load_extractor, folder / "photos"))


def load_extractor(folder: Path) -> Worker:
    """Load the network."""
    weights = find_weights(EXTRACTOR.backbone, EXTRACTOR.weights)
    return ImageWorker.load(EXTRACTOR, folder, weights)


def translations(folder: Path) -> Work:
    """Write short sentences, and a translator for them."""
    drawn = random.Random(1)
    words = ["".join(drawn.choices("abcdefghij", k=drawn.randint(2, 8))) for _ in range(3000)]
    sentences = [" ".join(drawn.choices(words, k=2)) for _ in range(4 * CHUNK)]
    translator = Translator(RECIPE, Subwords.train(sentences, 1000))
    translator.save(folder / "translator")
    (folder / "translator" / "images.json").write_text("{}")
    return Work(sentences, CHUNK, partial(load_translator, folder / "translator"))


def load_translator(folder: Path) -> Worker:
    """Load the translator."""
    settings = OwnTranslation(
        engine="translator", model=str(folder), dataset="synthetic", annotation="caption",
        source_language=RECIPE.source_language, target_language=RECIPE.target_language,
    )  # fmt: skip
    return TranslationWorker(build_engine(settings))


def warm(work: Work, cores: int) -> Worker:
    """Load a worker and have it compute once: what is slow the first time is not measured."""
    forks.use_cores(cores)
    worker = work.load()
    worker.compute(worker.read(in_shards(work.items[:16], 16)[0]))
    return worker


def measure(work: Work, name: str, side: tuple[int, int]) -> Measured:
    """Do the work once and forget what it made."""
    count, workers = side
    shards = in_shards(work.items, work.shard)
    with _asked(workers), open_pool(partial(warm, work, count)) as pool:
        wait_for_all(pool, workers)
        clock, processors = time.perf_counter(), _processors()
        run_shards(shards, pool, Counted(), unit=name, label="measured")
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
    """Return the processor seconds of this process and all below it, ended ones too, so far."""
    here = psutil.Process()
    total = 0.0
    for process in [here, *here.children(recursive=True)]:
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system + times.children_user + times.children_system
    return total


WORK: dict[str, Callable[[Path], Work]] = {"features": features, "translations": translations}
"""From a folder to what is spread there."""


@click.command(help=__doc__)
@click.option("--rounds", default=3, help="Of all sides.")
@click.argument("names", nargs=-1, type=click.Choice([*WORK]))
def main(rounds: int, names: tuple[str, ...]) -> None:
    """Print a table for each: medians of all rounds."""
    for name in names or WORK:
        with tempfile.TemporaryDirectory() as folder:
            work = WORK[name](Path(folder))
            found: dict[str, list[Measured]] = {side: [] for side in SIDES}
            for _ in range(rounds):
                for side, settings in SIDES.items():
                    found[side].append(measure(work, name, settings))
        click.echo(f"{name:<24}{'a second':>12}{'processor s':>14}")
        for side, each in found.items():
            clock = statistics.median(one.clock for one in each)
            processors = statistics.median(one.processors for one in each)
            click.echo(f"{side:<24}{len(work.items) / clock:>12.1f}{processors:>14.1f}")


if __name__ == "__main__":
    main()
