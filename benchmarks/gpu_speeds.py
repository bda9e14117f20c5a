"""What benchmarks.gpu measures: each a function of the device, of sizes and of the time it has.

Each imports what it needs itself, so that a package that a machine lacks costs that measurement
and no other.
"""

import tempfile
from collections.abc import Sequence
from functools import partial
from itertools import product as combinations
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from benchmarks.gpu_rows import HOST, PRODUCT, Measurement, Row, Sizes
from benchmarks.gpu_search import pseudopairs, ranks, search_both_ways
from benchmarks.rates import rates

CROPS = 10
PHOTOS = 64
BACKBONES = ("resnet50", "resnet152")
TYPES = {"bf16": torch.bfloat16, "f32": torch.float32}
FAMILIES = ("VSE", "Kádár", "MLMME", "MULE", "AME", "AME, asymmetric")
"""Recipes of benchmarks.training: alternating, alternating, joint, two_branch, mixed, mixed."""

COUNTED_UPDATES = 8

COMMON = ("joblib", "numpy", "pydantic", "tqdm")
"""Packages, beside torch, that all measurements need."""

CNN = (*COMMON, "torchvision", "safetensors", "PIL")
TRAINING = (*COMMON, "click", "h5py", "pandas", "ruamel.yaml", "safetensors")
TEST_PACKAGES = ("pytest", "sentencepiece", *CNN, *TRAINING)


def measurements(sizes: Sizes, precisions: Sequence[str]) -> list[Measurement]:
    """Return all of them, the peaks first: the others' shares are of these."""
    return [
        *(
            Measurement(f"{PRODUCT}, {precision}", COMMON, 2, partial(product, precision=precision))
            for precision in precisions
        ),
        Measurement(f"{PRODUCT}, {HOST}", COMMON, 2, host_product),
        *(
            Measurement(
                f"ten-crop {backbone}, {precision}, {batch} at a time", CNN, 3,
                partial(ten_crop, backbone=backbone, precision=precision, batch=batch),
            )
            for backbone, precision, batch in combinations(BACKBONES, precisions, sizes.batches)
        ),
        Measurement("decoding", CNN, 3, decoding),
        *(
            Measurement(
                f"training {family}, {precision}", TRAINING, 3,
                partial(training, family=family, precision=precision),
            )
            for family, precision in combinations(FAMILIES, precisions)
        ),
        Measurement("ranks", COMMON, 8, ranks),
        Measurement("search both ways", COMMON, 5, search_both_ways),
        Measurement("pseudopairs", COMMON, 40, pseudopairs),
    ]  # fmt: skip


def product(device: torch.device, sizes: Sizes, seconds: float, precision: str) -> Row:
    """Multiply square matrices: the peak that all shares are of is that of the best size."""
    found = []
    for side in sizes.sides:
        a, b = (torch.randn(side, side, device=device).to(TYPES[precision]) for _ in range(2))

        def work(a: Tensor = a, b: Tensor = b) -> int:
            torch.mm(a, b)
            return 1

        rounds = rates(device, work, seconds / len(sizes.sides))
        found.append(_product_row(device.type, precision, side, rounds))
    return max(found, key=lambda row: row.rate * row.flops)


def host_product(device: torch.device, sizes: Sizes, seconds: float) -> Row:
    """Multiply square matrices with numpy, which ranks are computed with."""
    del device
    side = sizes.sides[0]
    a, b = (np.random.default_rng(seed).random((side, side), np.float32) for seed in range(2))

    def work() -> int:
        np.matmul(a, b)
        return 1

    return _product_row(HOST, "f32", side, rates(torch.device("cpu"), work, seconds))


def _product_row(on: str, precision: str, side: int, rounds: list[float]) -> Row:
    from benchmarks.flops import of_product

    return Row(
        PRODUCT, on, precision, "products/s", rounds, of_product(side, side, side),
        note=f"{side} x {side}",
    )  # fmt: skip


def ten_crop(
    device: torch.device, sizes: Sizes, seconds: float, backbone: str, precision: str, batch: int
) -> Row:
    """Encode ten crops of each image and average, from pixels to features in the host's memory.

    Random weights: they do not change the speed.
    """
    from benchmarks.flops import of_forward
    from pipeline_lib.images import backbones
    from pipeline_lib.images.networks import ImageEncoder
    from pipeline_lib.images.runtimes import RUNTIMES

    entry, crop = backbones.BACKBONES[backbone], sizes.crop
    encoder = ImageEncoder(entry.build(crop), entry.mean, entry.std).eval()
    encoder.requires_grad_(False)
    flops = CROPS * of_forward(encoder, torch.zeros(1, crop, crop, 3))
    runtime = RUNTIMES[device.type, precision](encoder, CROPS * batch, crop)
    shape = (CROPS * batch, crop, crop, 3)
    pixels = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)

    def work() -> int:
        runtime.encode(pixels).reshape(batch, CROPS, -1).mean(axis=1)
        return batch

    return Row(
        f"ten-crop {backbone}", device.type, runtime.precision, "images/s",
        rates(device, work, seconds), flops, note=f"{batch} images at a time, decoding apart",
    )  # fmt: skip


def decoding(device: torch.device, sizes: Sizes, seconds: float) -> Row:
    """Decode JPEGs and cut their ten crops, on all cores, as extraction does ahead of the CNN."""
    from benchmarks.photos import draw_photos
    from pipeline_lib.compute.forks import cores
    from pipeline_lib.images.batches import load_batch
    from pipeline_lib.images.decoding import decode
    from pipeline_lib.images.transforms import TRANSFORMS

    del device
    batch, crop = sizes.batches[-1], sizes.crop

    def read(path: Path) -> np.ndarray:
        return TRANSFORMS["ten_crop"].apply(decode(path), crop * 8 // 7, crop)

    with tempfile.TemporaryDirectory() as folder:
        paths = draw_photos(Path(folder) / "photos", max(PHOTOS, 2 * batch))
        batches = [paths[i : i + batch] for i in range(0, len(paths), batch)]

        def work() -> int:
            shape = (batch, CROPS, crop, crop, 3)
            return sum(load_batch(some, shape, read).count for some in batches)

        found = rates(torch.device("cpu"), work, seconds)
    return Row("decoding, ten crops", HOST, "uint8", "images/s", found, note=f"{cores()} cores")


def training(
    device: torch.device, sizes: Sizes, seconds: float, family: str, precision: str
) -> Row:
    """Train a recipe at its paper's sizes on captions of Flickr8k's lengths."""
    from benchmarks.flops import of_update
    from benchmarks.training import Training, load_recipe

    recipe = load_recipe(family, precision=precision, **sizes.recipe)
    update = Training.synthetic(recipe, device)
    captions: list[int] = []
    flops = sum(
        of_update(update.model, lambda: captions.append(update())) for _ in range(COUNTED_UPDATES)
    )
    return Row(
        f"training {family}", device.type, precision, "captions/s", rates(device, update, seconds),
        flops / sum(captions), note=f"{recipe.objective}, batches of {recipe.batch_size}",
    )  # fmt: skip
