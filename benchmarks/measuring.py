"""What benchmarks share that compare two searches over the same saved vectors."""

import os
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import numpy as np

Arrays = tuple[np.ndarray, np.ndarray]
Search = Callable[[np.ndarray, np.ndarray, int], Arrays]
"""From two sets of vectors ``[vectors, dim]`` and a number to two arrays."""


@dataclass(frozen=True)
class Measured:
    """One side of a comparison.

    Attributes:
        seconds: Median of its runs.
        memory: Peak MB above the loaded inputs.
        found: What its last run returned.
    """

    seconds: float
    memory: float
    found: Arrays


def unit_vectors_on_grid(vectors: np.ndarray) -> np.ndarray:
    """Scale vectors to length 1 and round coordinates to multiples of 2^-12.

    Every product of two such vectors is exact in float32 in any order of summation, so that two
    ways to find the nearest must agree: rounding is no excuse.
    """
    vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.round(vectors * 2**12) / np.float32(2**12)


def save_vectors(folder: Path, first: np.ndarray, second: np.ndarray) -> None:
    """Save the inputs of :func:`measure`."""
    np.save(folder / "first.npy", first)
    np.save(folder / "second.npy", second)


def set_threads(threads: int) -> None:
    """Set BLAS' threads in processes that start afterwards: it reads them when first loaded."""
    for library in ("OPENBLAS", "MKL", "OMP"):
        os.environ[f"{library}_NUM_THREADS"] = str(threads)


def measure(search: Search, folder: Path, number: int, runs: int) -> Measured:
    """Time ``runs`` searches in a process of their own, on the vectors in ``folder``."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(_measure_here, search, folder, number, runs).result()


def _measure_here(search: Search, folder: Path, number: int, runs: int) -> Measured:
    first, second = np.load(folder / "first.npy"), np.load(folder / "second.npy")
    search(first[:64], second[: 64 * number], number)  # loads libraries: no part of the search
    before, seconds = status_kib("VmRSS"), []
    for _ in range(runs):
        start = time.perf_counter()
        found = search(first, second, number)
        seconds.append(time.perf_counter() - start)
    return Measured(statistics.median(seconds), (status_kib("VmHWM") - before) / 1e3, found)


def status_kib(field: str) -> int:
    """Return a field of this process's status in KiB: VmRSS is now, VmHWM the peak."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field))
