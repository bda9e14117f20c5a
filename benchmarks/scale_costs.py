"""What one image, caption and pair cost on one core: ``python -m benchmarks.scale_costs``.

Floating-point operations are counted, and set against those of a product of large matrices in the
same precision, in turns and by the processor's own time, so that other programs on the machine
count little: the share of the peak. A share is the median of the rounds. Memory and disk are those
of a table of made-up captions as long as Flickr8k's, written and read as the pipeline does.
Weights, pixels, photos and vectors are drawn. The figures go into ``scale_costs.json``, from which
benchmarks.scale_model makes its tables.
"""

import json
import os
import statistics
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from itertools import chain
from pathlib import Path

import click
import numpy as np
import pandas as pd
import torch
from torch.nn import functional as F

from benchmarks.flops import of_forward, of_product, of_update
from benchmarks.photos import draw_photos
from benchmarks.training import LENGTHS, WORDS, Training, load_recipes
from pipeline_lib.compute.arithmetic.mode import arithmetic
from pipeline_lib.contract.tables import read_captions, write_captions
from pipeline_lib.images.backbones import BACKBONES
from pipeline_lib.images.decoding import decode
from pipeline_lib.images.networks import ImageEncoder
from pipeline_lib.images.runtimes import RUNTIMES
from pipeline_lib.images.transforms import TRANSFORMS
from pipeline_lib.images.windows import FiveWindows
from pipeline_lib.synthesis.neighbours import nearest
from pipeline_lib.synthesis.rounding import fast_precision

COSTS = Path(__file__).with_suffix(".json")
RESIZE, CROP = 256, 224
SIDE = 2048
"""Of the matrices whose product shows the peak."""

FAMILIES = ("VSE", "Kádár", "MLMME", "MULE", "AME")
QUERIES, BASE, DIM = 1024, 16384, 1024
ROUNDS = 3
CAPTIONS = 20_000
TYPES = {"bf16": torch.bfloat16, "f32": torch.float32}


@dataclass(frozen=True)
class Cost:
    """What one item costs.

    Attributes:
        item: What it is.
        precision: What it is computed in.
        flops: Floating-point operations of one; 0 where they are not counted.
        share: Of the operations per second of a matrix product; 0 without operations.
        rate: Items per second of one core.
    """

    item: str
    precision: str
    flops: float
    share: float
    rate: float


@click.command(help=__doc__)
def main() -> None:
    """Measure, and write :data:`COSTS`."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # OpenVINO takes all cores it may use
    torch.set_num_threads(1)
    costs = []
    for found in chain(extraction(), training(), encoding(), searching()):
        click.echo(f"{found.item}: {found.rate:.3g}/s of a core, {found.share:.0%} of the peak")
        costs.append(found)
    measured = {"costs": [asdict(cost) for cost in costs], "bytes": caption_bytes()}
    COSTS.write_text(json.dumps(measured, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def extraction() -> Iterator[Cost]:
    """Yield the cost of an image by ten-crop and dense ten-crop ResNet-50, and of decoding one."""
    with tempfile.TemporaryDirectory() as folder:
        paths = draw_photos(Path(folder) / "photos", 8)

        def cut() -> int:
            for path in paths:
                TRANSFORMS["ten_crop"].apply(decode(path), RESIZE, CROP)
            return len(paths)

        rate = statistics.median(_rate(cut) for _ in range(ROUNDS))
    yield Cost("photo decoded and cut", "uint8", 0, 0, rate)
    yield from map(_network_cost, ("ten_crop", "dense_ten_crop"))


def _network_cost(name: str) -> Cost:
    entry, transform = BACKBONES["resnet50"], TRANSFORMS[name]
    side = transform.side(RESIZE, CROP)
    network = entry.build(side)
    if transform.dense:
        network.avgpool = FiveWindows(RESIZE, CROP, entry.feature_map.stride)
    encoder = ImageEncoder(network, entry.mean, entry.std).eval().requires_grad_(False)
    flops = transform.crops * of_forward(encoder, torch.zeros(1, side, side, 3))
    runtime = RUNTIMES["cpu", "bf16"](encoder, transform.crops, side)
    shape = (transform.crops, side, side, 3)
    pixels = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)

    def encode() -> int:
        runtime.encode(pixels)
        return 1

    return cost(f"image, {name}", runtime.precision, flops, encode)


def training() -> Iterator[Cost]:
    """Yield the cost of a caption in an update of each family, at its paper's sizes."""
    recipes = load_recipes()
    for family in FAMILIES:
        update, read = Training.synthetic(recipes[family]), []
        flops = of_update(update.model, partial(_note, read, update))
        yield cost(f"caption trained, {family}", "bf16", flops / read[0], update)


def _note(read: list[int], update: Training) -> None:
    read.append(update())


def encoding() -> Iterator[Cost]:
    """Yield the cost of a caption that the Kádár recipe embeds."""
    update = Training.synthetic(load_recipes()["Kádár"])
    update()
    reader, (states, *rest) = update.read[0]
    words = int(rest[-1].sum())
    matrices = reader.layer.weight_ih_l0.numel() + reader.layer.weight_hh_l0.numel()

    @torch.inference_mode()
    def encode() -> int:
        with arithmetic("bf16"):
            return len(reader(states, *rest))

    yield cost("caption embedded", "bf16", 2 * words * matrices / len(rest[-1]), encode)


def searching() -> Iterator[Cost]:
    """Yield the cost of a pair of vectors that are scored, in the search for the nearest."""
    a, b = (F.normalize(torch.randn(count, DIM), dim=1) for count in (QUERIES, BASE))
    precision = next(name for name, of in TYPES.items() if of == fast_precision(a.device))

    def search() -> int:
        return len(nearest(a, b, 1).indices) * BASE

    yield cost("pair scored", precision, of_product(1, 1, DIM), search)


def cost(item: str, precision: str, flops: float, work: Callable[[], int]) -> Cost:
    """Time some work and a product of matrices in turns.

    Args:
        item: What is counted.
        precision: Of the work, and of the product.
        flops: Operations of an item.
        work: Returns how many items it did.
    """
    matrix = torch.rand(SIDE, SIDE).to(TYPES[precision])

    def multiply() -> int:
        torch.mm(matrix, matrix)
        return 1

    work()  # reserves memory, compiles
    rounds = [(_rate(multiply), _rate(work)) for _ in range(ROUNDS)]
    shares = [rate * flops / (peak * of_product(SIDE, SIDE, SIDE)) for peak, rate in rounds]
    rate = statistics.median(rate for _, rate in rounds)
    return Cost(item, precision, flops, statistics.median(shares), rate)


def _rate(work: Callable[[], int]) -> float:
    """Return the items per second of the processor's time."""
    start = time.process_time()
    items = work()
    return items / (time.process_time() - start)


def caption_bytes() -> dict[str, float]:
    """Return the bytes of a caption in a table, on disk and in memory."""
    random = np.random.default_rng(0)
    mean, deviation = LENGTHS["en"]
    lengths = random.normal(mean, deviation, CAPTIONS).round().clip(1).astype(int)
    sentences = [[f"w{rank % WORDS}" for rank in random.zipf(1.2, length)] for length in lengths]
    ids = [f"made_up:{number:08}" for number in range(CAPTIONS)]
    table = pd.DataFrame(
        {
            "caption_id": ids, "image_id": ids, "dataset": "made_up", "split": "train",
            "language": "en", "annotation": "caption", "position": np.int16(0),
            "text": [" ".join(words) for words in sentences], "tokens": sentences,
            "source_caption_id": None,
        }
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "captions.parquet"
        write_captions(table, path)
        tracemalloc.start()
        kept = read_captions(path)
        memory, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return {"disk": path.stat().st_size / len(kept), "memory": memory / len(kept)}


if __name__ == "__main__":
    main()
