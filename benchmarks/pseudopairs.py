"""Find the nearest of 30,000 captions for each of 20,000: streamed tiles against faiss.

The reference is faiss' exact index for inner products, IndexFlatIP, on the same threads. Each
side runs in its own process on saved vectors. Coordinates are multiples of 2^-12, so that every
product of two vectors is exact in float32 in any order of summation, and both must find the same
score for every query; which of two captions with the same score they name is left open.

Usage: python -m benchmarks.pseudopairs (needs faiss-cpu)
"""

import importlib.util
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import click
import numpy as np

Found = tuple[np.ndarray, np.ndarray]
"""Indices and scores of the nearest ``[queries, count]`` each."""


def faiss_search(queries: np.ndarray, base: np.ndarray, count: int) -> Found:
    """Search with faiss; its index is a copy of the base."""
    import faiss

    index = faiss.IndexFlatIP(base.shape[1])
    index.add(base)
    scores, indices = index.search(queries, count)
    return indices, scores


def streamed_search(queries: np.ndarray, base: np.ndarray, count: int) -> Found:
    """Search with the library."""
    import torch

    from pipeline_lib.synthesis.neighbours import nearest

    found = nearest(torch.from_numpy(queries), torch.from_numpy(base), count)
    return found.indices.numpy(), found.scores.numpy()


def unit_vectors(queries: int, base: int, dim: int, seed: int) -> Found:
    """Draw captions, and queries that resemble one of them more or less, on a grid of 2^-12."""
    generator = np.random.default_rng(seed)
    captions = generator.standard_normal((base, dim), np.float32)
    noise = generator.standard_normal((queries, dim), np.float32)
    signal = generator.uniform(0, 1.5, (queries, 1)).astype(np.float32)
    return _on_grid(noise + signal * captions[generator.integers(0, base, queries)]), _on_grid(
        captions
    )


def measure(
    search: Callable[..., Found], folder: Path, count: int, runs: int
) -> tuple[float, float, Found]:
    """Return median seconds, peak MB above the loaded inputs, and what was found."""
    queries, base = np.load(folder / "queries.npy"), np.load(folder / "base.npy")
    search(queries[:64], base[:64], count)  # loads the libraries, which are no part of the search
    before, seconds = _memory("VmRSS"), []
    for _ in range(runs):
        start = time.perf_counter()
        found = search(queries, base, count)
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds), _memory("VmHWM") - before, found


def recall(ours: Found, reference: Found) -> float:
    """Return the share of the neighbours found that score no less than the reference's."""
    return float((ours[1] >= reference[1]).mean())


@click.command()
@click.option("--queries", default=20_000, show_default=True)
@click.option("--base", default=30_000, show_default=True)
@click.option("--dim", default=1024, show_default=True)
@click.option("--count", default=1, show_default=True, help="Neighbours of each query.")
@click.option("--threads", default=2, show_default=True)
@click.option("--runs", default=3, show_default=True, help="Of each side; the median counts.")
@click.option("--seed", default=0, show_default=True)
def main(queries: int, base: int, dim: int, count: int, threads: int, runs: int, seed: int) -> None:
    """Measure both sides and print a table."""
    if importlib.util.find_spec("faiss") is None:
        raise click.ClickException("the reference is missing: install faiss-cpu")
    # Read by BLAS when a process first loads it: the measuring processes start afterwards.
    for library in ("OPENBLAS", "MKL", "OMP"):
        os.environ[f"{library}_NUM_THREADS"] = str(threads)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for side, vectors in zip(
            ("queries", "base"), unit_vectors(queries, base, dim, seed), strict=True
        ):
            np.save(folder / f"{side}.npy", vectors)
        slow = _in_new_process(measure, faiss_search, folder, count, runs)
        fast = _in_new_process(measure, streamed_search, folder, count, runs)
    click.echo(f"{queries:,} queries x {base:,} captions, {dim}-d, {threads} threads\n")
    click.echo(f"{'':18}{'seconds':>9}{'MB above inputs':>17}{f'recall@{count}':>11}")
    for label, side in (("faiss IndexFlatIP", slow), ("streamed tiles", fast)):
        click.echo(f"{label:18}{side[0]:9.2f}{side[1]:17.0f}{recall(side[2], slow[2]):11.4f}")
    click.echo(
        f"\npseudopairs ratio={slow[0] / fast[0]:.2f} memory_above_inputs={fast[1]:.0f}MB "
        f"recall={recall(fast[2], slow[2]):.4f}"
    )


def _in_new_process(function: Callable, *arguments: object) -> tuple[float, float, Found]:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


def _on_grid(vectors: np.ndarray) -> np.ndarray:
    vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.round(vectors * 2**12) / np.float32(2**12)


def _memory(field: str) -> float:
    """Return a field of this process's status in MB: VmRSS is now, VmHWM the peak."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1e3 for line in lines if line.startswith(field))


if __name__ == "__main__":
    main()
