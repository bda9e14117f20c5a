"""Products of float32 matrices as training multiplies them, by PyTorch's choice and by ours.

``python -m benchmarks.products [--threads N]`` multiplies matrices of the sizes of one update
(sentences of a step by a recurrent layer's weights, the weights' gradient, a batch's scores) by
the library that PyTorch takes, and as within pipeline_lib.compute.products.fast_products, in turns.
Where that leaves a CPU to PyTorch, it says so.
"""

import statistics
import time

import click
import torch
from torch import Tensor

from pipeline_lib.compute.products import by_mkl_at_half_speed, fast_products

SIZES = {
    "a step of a GRU, 256 sentences": (256, 1024, 3072),
    "a step of MULE's LSTM, 1,800 sentences": (1800, 512, 2048),
    "the gradient of its weights": (2048, 6000, 512),
    "scores of 450 photos and 900 captions": (450, 512, 900),
    "a short step, 8 sentences": (8, 1024, 3072),
}
ROUNDS = 7
SECONDS = 0.05
"""That each side of a round multiplies for."""


@click.command(help=__doc__)
@click.option("--threads", default=1, show_default=True)
def main(threads: int) -> None:
    """Print a line for each size."""
    torch.set_num_threads(threads)
    name = torch.cpu.get_capabilities().get("cpu_name", "CPU")
    ours = "by oneDNN" if by_mkl_at_half_speed() else "left to PyTorch"
    click.echo(f"{name}, {threads} thread(s), float32: {ours}")
    for title, (rows, terms, columns) in SIZES.items():
        a, b = torch.randn(rows, terms), torch.randn(columns, terms).T
        plain, fast = speeds(a, b)
        click.echo(f"{title}: {plain:.0f} and {fast:.0f} GFLOPS, {fast / plain:.2f} times")


def speeds(a: Tensor, b: Tensor) -> tuple[float, float]:
    """Return PyTorch's and our GFLOPS, medians over rounds in which they take turns."""
    plain, fast = [], []
    for _ in range(ROUNDS):
        plain.append(_speed(a, b))
        with fast_products():
            fast.append(_speed(a, b))
    return statistics.median(plain), statistics.median(fast)


def _speed(a: Tensor, b: Tensor) -> float:
    torch.mm(a, b)  # chooses its kernel
    start, times = time.perf_counter(), 0
    while (taken := time.perf_counter() - start) < SECONDS:
        torch.mm(a, b)
        times += 1
    return 2 * len(a) * b.numel() * times / taken / 1e9


if __name__ == "__main__":
    main()
