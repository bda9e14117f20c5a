"""Ten-crop ResNet-50 features: ours against the plain loop that the field's code bases use.

The reference decodes with Pillow, cuts with torchvision's TenCrop, converts and normalises every
crop to float32 on its own, and runs the network eagerly in float32. Both sides use all cores that
the process may use (``taskset -c 0,1`` gives both two), the same photos and the same randomly
initialised network. They alternate, and the best round of each counts. Loading and compiling the
network is not part of the time. The machine should be idle: the reference suffers more from other
programs, which flatters the ratio. Dense ten-crop, our own approximation, takes its turn with them.
With photos (``--images``), its features by EfficientNet-Lite0 with trained weights are set against
those of ten-crop, too.

Peak memory is that of encoding and writing, in a process of its own, after the network has been
compiled. Each image is squashed to one crop, as many crops to a forward pass as with ten-crop: ten
times as many images are in memory at a time, and 1,000 images take a tenth of the time.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import click
import numpy as np
import pandas as pd
import torch
from PIL import Image
from safetensors.torch import save_file
from torchvision.transforms import v2

from benchmarks.flops import of_forward
from benchmarks.photos import draw_photos
from pipeline_lib.contract.features import Features, write_features
from pipeline_lib.contract.problems import raise_problems
from pipeline_lib.images.backbones import BACKBONES
from pipeline_lib.images.batches import FeatureStore
from pipeline_lib.images.extraction import ImageWorker, encode_images
from pipeline_lib.images.networks import ImageEncoder, load_network
from pipeline_lib.images.runtimes import Runtime, load_runtime
from pipeline_lib.images.weights import find_weights
from pipeline_lib.running.publishing import file_sha256
from pipeline_lib.scheduling.shards import ThisProcess

ROUNDS = 3
OUR_IMAGES, REFERENCE_IMAGES = 32, 8
MEMORY_IMAGES = (200, 1000)
DRAWN_PHOTOS = 64
COSINE_IMAGES = 320
DENSE = "dense_ten_crop"
MATMUL_SIDE = 4096

MEMORY_SCRIPT = """
import sys
from pathlib import Path
from benchmarks.extraction import print_peak_memory
print_peak_memory(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], int(sys.argv[4]))
"""


@dataclass(frozen=True)
class Settings:
    """The measured extractor."""

    weights: str
    backbone: str = "resnet50"
    transform: str = "ten_crop"
    resize: int = 256
    crop: int = 224
    precision: str = "bf16"
    batch_size: int = 4
    layers: str = "last"


@dataclass(frozen=True)
class Comparison:
    """Images per second of each side and FLOP/s of a matrix product, each of its best round."""

    ours: float
    dense: float
    reference: float
    matmul: float
    least_cosine: float


@click.command(help=__doc__)
@click.option(
    "--images",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder of photos to measure on. Without it, photo-like JPEGs are drawn.",
)
def main(images: Path | None) -> None:
    """Measure, and print the table and the summary line."""
    if (load := os.getloadavg()[0]) > 0.5:
        click.echo(f"warning: {load:.1f} other programs are running, the ratio flatters", err=True)
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        folder = images or draw_photos(work / "photos", DRAWN_PHOTOS)[0].parent
        settings = Settings(weights=save_random_weights(work))
        weights = find_weights(settings.backbone, settings.weights)
        encoder, runtime = load_network(settings, weights), load_runtime(settings, weights)
        flops = of_forward(encoder, torch.zeros(1, settings.crop, settings.crop, 3))
        speed = compare(folder, settings, runtime, encoder, work)
        memory = [peak_memory(folder, settings, work, count) for count in MEMORY_IMAGES]
        cosines = dense_cosines(folder, work) if images else None
    report(runtime, speed, speed.ours * 10 * flops / speed.matmul, memory, cosines)


def compare(
    folder: Path, settings: Settings, runtime: Runtime, encoder: ImageEncoder, work: Path
) -> Comparison:
    """Time both sides and a matrix product in turns, each side on its own number of images."""
    mine, theirs = images_table(folder, OUR_IMAGES), images_table(folder, REFERENCE_IMAGES)
    network = encoder.backbone.to(memory_format=torch.contiguous_format)
    squares = replace(settings, transform=DENSE)
    dense = runtime_of(squares)
    seconds: dict[str, list[float]] = {"ours": [], "dense": [], "reference": [], "matmul": []}
    for _ in range(ROUNDS):
        elapsed, ours = timed(lambda: our_features(mine, folder, settings, runtime, work))
        seconds["ours"].append(elapsed / OUR_IMAGES)
        elapsed, _ = timed(lambda: our_features(mine, folder, squares, dense, work))
        seconds["dense"].append(elapsed / OUR_IMAGES)
        elapsed, reference = timed(lambda: reference_features(theirs, folder, network))
        seconds["reference"].append(elapsed / REFERENCE_IMAGES)
        seconds["matmul"].append(matmul_seconds(runtime) / (2 * MATMUL_SIDE**3))
    cosine = torch.cosine_similarity(torch.tensor(ours[: len(reference)]), reference)
    return Comparison(*(1 / min(times) for times in seconds.values()), cosine.min().item())


def dense_cosines(folder: Path, work: Path) -> np.ndarray:
    """Return the cosines of dense ten-crop features to exact ones, by a trained network."""
    lite = Settings("package", "efficientnet_lite0", batch_size=16)
    images, found = images_table(folder, COSINE_IMAGES), []
    for settings in (lite, replace(lite, transform=DENSE)):
        runtime = runtime_of(settings)
        features = our_features(images, folder, settings, runtime, work)
        found.append(features / np.linalg.norm(features, axis=1, keepdims=True))
    return np.multiply(*found).sum(axis=1)


def our_features(
    images: pd.DataFrame, folder: Path, settings: Settings, runtime: Runtime, work: Path
) -> np.ndarray:
    """Return features ``[images, dim]`` by the pipeline's own loop."""
    with tempfile.TemporaryDirectory(dir=work) as name:
        pool = one_process(settings, runtime)
        with empty_store(images, settings, Path(name)) as store:
            problems = encode_images(images, folder, settings, pool, store)
            features = store.read()[:]
    raise_problems(folder, problems)
    return features


def one_process(settings: Settings, runtime: Runtime) -> ThisProcess:
    """Return the pool that extraction has where no other is asked for."""
    return ThisProcess(ImageWorker(settings, runtime))


def empty_store(images: pd.DataFrame, settings: Settings, folder: Path) -> FeatureStore:
    """Return a store without finished batches."""
    keys = [b"\1" * 32] * -(-len(images) // settings.batch_size)
    dim = BACKBONES[settings.backbone].dim
    return FeatureStore(folder, keys, settings.batch_size, len(images), dim)


def reference_features(
    images: pd.DataFrame, folder: Path, network: torch.nn.Module
) -> torch.Tensor:
    """Return features ``[images, 2048]`` by the plain loop."""
    convert = v2.Compose(
        [
            v2.ToImage(),
            v2.ToDtype(torch.float32, scale=True),
            v2.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
        ]
    )
    cut = v2.Compose([v2.Resize(256), v2.TenCrop(224)])
    features = []
    with torch.no_grad():
        for path in images["path"]:
            crops = cut(Image.open(folder / path).convert("RGB"))
            features.append(network(torch.stack([convert(crop) for crop in crops])).mean(dim=0))
    return torch.stack(features)


def peak_memory(folder: Path, settings: Settings, work: Path, count: int) -> float:
    """Return what :func:`print_peak_memory` prints in a process of its own."""
    with tempfile.TemporaryDirectory(dir=work) as name:
        arguments = [str(folder), name, settings.weights, str(count)]
        command = [sys.executable, "-c", MEMORY_SCRIPT, *arguments]
        return float(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def print_peak_memory(folder: Path, work: Path, weights: str, count: int) -> None:
    """Print the peak resident memory in MiB while ``count`` images are encoded and written."""
    settings = Settings(weights, transform="squash", batch_size=10 * Settings.batch_size)
    images, runtime = images_table(folder, count), runtime_of(settings)
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak of compiling the network
    store = empty_store(images, settings, work)
    pool = one_process(settings, runtime)
    raise_problems(folder, encode_images(images, folder, settings, pool, store))
    ids = images["image_id"].to_numpy(object)
    write_features(Features(ids, store.read(), {}), work / "features.h5")
    lines = Path("/proc/self/status").read_text().splitlines()
    click.echo(next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM")))


def runtime_of(settings: Settings) -> Runtime:
    """Load the network and put it on the device."""
    return load_runtime(settings, find_weights(settings.backbone, settings.weights))


def matmul_seconds(runtime: Runtime) -> float:
    """Return the least seconds of a large square matrix product in the runtime's precision."""
    dtype = {"bf16": torch.bfloat16, "f32": torch.float32}[runtime.precision]
    matrix = torch.rand(MATMUL_SIDE, MATMUL_SIDE, device=runtime.device).to(dtype)
    return min(timed(lambda: (matrix @ matrix)[0, 0].item())[0] for _ in range(5))


def save_random_weights(folder: Path) -> str:
    """Save a seeded random ResNet-50, which is as fast as a trained one, and return its path."""
    torch.manual_seed(0)
    path = folder / "random.safetensors"
    save_file(BACKBONES["resnet50"].build(224).state_dict(), path)
    return str(path.rename(folder / f"random-{file_sha256(path)[:8]}.safetensors"))


def images_table(folder: Path, count: int) -> pd.DataFrame:
    """List ``count`` images of a folder, starting again at the first where it has fewer."""
    names = sorted(path.name for path in folder.iterdir() if path.is_file())
    paths = [names[index % len(names)] for index in range(count)]
    ids = [f"benchmark:{index:06d}" for index in range(count)]
    return pd.DataFrame({"image_id": ids, "dataset": "none", "split": "none", "path": paths})


def timed(run: Callable[[], object]) -> tuple[float, object]:
    """Return the seconds that ``run`` takes, and its result."""
    start = time.perf_counter()
    result = run()
    return time.perf_counter() - start, result


def report(
    runtime: Runtime,
    speed: Comparison,
    peak_share: float,
    memory: list[float],
    cosines: np.ndarray | None,
) -> None:
    """Print the table and the summary line."""
    ratio = speed.ours / speed.reference
    few, many = memory
    click.echo(f"{'ten-crop ResNet-50':<34}{'images/s':>10}")
    click.echo(f"{'ours, ' + runtime.device + ' ' + runtime.precision:<34}{speed.ours:>10.2f}")
    click.echo(f"{'ours, dense ten-crop':<34}{speed.dense:>10.2f}")
    click.echo(f"{'Pillow, TenCrop, eager f32':<34}{speed.reference:>10.2f}")
    click.echo(f"least cosine between their features: {speed.least_cosine:.6f}")
    if cosines is not None:
        click.echo(
            f"cosine of dense ten-crop to ten-crop, EfficientNet-Lite0, {len(cosines)} photos: "
            f"mean {cosines.mean():.4f}, least {cosines.min():.4f}"
        )
    click.echo(
        f"extraction ratio={ratio:.2f} dense={speed.dense / speed.ours:.2f} "
        f"peak_share={peak_share:.2f} memory_200={few:.0f} memory_1000={many:.0f}"
    )


if __name__ == "__main__":
    main()
