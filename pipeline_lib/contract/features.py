"""Image features in HDF5: contiguous, uncompressed, un-normalised, with their ids."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import h5py
import numpy as np
import pandas as pd

from pipeline_lib.contract.hdf5 import numbers_of, reading_hdf5, text_of, writing_hdf5
from pipeline_lib.contract.problems import duplicate_rows, faulty, raise_problems

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
    with writing_hdf5(path, FEATURES_VERSION, features.attributes) as file:
        file.create_dataset("features", data=features.vectors.astype(np.float32, copy=False))
        file.create_dataset("image_id", data=features.image_ids, dtype=h5py.string_dtype())


def read_features(path: Path) -> Features:
    """Read and check a features file, whole, into memory."""
    with reading_hdf5(path, FEATURES_VERSION) as (file, attributes):
        features = Features(
            image_ids=text_of(file["image_id"]).astype(object),
            vectors=numbers_of(file["features"]),
            attributes=attributes,
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
