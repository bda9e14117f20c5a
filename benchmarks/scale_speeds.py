"""Ray's workers against one process: ``python -m benchmarks.scale_speeds [NAME]...``.

The same photos and network (``features``), or sentences and translator (``translations``), in
rounds that alternate between all sides. The clock starts when all workers are ready. Beside the
time stands what the processors did, of this process and all that it started, Ray's own ones too:
on a machine that has other work to do, only that can be compared. Two processes side by side, which
know nothing of each other, show what the machine's cores give together: what workers lack of that
is lost in spreading. The translator is untrained: a translation is as long as it may be.
"""

import multiprocessing
import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing.synchronize import Barrier
from pathlib import Path

import click
import psutil

from benchmarks.photos import draw_photos
from benchmarks.scale_ray import EXTRACTOR, Counted
from benchmarks.translation import RECIPE
from pipeline_lib.compute import forks
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


def measure(work: Work, name: str, cores: int, workers: int = 0) -> Measured:
    """Do the work once, in this process or by Ray's workers; forget what it made.

    Args:
        work: What is spread.
        name: Of its items, for the progress bar.
        cores: Of each process.
        workers: How many; 0 is this process alone.
    """
    with _asked(workers), open_pool(partial(warm, work, cores)) as pool:
        wait_for_all(pool, workers)
        with _clock() as measured:
            run_through(work, name, pool)
    return measured()


def measure_side_by_side(work: Work, name: str, processes: int) -> Measured:
    """Do a part of the work in each of some processes of one core, all at once."""
    spawning = multiprocessing.get_context("spawn")  # threads of this process may hold locks
    ready = spawning.Barrier(processes + 1, timeout=600)
    parts = [replace(work, items=work.items[i::processes]) for i in range(processes)]
    started = [spawning.Process(target=_alone, args=(part, name, ready)) for part in parts]
    for process in started:
        process.start()
    ready.wait()
    with _clock() as measured:
        for process in started:
            process.join()
    return measured()


def _alone(work: Work, name: str, ready: Barrier) -> None:
    with open_pool(partial(warm, work, 1)) as pool:
        ready.wait()
        run_through(work, name, pool)


def run_through(work: Work, name: str, pool: Pool) -> None:
    """Have a pool do all of the work."""
    run_shards(in_shards(work.items, work.shard), pool, Counted(), unit=name, label="measured")


def wait_for_all(pool: Pool, workers: int) -> None:
    """Return when all workers are ready."""
    while isinstance(pool, RayPool) and not pool.status().startswith(f"{workers} workers"):
        pool.events()


@contextmanager
def _clock() -> Iterator[Callable[[], Measured]]:
    """Yield a function that says, after the block, what it took."""
    clock, processors = time.perf_counter(), _processors()
    ended: list[Measured] = []
    yield ended.pop
    ended.append(Measured(time.perf_counter() - clock, _processors() - processors))


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


SIDES: dict[str, Callable[[Work, str], Measured]] = {
    "one process, 1 core": partial(measure, cores=1),
    "one process, 2 cores": partial(measure, cores=2),
    "2 processes of 1 core": partial(measure_side_by_side, processes=2),
    "1 worker of 1 core": partial(measure, cores=1, workers=1),
    "2 workers of 1 core": partial(measure, cores=1, workers=2),
}
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
                for side, measure_side in SIDES.items():
                    found[side].append(measure_side(work, name))
        click.echo(f"{name:<24}{'a second':>12}{'processor s':>14}")
        for side, each in found.items():
            clock = statistics.median(one.clock for one in each)
            processors = statistics.median(one.processors for one in each)
            click.echo(f"{side:<24}{len(work.items) / clock:>12.1f}{processors:>14.1f}")


if __name__ == "__main__":
    main()
