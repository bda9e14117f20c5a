"""Vectors in HDF5: contiguous and uncompressed, with a version, attributes and a digest."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import h5py
import numpy as np

from pipeline_lib.contract.digests import NO_DIGEST, reading, seal
from pipeline_lib.contract.problems import ContractError
from pipeline_lib.publishing import publish

_OWN = ("version", "sha256")
"""Attributes of the form; the others are of the content."""


@contextmanager
def writing_hdf5(path: Path, version: int, attributes: Mapping[str, object]) -> Iterator[h5py.File]:
    """Yield an HDF5 file to fill; publish it, sealed, at the end of the block."""
    with publish(path) as temporary:
        with h5py.File(temporary, "w") as file:
            file.attrs["version"] = version
            file.attrs["sha256"] = np.bytes_(NO_DIGEST)
            for key, value in sorted(attributes.items()):
                file.attrs[key] = json.dumps(value, sort_keys=True)
            yield file
        seal(temporary)


@contextmanager
def reading_hdf5(path: Path, version: int) -> Iterator[tuple[h5py.File, dict[str, object]]]:
    """Yield a file that :func:`writing_hdf5` wrote, and its attributes.

    Raises:
        ContractError: The file is not there, damaged, something else, or of another version.
    """
    with reading(path, "vectors in HDF5"), h5py.File(path, "r") as file:
        found = file.attrs.get("version")
        if found != version:
            raise ContractError(
                f"{path}: expected vectors of version {version}, found {found}. Make them again: "
                "dvc repro --force on the stage that wrote the file."
            )
        yield file, {key: json.loads(v) for key, v in file.attrs.items() if key not in _OWN}


def numbers_of(dataset: h5py.Dataset) -> np.ndarray:
    """Return a matrix of float32, which must really stand in the file.

    A file of a few bytes may claim any shape; HDF5 would fill all of it in.
    """
    stored = dataset.id.get_storage_size()
    if dataset.dtype != np.float32 or dataset.nbytes > stored:
        raise ContractError(
            f"{dataset.file.filename}: {dataset.name}: expected float32, uncompressed; found "
            f"{dataset.dtype} {dataset.shape} in {stored} bytes. Make the file again: dvc repro"
        )
    return dataset[:]


def text_of(dataset: h5py.Dataset) -> np.ndarray:
    """Return a column of text as strings."""
    if dataset.nbytes > dataset.id.get_storage_size():
        raise ContractError(
            f"{dataset.file.filename}: {dataset.name}: expected {dataset.shape} texts, found less. "
            "Make the file again: dvc repro"
        )
    return dataset.asstr()[:]
