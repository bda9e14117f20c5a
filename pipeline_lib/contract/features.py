"""Image features in HDF5: contiguous, uncompressed, un-normalised, with their ids.

Features of very many images are a folder of such files, behind a virtual data set.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import h5py
import numpy as np
import pandas as pd

from pipeline_lib.contract.hdf5 import (
    FRONT,
    numbers_of,
    reading_hdf5,
    shard_name,
    text_of,
    write_front,
    writing_hdf5,
)
from pipeline_lib.contract.problems import duplicate_rows, faulty, raise_problems
from pipeline_lib.running.publishing import publish

FEATURES_VERSION = 1

SHARD_ROWS = 2**18
"""Images of one file: 1.3 GB of 1,280 numbers each."""

_BLOCK_ROWS = 2**12
"""Rows that are worked on at a time."""


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


def write_features(
    features: Features, path: Path, shard_rows: int = SHARD_ROWS, source: Path | None = None
) -> None:
    """Check features and publish them as contiguous, uncompressed HDF5.

    Of more images than ``shard_rows`` a folder is made: a file for so many images each, and
    :data:`FRONT`, which shows the rows of all as one matrix.

    Args:
        features: Whose vectors need only be sliceable; some rows at a time are read.
        path: File or folder to publish.
        shard_rows: Images of one file.
        source: The file that they come from, of which problems are then said.
    """
    raise_problems(source or path, check_features(features))
    count = len(features.image_ids)
    if count <= shard_rows:
        _write_file(path, features, 0, count)
        return
    with publish(path) as folder:
        folder.mkdir()
        for first in range(0, count, shard_rows):
            _write_file(folder / shard_name(first), features, first, first + shard_rows)
        write_front(folder / FRONT, FEATURES_VERSION, features.attributes)


def _write_file(path: Path, features: Features, first: int, last: int) -> None:
    ids = features.image_ids[first:last]
    with writing_hdf5(path, FEATURES_VERSION, features.attributes) as file:
        shape = len(ids), features.vectors.shape[1]
        dataset = file.create_dataset("features", shape, np.float32)
        for rows in _blocks(len(ids)):
            dataset[rows] = features.vectors[first + rows.start : first + rows.stop]
        file.create_dataset("image_id", data=ids, dtype=h5py.string_dtype())


def _blocks(count: int) -> Iterator[slice]:
    starts = range(0, count, _BLOCK_ROWS)
    return (slice(start, min(start + _BLOCK_ROWS, count)) for start in starts)


def read_features(path: Path) -> Features:
    """Read and check a features file, or a folder of them, whole, into memory."""
    front = path / FRONT if path.is_dir() else path
    with reading_hdf5(front, FEATURES_VERSION) as (file, attributes):
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
    if ids.ndim != 1 or vectors.ndim != 2 or len(ids) != len(vectors):
        yield f"expected one row per image id; found ids {ids.shape}, vectors {vectors.shape}"
        return
    yield from duplicate_rows(pd.DataFrame({"image_id": ids}), ["image_id"])
    rows = pd.DataFrame({"image_id": ids})
    finite, filled = np.empty(len(ids), bool), np.empty(len(ids), bool)
    first, alike = vectors[:1], True
    for block in _blocks(len(ids)):
        some = vectors[block]
        finite[block], filled[block] = np.isfinite(some).all(axis=1), some.any(axis=1)
        alike = alike and np.array_equal(some, np.broadcast_to(first, some.shape))
    yield from faulty(rows[~finite], "image_id", "have NaN or infinity")
    yield from faulty(rows[~filled], "image_id", "are all zero")
    if alike and len(ids) > 1 and filled.all():
        yield f"expected vectors that tell images apart, found {len(ids):,} equal rows"
