"""Vectors of trained models for the images and captions that they are evaluated on, in HDF5."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import h5py
import numpy as np

from pipeline_lib.contract.problems import raise_problems
from pipeline_lib.publishing import publish


@dataclass(frozen=True)
class Embeddings:
    """Vectors of one trained model (one seed) for the images and captions of a data set."""

    image_ids: np.ndarray
    images: np.ndarray
    caption_ids: np.ndarray
    captions: np.ndarray


def write_embeddings(by_seed: dict[int, Embeddings], path: Path) -> None:
    """Publish the embeddings of one recipe, one group per seed."""
    with publish(path) as temporary, h5py.File(temporary, "w") as file:
        for seed, item in sorted(by_seed.items()):
            group = file.create_group(f"seed-{seed}")
            for kind, ids, vectors in (
                ("images", item.image_ids, item.images),
                ("captions", item.caption_ids, item.captions),
            ):
                raise_problems(f"{path} {kind}", _check_vectors(ids, vectors))
                group.create_dataset(
                    f"{kind}/id", data=[item.encode() for item in ids], dtype=h5py.string_dtype()
                )
                group.create_dataset(f"{kind}/vectors", data=vectors.astype(np.float32, copy=False))


def read_embeddings(path: Path) -> dict[int, Embeddings]:
    """Read the embeddings of one recipe, by seed."""

    def read(group: h5py.Group) -> tuple[np.ndarray, np.ndarray]:
        ids, vectors = group["id"].asstr()[:].astype(object), group["vectors"][:]
        raise_problems(f"{path} {group.name}", _check_vectors(ids, vectors))
        return ids, vectors

    with h5py.File(path, "r") as file:
        return {
            int(name.removeprefix("seed-")): Embeddings(
                *read(group["images"]), *read(group["captions"])
            )
            for name, group in file.items()
        }


def _check_vectors(ids: np.ndarray, vectors: np.ndarray) -> Iterator[str]:
    if vectors.ndim != 2 or len(ids) != len(vectors):
        yield f"expected one row per id; found {len(ids)} ids, vectors of shape {vectors.shape}"
    elif not np.isfinite(vectors).all():
        yield "vectors contain NaN or infinity"
