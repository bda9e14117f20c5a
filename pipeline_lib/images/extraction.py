"""Features of all images of a table, in one pass that can be killed and resumed at any moment."""

import hashlib
import json
import os
from collections.abc import Iterator
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Protocol

import numpy as np
import pandas as pd
import torch
from tqdm import tqdm

from pipeline_lib.contract.features import Features, write_features
from pipeline_lib.contract.problems import raise_problems
from pipeline_lib.contract.tables import check_images
from pipeline_lib.fingerprints import ROOT, fingerprints
from pipeline_lib.images.backbones import BACKBONES, load_encoder
from pipeline_lib.images.batches import FeatureStore, load_batches
from pipeline_lib.images.decoding import decode
from pipeline_lib.images.runtimes import RUNTIMES, Runtime, build_runtime
from pipeline_lib.images.transforms import SQUASHING, TRANSFORMS, Transform
from pipeline_lib.images.weights import WeightsFile, find_weights

_COMPUTING_PACKAGES = ("pillow", "torch", "torchvision", "openvino")


class ExtractorSettings(Protocol):
    """What :func:`extract` reads of an extractor's settings.

    Attributes:
        backbone: A key of :data:`BACKBONES`.
        weights: A name of torchvision's, ``package``, or the path of a state dict.
        transform: A key of :data:`TRANSFORMS`.
        resize: Shorter side in pixels after resizing; those that squash do not use it.
        crop: Height and width of a crop in pixels.
        precision: ``bf16`` or ``f32``.
        batch_size: Images per forward pass.
    """

    backbone: str
    weights: str
    transform: str
    resize: int
    crop: int
    precision: str
    batch_size: int


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
        resume: Folder of unfinished work. Batches found there are kept if their images, the
            settings and the code are the same. The caller deletes it when all is published.

    Raises:
        ContractError: Before any work: every missing file and wrong setting. At the end, with
            nothing published and the work kept: every image that could not be used.
    """
    folder = Path(folder)
    raise_problems(output, _problems_before_work(images, folder, settings))
    weights = find_weights(settings.backbone, settings.weights)
    transform = TRANSFORMS[settings.transform]
    encoder = load_encoder(settings.backbone, weights, settings.crop)
    rows = settings.batch_size * transform.crops
    runtime = build_runtime(encoder, settings.precision, rows, settings.crop)
    attributes = _attributes(settings, weights, runtime.precision)
    keys = _batch_keys(images, folder, settings.batch_size, attributes)
    dim = BACKBONES[settings.backbone].dim * transform.vectors
    store = FeatureStore(Path(resume), keys, len(images), dim)
    try:
        raise_problems(output, encode_images(images, folder, settings, runtime, store))
        ids = images["image_id"].to_numpy(object)
        write_features(Features(ids, store.read(), attributes), output)
    finally:
        store.close()


def _problems_before_work(
    images: pd.DataFrame, folder: Path, settings: ExtractorSettings
) -> Iterator[str]:
    yield from _unknown_names(settings)
    if settings.transform not in SQUASHING and settings.resize < settings.crop:
        yield f"resize: expected at least crop ({settings.crop}), found {settings.resize}"
    yield from check_images(images)
    if not folder.is_dir():
        yield f"{folder}: expected the folder of images, which is not there"
        return
    for path in images["path"]:
        if not (folder / path).is_file():
            yield f"{folder / path}: no such file"
        elif not os.access(folder / path, os.R_OK, effective_ids=True):
            yield f"{folder / path}: no permission to read"


def _unknown_names(settings: ExtractorSettings) -> Iterator[str]:
    precisions = {precision for _, precision in RUNTIMES}
    for key, legal in (
        ("backbone", BACKBONES),
        ("transform", TRANSFORMS),
        ("precision", sorted(precisions)),
    ):
        if getattr(settings, key) not in legal:
            yield f"{key}: expected {', '.join(legal)}, found {getattr(settings, key)!r}"


def encode_images(
    images: pd.DataFrame,
    folder: Path,
    settings: ExtractorSettings,
    runtime: Runtime,
    store: FeatureStore,
) -> list[str]:
    """Encode the batches that ``store`` lacks, showing progress.

    Returns:
        One sentence for each image that cannot be used; its whole batch stays unfinished.
    """
    batch_size, transform = settings.batch_size, TRANSFORMS[settings.transform]
    batches = {
        index: [folder / path for path in images["path"][first : first + batch_size]]
        for index, first in enumerate(range(0, len(images), batch_size))
        if not store.is_finished(index)
    }
    shape = (batch_size, transform.crops, settings.crop, settings.crop, 3)
    read = partial(_read, transform=transform, settings=settings)
    problems: list[str] = []
    with _progress(len(images), batches, settings.backbone, runtime) as bar:
        for batch in load_batches(batches, shape, read):
            problems += batch.problems
            count = len(batches[batch.index])
            if not batch.problems:  # else all of it is computed once the files are mended
                vectors = encode_crops(runtime, batch.pixels, transform)[:count]
                store.write(batch.index, batch.index * batch_size, vectors)
            bar.update(count)
    return problems


def _read(path: Path, transform: Transform, settings: ExtractorSettings) -> np.ndarray:
    return transform.apply(decode(path), settings.resize, settings.crop)


def encode_crops(runtime: Runtime, pixels: np.ndarray, transform: Transform) -> np.ndarray:
    """Encode ``[images, crops, crop, crop, 3]`` to one row per image.

    It is the mean over crops in float32, or their vectors side by side.
    """
    images, crops = pixels.shape[:2]
    vectors = runtime.encode(pixels.reshape(images * crops, *pixels.shape[2:]))
    if transform.apart:
        return vectors.reshape(images, -1)
    return vectors.reshape(images, crops, -1).mean(axis=1)


def _progress(count: int, batches: dict[int, list[Path]], backbone: str, runtime: Runtime) -> tqdm:
    resumed = count - sum(len(paths) for paths in batches.values())
    label = f"{backbone} on {runtime.device} in {runtime.precision}"
    if resumed:
        label += f", {resumed} done before"
    return tqdm(total=count, initial=resumed, desc=label, unit=" images")


def _attributes(
    settings: ExtractorSettings, weights: WeightsFile, precision: str
) -> dict[str, object]:
    backbone, transform = BACKBONES[settings.backbone], TRANSFORMS[settings.transform]
    return {
        "backbone": settings.backbone,
        "layer": backbone.layer,
        "dim": backbone.dim,
        "weights": weights.name,
        "weights_sha256": weights.sha256,
        "transform": settings.transform,
        "crops": transform.crops,
        "vectors": transform.vectors,
        "resize": settings.crop if settings.transform in SQUASHING else settings.resize,
        "crop": settings.crop,
        "mean": backbone.mean,
        "std": backbone.std,
        "precision": precision,
        "relu": True,
        "normalized": False,
    }


def _batch_keys(
    images: pd.DataFrame, folder: Path, batch_size: int, attributes: dict[str, object]
) -> list[bytes]:
    """Return for each batch the SHA-256 of all that its features depend on."""
    common = [attributes, batch_size, _computation()]
    keys = []
    for first in range(0, len(images), batch_size):
        rows = images[first : first + batch_size]
        files = [(path, os.stat(folder / path)) for path in rows["path"]]
        parts = [common, [(path, stat.st_size, stat.st_mtime_ns) for path, stat in files]]
        keys.append(hashlib.sha256(json.dumps(parts).encode()).digest())
    return keys


def _computation() -> list[object]:
    """Return what else decides a feature's last bits: our code, the libraries', the threads."""
    code = fingerprints([Path(__file__).resolve()], ROOT)
    libraries = [version(package) for package in _COMPUTING_PACKAGES]
    return [code, libraries, torch.get_num_threads(), len(os.sched_getaffinity(0))]
