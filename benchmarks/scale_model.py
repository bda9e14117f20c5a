"""What large collections need: ``python -m benchmarks.scale_model`` prints docs/scale.md's tables.

A model, not a measurement. An item's floating-point operations, and the share of the peak that they
run at, are measured on one core of a CPU (benchmarks.scale_costs, in ``scale_costs.json``). A GPU
is assumed to reach the same share of its own peak, at most all of it:

    hours = items x operations / (share x peak of a GPU x GPUs) / 3600

Photos are decoded on the cores beside each GPU at the rate measured for a core, ahead of the
network; the slower of the two counts. GPUs do not wait for each other in this model.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import click

from benchmarks.scale_costs import COSTS, DIM, FAMILIES, Cost

LANGUAGES, PER_LANGUAGE = 6, 5
CAPTIONS = LANGUAGES * PER_LANGUAGE
"""Of each image."""

IMAGES = {"1 M": 10**6, "100 M": 10**8}
GPUS = (1, 8, 64)
FEATURE_DIM = 2048
EPOCHS = 10


@dataclass(frozen=True)
class Gpu:
    """What one GPU is assumed to have, by its data sheet, and the host's share of it.

    Attributes:
        peak: Operations per second of a dense matrix product, by precision.
        cores: Of the host, for each GPU.
    """

    peak: dict[str, float]
    cores: int


A100 = Gpu({"bf16": 312e12, "f32": 19.5e12}, 16)
"""NVIDIA A100 (80 GB): data sheet of 2021. f32 is without TF32, in which searches aren't exact."""

ON_GPU = {"pair scored": "f32"}
"""Precision there of what is measured here in another."""


@dataclass(frozen=True)
class Task:
    """A task that grows with the collection.

    Attributes:
        name: What it is.
        seconds: On one GPU, of so many images.
    """

    name: str
    seconds: Callable[[int], float]


@click.command(help=__doc__)
def main() -> None:
    """Print all tables."""
    click.echo(tables())


def tables() -> str:
    """Return the tables of docs/scale.md, in Markdown."""
    measured = json.loads(COSTS.read_text(encoding="utf-8"))
    costs = {row["item"]: Cost(**row) for row in measured["costs"]}
    return "\n\n".join(
        [cost_table(costs), hour_table(costs), byte_table(measured["bytes"])],
    )


def cost_table(costs: dict[str, Cost]) -> str:
    """Return what was measured, and what a GPU would do by the model."""
    header = [
        "item",
        "precision",
        "MFLOP",
        "share of the peak",
        "a core, per second",
        "a GPU, by the model",
    ]
    rows = [
        [
            cost.item,
            cost.precision,
            _number(cost.flops / 1e6) if cost.flops else "",
            f"{cost.share:.0%}" if cost.flops else "",
            _number(cost.rate),
            _number(1 / gpu_seconds(cost)) if cost.flops else _number(cost.rate * A100.cores),
        ]
        for cost in costs.values()
    ]
    return _markdown(header, rows, labels=2)


def hour_table(costs: dict[str, Cost]) -> str:
    """Return the hours of each task, for each collection and number of GPUs."""
    header = ["hours"] + [f"{name}, {gpus} GPU" for name in IMAGES for gpus in GPUS]
    rows = [
        [task.name]
        + [_hours(task.seconds(n) / gpus / 3600) for n in IMAGES.values() for gpus in GPUS]
        for task in tasks(costs)
    ]
    return _markdown(header, rows)


def tasks(costs: dict[str, Cost]) -> Iterator[Task]:
    """Yield all tasks, with their seconds on one GPU."""
    decoding = 1 / (costs["photo decoded and cut"].rate * A100.cores)
    for transform in ("ten_crop", "dense_ten_crop"):
        slower = max(decoding, gpu_seconds(costs[f"image, {transform}"]))
        yield Task(f"features, {transform}", lambda images, each=slower: images * each)
    for family in FAMILIES:
        each = EPOCHS * CAPTIONS * gpu_seconds(costs[f"caption trained, {family}"])
        yield Task(f"{family}, {EPOCHS} epochs", lambda images, each=each: images * each)
    each = CAPTIONS * gpu_seconds(costs["caption embedded"])
    yield Task("all captions embedded", lambda images, each=each: images * each)
    pair = gpu_seconds(costs["pair scored"])
    yield Task("pseudopairs of two languages", lambda images: (PER_LANGUAGE * images) ** 2 * pair)
    yield Task("all photos for 1,000 queries", lambda images: 1000 * images * pair)


def gpu_seconds(cost: Cost) -> float:
    """Return the seconds of an item on one GPU, in the precision that it has there."""
    precision = ON_GPU.get(cost.item, cost.precision)
    return cost.flops / (min(cost.share, 1) * A100.peak[precision])


def byte_table(caption: dict[str, float]) -> str:
    """Return what lies on disk and in memory."""
    each = {
        f"features, {FEATURE_DIM} x float32: file, and in training": 4 * FEATURE_DIM,
        "captions: Parquet file": CAPTIONS * caption["disk"],
        "captions: the table that a stage reads": CAPTIONS * caption["memory"],
        f"vectors of captions, {DIM} x float32": CAPTIONS * 4 * DIM,
        f"vectors of photos, {DIM} x float32": 4 * DIM,
    }
    rows = [
        [name, _number(per_image), *(_number(n * per_image / 1e9) for n in IMAGES.values())]
        for name, per_image in each.items()
    ]
    return _markdown(["what", "bytes an image", *(f"{name}, GB" for name in IMAGES)], rows)


def _markdown(header: list[str], rows: list[list[str]], labels: int = 1) -> str:
    line = ["---"] * labels + ["---:"] * (len(header) - labels)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (header, line, *rows))


def _hours(hours: float) -> str:
    return "< 0.1" if hours < 0.1 else _number(hours)


def _number(value: float) -> str:
    """Return two significant digits, or whole thousands."""
    if value >= 100:
        digits = len(str(int(value))) - 2
        return f"{round(value / 10**digits) * 10**digits:,}"
    return f"{value:.2g}"


if __name__ == "__main__":
    main()
