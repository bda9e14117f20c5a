"""What more processes bring: each row compares a way to spread work with one process that does it.

``python -m benchmarks.scale`` prints a table. The sides of a row take turns, so that a machine that
slows down slows both; a ratio is the median over rounds of the one side's time to the other's. A
row is a function in :data:`ROWS`.

- ranks: Kádár's recipe at its paper's sizes, in f32, on synthetic captions (benchmarks.training):
  two ranks of one core against one process with two threads.
- larger_batch: the same with four times as many captions in an update.
"""

import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Self

import click
import torch
import torch.distributed as dist

from benchmarks.training import Training, load_recipe

RECIPE, BATCH, WARM_UP, UPDATES = "Kádár, f32", 128, 2, 4


@dataclass(frozen=True)
class Row:
    """One comparison.

    Attributes:
        name: Of the two sides.
        ratio: Speed of the spread side to that of the other.
        target: That it should reach.
        figures: What the sides did, in words.
    """

    name: str
    ratio: float
    target: float
    figures: str


class Trainers:
    """Processes that make the same updates together, on demand."""

    def __init__(self, processes: int, threads: int, batch: int, folder: Path) -> None:
        """Start them; ``batch`` is theirs together, ``folder`` where they meet."""
        spawn = get_context("spawn")
        ends = [spawn.Pipe() for _ in range(processes)]
        self.connections = [ours for ours, _ in ends]
        self.processes = [
            spawn.Process(target=_train, args=(its, threads, rank, processes, batch, folder))
            for rank, (_, its) in enumerate(ends)
        ]
        for process in self.processes:
            process.start()

    def __enter__(self) -> Self:
        self.seconds(WARM_UP)
        return self

    def seconds(self, updates: int) -> float:
        """Make so many updates; return how long they took."""
        for connection in self.connections:
            connection.send(updates)
        return max(connection.recv() for connection in self.connections)

    def __exit__(self, *_: object) -> None:
        for connection in self.connections:
            connection.send(0)
        for process in self.processes:
            process.join()


def _train(
    connection: Connection, threads: int, rank: int, ranks: int, batch: int, folder: Path
) -> None:
    torch.set_num_threads(threads)
    if ranks > 1:
        store = dist.FileStore(str(folder / "store"), ranks)
        dist.init_process_group("gloo", store=store, rank=rank, world_size=ranks)
    training = Training.synthetic(load_recipe(RECIPE, batch_size=batch))
    while updates := connection.recv():
        start = time.perf_counter()
        for _ in range(updates):
            training()
        connection.send(time.perf_counter() - start)


def ranks_against_threads(batch: int, rounds: int) -> Row:
    """Train in two ranks of one core, and in one process with two threads."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        one = stack.enter_context(Trainers(1, 2, batch, folder))
        two = stack.enter_context(Trainers(2, 1, batch, folder))
        times = [(one.seconds(UPDATES), two.seconds(UPDATES)) for _ in range(rounds)]
    ratio = statistics.median(a / b for a, b in times)
    a, b = (batch * UPDATES / statistics.median(side) for side in zip(*times, strict=True))
    name = f"two ranks, one process; batches of {batch}"
    return Row(name, ratio, 0.9, f"{b:.0f} and {a:.0f} captions/s")


ROWS: dict[str, Callable[[int], Row]] = {
    "ranks": partial(ranks_against_threads, BATCH),
    "larger_batch": partial(ranks_against_threads, 4 * BATCH),
}
"""From the number of rounds to what they found."""


@click.command(help=__doc__)
@click.option("--rounds", default=7, help="Rounds; the sides of a row take turns.")
@click.argument("rows", nargs=-1, type=click.Choice([*ROWS]))
def main(rounds: int, rows: tuple[str, ...]) -> None:
    """Print a table of some rows, or of all."""
    print(f"{'row':<42} {'ratio':>6} {'target':>7}   figures")
    for name in rows or ROWS:
        row = ROWS[name](rounds)
        print(f"{row.name:<42} {row.ratio:6.2f} {row.target:7.2f}   {row.figures}", flush=True)


if __name__ == "__main__":
    main()
