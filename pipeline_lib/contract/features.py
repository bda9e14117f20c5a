"""Image features in HDF5: contiguous, uncompressed, un-normalised, with their ids."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import h5py
import numpy as np
import pandas as pd

from pipeline_lib.contract.problems import (
    ContractError,
    duplicate_rows,
    faulty,
    raise_problems,
)
from pipeline_lib.publishing import publish

FEATURES_VERSION = 1


@dataclass(frozen=True)
class Features:
    """Image features, un-normalised.

    Attributes:
        image_ids: Ids of the images ``[images]``.
        vectors: One row per image, ``float32 [images, dim]``.
        attributes: What made them: backbone, layer, crops, transform, weights and their sha256.
    """

    image_ids: np.ndarray
    vectors: np.ndarray
    attributes: dict[str, object]


def write_features(features: Features, path: Path) -> None:
    """Check features and publish them as contiguous, uncompressed HDF5."""
    raise_problems(path, check_features(features))
    with publish(path) as temporary, h5py.File(temporary, "w") as file:
        file.create_dataset("features", data=features.vectors.astype(np.float32, copy=False))
        file.create_dataset("image_id", data=features.image_ids, dtype=h5py.string_dtype())
        file.attrs["version"] = FEATURES_VERSION
        for key, value in sorted(features.attributes.items()):
            file.attrs[key] = json.dumps(value, sort_keys=True)


def read_features(path: Path) -> Features:
    """Read and check a features file, whole, into memory."""
    with h5py.File(path, "r") as file:
        version = file.attrs.get("version")
        if version != FEATURES_VERSION:
            raise ContractError(
                f"{path}: expected features of version {FEATURES_VERSION}, found {version}. "
                "Extract them again: dvc repro --force on the stage that wrote the file."
            )
        features = Features(
            image_ids=file["image_id"].asstr()[:].astype(object),
            vectors=file["features"][:],
            attributes={k: json.loads(v) for k, v in file.attrs.items() if k != "version"},
        )
    raise_problems(path, check_features(features))
    return features


def empty_features() -> Features:
    """Return features of no image: what ``more_features: none`` adds."""
    return Features(np.empty(0, object), np.empty((0, 0), np.float32), {})


def check_features(features: Features) -> Iterator[str]:
    """Yield every way in which features break the contract."""
    ids, vectors = features.image_ids, features.vectors
    if vectors.ndim != 2 or len(ids) != len(vectors):
        yield f"expected one row per image id; found {len(ids)} ids, vectors of {vectors.shape}"
        return
    yield from duplicate_rows(pd.DataFrame({"image_id": ids}), ["image_id"])
    rows = pd.DataFrame({"image_id": ids})
    yield from faulty(rows[~np.isfinite(vectors).all(axis=1)], "image_id", "have NaN or infinity")
    yield from faulty(rows[~vectors.any(axis=1)], "image_id", "are all zero")
