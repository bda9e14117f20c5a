"""The seeds of a recipe side by side: a small model keeps one core busy, not all of them."""

import os
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from multiprocessing import connection, get_context, parent_process
from threading import Thread

import torch

from pipeline_lib.device import SMALL, best_device
from pipeline_lib.settings.recipes import Recipe


def side_by_side(recipe: Recipe) -> int:
    """Return how many seeds of a recipe are trained at once."""
    small = recipe.batch_size * recipe.text_width < SMALL
    on_cpu = best_device(recipe.precision).type == "cpu"
    return min(len(recipe.seeds), torch.get_num_threads()) if small and on_cpu else 1


def train_each(seeds: Iterable[int], train: Callable[[int, int], None], at_once: int) -> None:
    """Call ``train`` with each seed and its number, in processes of their own if several at once.

    Raises:
        RuntimeError: If a process failed; it has printed why.
    """
    numbered = list(enumerate(seeds))
    if at_once == 1:
        for number, seed in numbered:
            train(seed, number)
    for start in range(0, len(numbered) if at_once > 1 else 0, at_once):
        _train_at_once(numbered[start : start + at_once], train)


def _train_at_once(numbered: list[tuple[int, int]], train: Callable[[int, int], None]) -> None:
    processes = get_context("fork")
    with ExitStack() as stack:
        running = {}
        for number, seed in numbered:
            running[seed] = processes.Process(target=_run, args=(train, seed, number))
            running[seed].start()
            stack.callback(running[seed].kill)
        for process in running.values():
            process.join()
    failed = [str(seed) for seed, process in running.items() if process.exitcode]
    if failed:
        raise RuntimeError(f"training failed for seed {', '.join(failed)}: see above")


def _run(train: Callable[[int, int], None], seed: int, number: int) -> None:
    Thread(target=_end_with_parent, daemon=True).start()
    torch.set_num_threads(1)
    train(seed, number)


def _end_with_parent() -> None:
    connection.wait([parent_process().sentinel])
    os._exit(1)
