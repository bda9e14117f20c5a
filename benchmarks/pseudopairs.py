"""Find the nearest of 30,000 captions for each of 20,000: streamed tiles against faiss.

The reference is faiss' exact index for inner products, IndexFlatIP, on the same threads. Each
side runs in its own process on saved vectors. Coordinates are multiples of 2^-12, so that every
product of two vectors is exact in float32 in any order of summation, and both must find the same
score for every query; which of two captions with the same score they name is left open.

Usage: uv run --group benchmark python -m benchmarks.pseudopairs
"""

import importlib.util
import tempfile
from pathlib import Path

import click
import numpy as np

from benchmarks.measuring import measure, save_vectors, set_threads, unit_vectors_on_grid

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
    noise += signal * captions[generator.integers(0, base, queries)]
    return unit_vectors_on_grid(noise), unit_vectors_on_grid(captions)


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
        raise click.ClickException("the reference is missing: uv sync --group benchmark")
    set_threads(threads)
    with tempfile.TemporaryDirectory() as folder:
        save_vectors(Path(folder), *unit_vectors(queries, base, dim, seed))
        slow = measure(faiss_search, Path(folder), count, runs)
        fast = measure(streamed_search, Path(folder), count, runs)
    click.echo(f"{queries:,} queries x {base:,} captions, {dim}-d, {threads} threads\n")
    click.echo(f"{'':18}{'seconds':>9}{'MB above inputs':>17}{f'recall@{count}':>11}")
    for label, side in (("faiss IndexFlatIP", slow), ("streamed tiles", fast)):
        found = recall(side.found, slow.found)
        click.echo(f"{label:18}{side.seconds:9.2f}{side.memory:17.0f}{found:11.4f}")
    click.echo(
        f"\npseudopairs ratio={slow.seconds / fast.seconds:.2f} "
        f"memory_above_inputs={fast.memory:.0f}MB recall={recall(fast.found, slow.found):.4f}"
    )


if __name__ == "__main__":
    main()
