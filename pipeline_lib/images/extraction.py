"""Features of all images of a table, in one pass that can be killed and resumed at any moment."""

import hashlib
import json
import os
from collections.abc import Iterator
from functools import partial
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from pipeline_lib.compute.device import cpu_kernels
from pipeline_lib.compute.forks import cores
from pipeline_lib.contract.features import Features, write_features
from pipeline_lib.contract.problems import named, raise_problems
from pipeline_lib.contract.tables import check_images
from pipeline_lib.images.backbones import BACKBONES, LAST
from pipeline_lib.images.batches import FeatureStore, LoadedBatch, load_batch
from pipeline_lib.images.decoding import decode
from pipeline_lib.images.networks import ExtractorSettings, feature_dim
from pipeline_lib.images.runtimes import RUNTIMES, Runtime, load_runtime
from pipeline_lib.images.transforms import TRANSFORMS, Transform, crop_problems
from pipeline_lib.images.weights import WeightsFile, find_weights
from pipeline_lib.running.fingerprints import ROOT, fingerprints
from pipeline_lib.scheduling.cluster import open_pool
from pipeline_lib.scheduling.shards import Pool, Shard, UnusableError, in_shards, run_shards

_COMPUTING_PACKAGES = ("pillow", "torch", "torchvision", "openvino")


def extract(
    images: pd.DataFrame, folder: Path, settings: ExtractorSettings, output: Path, resume: Path
) -> None:
    """Write the features of all images, in the order of the table.

    The network sees every image in the same batch at the same place whether or not the run was
    interrupted, and a last batch is filled up with black images, so that the bytes are the same.
    At most three batches of images are in memory.

    Args:
        images: Table of schema :data:`~pipeline_lib.contract.tables.IMAGES`.
        folder: What the table's paths are relative to.
        settings: See :class:`ExtractorSettings`.
        output: Features file to publish, of :func:`~pipeline_lib.contract.features.write_features`.
        resume: Folder of work, from this run or an earlier one, of this table or another. Batches
            found there are kept if their images, the settings and the code are the same.

    Raises:
        ContractError: Before any work: every missing file and wrong setting. At the end, with
            nothing published and the work kept: every image that could not be used; that images
            have changed meanwhile.
    """
    folder = Path(folder)
    raise_problems(output, _problems_before_work(images, folder, settings))
    weights = find_weights(settings.backbone, settings.weights)
    dim = feature_dim(settings.backbone, settings.layers)
    stored = dim * TRANSFORMS[settings.transform].vectors
    with open_pool(partial(ImageWorker.load, settings, folder, weights)) as pool:
        attributes = _attributes(settings, weights, dim, pool.description["precision"])
        made_by = [attributes, pool.description]
        keys = _batch_keys(images, folder, settings.batch_size, made_by)
        with FeatureStore(Path(resume), keys, settings.batch_size, len(images), stored) as store:
            raise_problems(output, encode_images(images, folder, settings, pool, store))
            # DVC records the photos as they are at the end.
            at_end = _batch_keys(images, folder, settings.batch_size, made_by)
            raise_problems(output, _changed(folder, keys, at_end))
            ids = images["image_id"].to_numpy(object)
            write_features(Features(ids, store.read(), attributes), output)


def _problems_before_work(
    images: pd.DataFrame, folder: Path, settings: ExtractorSettings
) -> Iterator[str]:
    yield from _unknown_names(settings)
    yield from crop_problems(settings)
    yield from check_images(images)
    missing = [*_missing_folder(folder)]
    yield from missing
    paths = [] if missing else images["path"]
    yield from named([each for path in paths if (each := _lost(folder / path))])


def _missing_folder(folder: Path) -> Iterator[str]:
    if not folder.is_dir():
        yield f"{folder}: expected the folder of images, which is not there"


def _lost(photo: Path) -> str:
    """Return why a photo cannot be opened; nothing if it can."""
    if not photo.is_file():
        return f"{photo}: no such file"
    return (
        "" if os.access(photo, os.R_OK, effective_ids=True) else f"{photo}: no permission to read"
    )


def _unknown_names(settings: ExtractorSettings) -> Iterator[str]:
    precisions = {precision for _, precision in RUNTIMES}
    for key, legal in (
        ("backbone", BACKBONES),
        ("transform", TRANSFORMS),
        ("precision", sorted(precisions)),
    ):
        if getattr(settings, key) not in legal:
            yield f"{key}: expected {', '.join(legal)}, found {getattr(settings, key)!r}"


class ImageWorker:
    """What turns images into features: a worker of :func:`~shards.run_shards`, holding the network.

    Args:
        settings: See :class:`ExtractorSettings`.
        runtime: The network, for batches of the settings.
    """

    def __init__(self, settings: ExtractorSettings, runtime: Runtime) -> None:
        self._settings, self._runtime = settings, runtime
        self._transform = TRANSFORMS[settings.transform]
        side = self._transform.side(settings.resize, settings.crop)
        self._shape = (settings.batch_size, self._transform.crops, side, side, 3)
        self.description = {
            "device": runtime.device,
            "precision": runtime.precision,
            "computation": _computation(runtime),
        }

    @classmethod
    def load(cls, settings: ExtractorSettings, folder: Path, weights: WeightsFile) -> "ImageWorker":
        """Load the network.

        Raises:
            ContractError: This machine has no such folder of images.
        """
        raise_problems(settings.backbone, _missing_folder(folder))
        return cls(settings, load_runtime(settings, weights))

    def read(self, shard: Shard) -> LoadedBatch:
        """Read the images of one batch."""
        return load_batch(shard.items, self._shape, self._read)

    def _read(self, path: Path) -> np.ndarray:
        return self._transform.apply(decode(path), self._settings.resize, self._settings.crop)

    def compute(self, read: LoadedBatch) -> bytes:
        """Return the features of one batch, ``float32 [images, dim]`` in little endian."""
        if read.problems:  # all of it is computed once the files are mended
            raise UnusableError(read.problems)
        vectors = encode_crops(self._runtime, read.pixels, self._transform)[: read.count]
        return vectors.astype("<f4", copy=False).tobytes()


def encode_images(
    images: pd.DataFrame,
    folder: Path,
    settings: ExtractorSettings,
    pool: Pool,
    store: FeatureStore,
) -> list[str]:
    """Encode the batches that ``store`` lacks, showing progress.

    Returns:
        One sentence for each image that cannot be used; its whole batch stays unfinished.
    """
    shards = in_shards([folder / path for path in images["path"]], settings.batch_size)
    device, precision = pool.description["device"], pool.description["precision"]
    label = f"{settings.backbone} on {device} in {precision}"
    return run_shards(shards, pool, store, unit="images", label=label)


def encode_crops(runtime: Runtime, pixels: np.ndarray, transform: Transform) -> np.ndarray:
    """Encode ``[images, crops, side, side, 3]`` to one row per image.

    It is the mean over crops in float32, or their vectors side by side.
    """
    images, crops = pixels.shape[:2]
    vectors = runtime.encode(pixels.reshape(images * crops, *pixels.shape[2:]))
    if transform.apart:
        return vectors.reshape(images, -1)
    return vectors.reshape(images, crops, -1).mean(axis=1)


def _attributes(
    settings: ExtractorSettings, weights: WeightsFile, dim: int, precision: str
) -> dict[str, object]:
    backbone, transform = BACKBONES[settings.backbone], TRANSFORMS[settings.transform]
    return {
        "backbone": settings.backbone,
        "layer": backbone.layer if settings.layers == LAST else f"stages, {backbone.layer}",
        "dim": dim,
        "weights": weights.name,
        "weights_sha256": weights.sha256,
        "transform": settings.transform,
        "crops": transform.crops,
        "vectors": transform.vectors,
        "resize": transform.resized(settings.resize, settings.crop),
        "crop": settings.crop,
        "mean": backbone.mean,
        "std": backbone.std,
        "precision": precision,
        "relu": settings.layers == LAST,
        "normalized": False,
    }


def _batch_keys(
    images: pd.DataFrame, folder: Path, batch_size: int, common: list[object]
) -> list[bytes]:
    """Return for each batch the SHA-256 of all that its features depend on."""
    keys = []
    for first in range(0, len(images), batch_size):
        rows = images[first : first + batch_size]
        stats = [(path, *_size_and_time(folder / path)) for path in rows["path"]]
        parts = [*common, batch_size, stats]
        keys.append(hashlib.sha256(json.dumps(parts).encode()).digest())
    return keys


def _size_and_time(photo: Path) -> tuple[int, int]:
    """Return the size of a photo in bytes and its time in ns; zeros if it is gone meanwhile."""
    try:
        stat = photo.stat()
    except FileNotFoundError:
        return 0, 0
    return stat.st_size, stat.st_mtime_ns


def _changed(folder: Path, at_start: list[bytes], at_end: list[bytes]) -> Iterator[str]:
    batches = sum(one != other for one, other in zip(at_start, at_end, strict=True))
    if batches:
        yield (
            f"{folder}: photos of {batches} of {len(at_end)} batches have changed since the start. "
            "Run again: only these batches are read anew"
        )


def _computation(runtime: Runtime) -> list[object]:
    """Return what else decides a feature's last bits: code, libraries, threads, the CPU."""
    code = fingerprints([Path(__file__).resolve()], ROOT)
    libraries = [version(package) for package in _COMPUTING_PACKAGES]
    if runtime.precision == "f64":
        return [code, libraries]
    kernels = cpu_kernels() if runtime.device == "cpu" else []
    return [code, libraries, torch.get_num_threads(), cores(), kernels]
