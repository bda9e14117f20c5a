"""What large collections need: ``python -m benchmarks.scale_model`` prints docs/scale.md's tables.

A model, not a measurement. What one GPU does in a second was measured on an NVIDIA H100
(benchmarks.gpu, in ``gpu_h100.json``), each in the faster of bf16 and f32; what was not takes its
floating-point operations, counted on a CPU (benchmarks.scale_costs, in ``scale_costs.json``), at
the speed of what is most like it:

    hours = items / items per second / GPUs / 3600

Photos are decoded on the cores beside each GPU, ahead of the network; the slower of the two counts.
GPUs do not wait for each other in this model.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path

import click

from benchmarks.scale_costs import COSTS, DIM, FAMILIES, Cost

LANGUAGES, PER_LANGUAGE = 6, 5
CAPTIONS = LANGUAGES * PER_LANGUAGE
"""Of each image."""

IMAGES = {"1 M": 10**6, "100 M": 10**8}
GPUS = (1, 8, 64)
EMBEDDED = {"MULE": 2}
"""How often a family embeds a caption in an epoch, if not once: a language has as many photos in an
epoch's batches as captions, and of each photo there two captions count."""

FEATURE_DIM = 2048
EPOCHS = 10
BACKBONE = "resnet50"


GPU = Path(__file__).with_name("gpu_h100.json")

LIKE = {"image, dense_ten_crop": "image, ten_crop", "caption embedded": "caption trained, Kádár"}
"""What no GPU has done, and what does the same layers there."""


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
    rates = gpu_rates(costs, json.loads(GPU.read_text(encoding="utf-8"))["rows"])
    return "\n\n".join(
        [cost_table(costs, rates), hour_table(rates), byte_table(measured["bytes"])],
    )


def gpu_rates(costs: dict[str, Cost], rows: list[dict]) -> dict[str, float]:
    """Return the items of each kind that one GPU, or the cores beside it, does in a second.

    Args:
        costs: Of an item on one core of a CPU, by its name.
        rows: Of a report of benchmarks.gpu.
    """
    best = {row["what"]: row["rate"] for row in sorted(rows, key=itemgetter("rate"))}
    [search] = (row for row in rows if row["what"].startswith("pseudopairs"))
    rates = {
        "photo decoded and cut": best["decoding, ten crops"],
        "image, ten_crop": best[f"ten-crop {BACKBONE}"],
        "pair scored": search["flop_per_s"] / costs["pair scored"].flops,
        **{f"caption trained, {family}": best[f"training {family}"] for family in FAMILIES},
    }
    for item, other in LIKE.items():
        rates[item] = rates[other] * costs[other].flops / costs[item].flops
    return rates


def cost_table(costs: dict[str, Cost], rates: dict[str, float]) -> str:
    """Return what a core and a GPU do in a second."""
    header = ["item", "MFLOP", "precision", "share of the peak", "a core, per second"]
    header += ["a GPU, per second", "TFLOP/s there"]
    rows = [
        [
            cost.item,
            _number(cost.flops / 1e6) if cost.flops else "",
            cost.precision,
            f"{cost.share:.0%}" if cost.flops else "",
            _number(cost.rate),
            _number(rates[cost.item]) + "*" * (cost.item in LIKE),
            _number(rates[cost.item] * cost.flops / 1e12) if cost.flops else "",
        ]
        for cost in costs.values()
    ]
    return _markdown(header, rows)


def hour_table(rates: dict[str, float]) -> str:
    """Return the hours of each task, for each collection and number of GPUs."""
    header = ["hours"] + [f"{name}, {gpus} GPU" for name in IMAGES for gpus in GPUS]
    rows = [
        [task.name]
        + [_hours(task.seconds(n) / gpus / 3600) for n in IMAGES.values() for gpus in GPUS]
        for task in tasks(rates)
    ]
    return _markdown(header, rows)


def tasks(rates: dict[str, float]) -> Iterator[Task]:
    """Yield all tasks, with their seconds on one GPU."""
    for transform in ("ten_crop", "dense_ten_crop"):
        slower = min(rates["photo decoded and cut"], rates[f"image, {transform}"])
        yield Task(f"features, {transform}", lambda images, rate=slower: images / rate)
    for family in FAMILIES:
        rate = rates[f"caption trained, {family}"] / (EPOCHS * CAPTIONS * EMBEDDED.get(family, 1))
        yield Task(f"{family}, {EPOCHS} epochs", lambda images, rate=rate: images / rate)
    rate = rates["caption embedded"] / CAPTIONS
    yield Task("all captions embedded", lambda images, rate=rate: images / rate)
    pairs = rates["pair scored"]
    yield Task("pseudopairs of two languages", lambda images: (PER_LANGUAGE * images) ** 2 / pairs)
    yield Task("all photos for 1,000 queries", lambda images: 1000 * images / pairs)


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


def _markdown(header: list[str], rows: list[list[str]]) -> str:
    line = ["---"] + ["---:"] * (len(header) - 1)
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
