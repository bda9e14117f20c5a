"""Vectors in HDF5: contiguous and uncompressed, with a version, attributes and a digest."""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import h5py
import numpy as np

from pipeline_lib.contract.digests import NO_DIGEST, REMEDY, reading_sealed, seal
from pipeline_lib.contract.problems import ContractError, raise_problems
from pipeline_lib.running.publishing import file_sha256, publish

FRONT = "all.h5"
"""File of a folder of shards that shows their rows one after the other, and holds none."""

_OWN = ("version", "sha256", "shards")
"""Attributes of the form; the others are of the content."""


def shard_name(first_row: int) -> str:
    """Return the name of the shard that begins with a row: in the order of the rows."""
    return f"{first_row:012d}.h5"


def write_front(path: Path, version: int, attributes: Mapping[str, object]) -> None:
    """Write the front of the shards that lie beside it: virtual data sets, no copy.

    It holds the SHA-256 of each shard, and no time: equal shards have equal fronts.
    """
    shards = sorted(path.parent.glob("*.h5"))
    with writing_hdf5(path, version, attributes) as file:
        file.attrs["shards"] = json.dumps({each.name: file_sha256(each) for each in shards})
        with h5py.File(shards[0]) as first:
            names = {name: (each.shape[1:], each.dtype) for name, each in first.items()}
        lengths = [_rows(each) for each in shards]
        for name, (shape, kind) in sorted(names.items()):
            layout = h5py.VirtualLayout((sum(lengths), *shape), kind)
            layout.dcpl.set_obj_track_times(False)
            start = 0
            for shard, rows in zip(shards, lengths, strict=True):
                source = h5py.VirtualSource(shard.name, name, (rows, *shape), kind)
                layout[start : start + rows] = source
                start += rows
            file.create_virtual_dataset(name, layout)


def _rows(shard: Path) -> int:
    with h5py.File(shard) as file:
        [rows] = {len(dataset) for dataset in file.values()}
    return rows


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
    with reading_sealed(path, "vectors in HDF5"), h5py.File(path, "r") as file:
        found = file.attrs.get("version")
        if found != version:
            raise ContractError(
                f"{path}: expected vectors of version {version}, found {found}. Make them again: "
                "dvc repro --force on the stage that wrote the file."
            )
        raise_problems(path.parent, _damaged_shards(path, file))
        yield file, {key: json.loads(v) for key, v in file.attrs.items() if key not in _OWN}


def _damaged_shards(front: Path, file: h5py.File) -> Iterator[str]:
    """Yield what is wrong with the shards of a front: HDF5 takes one that is lost for zeros."""
    for name, sha256 in json.loads(file.attrs.get("shards", "{}")).items():
        shard = front.parent / name
        if not shard.is_file():
            yield f"{name}: not found. {REMEDY}"
        elif file_sha256(shard) != sha256:
            yield f"{name}: other bytes than {front.name} says: damaged, or edited. {REMEDY}"


def numbers_of(dataset: h5py.Dataset) -> np.ndarray:
    """Return a matrix of float32, which must really stand in the file.

    A file of a few bytes may claim any shape; HDF5 would fill all of it in.
    """
    stored = _stored(dataset)
    if dataset.dtype != np.float32 or dataset.nbytes > stored:
        raise ContractError(
            f"{dataset.file.filename}: {dataset.name}: expected float32, uncompressed; found "
            f"{dataset.dtype} {dataset.shape} in {stored} bytes. Make the file again: dvc repro"
        )
    return dataset[:]


def text_of(dataset: h5py.Dataset) -> np.ndarray:
    """Return a column of text as strings, which must really stand in the file."""
    if dataset.nbytes > _stored(dataset) or not all(map(_holds_its_texts, _parts(dataset))):
        raise ContractError(
            f"{dataset.file.filename}: {dataset.name}: expected {dataset.shape} texts, found less. "
            "Make the file again: dvc repro"
        )
    return dataset.asstr()[:]


def _holds_its_texts(dataset: h5py.Dataset) -> bool:
    """Return whether the texts are no longer together than the file, by what each says of itself.

    HDF5 makes room for a text before it looks whether there is one. Where a text should be there
    are 16 bytes: its length in four of them, then the place of its heap.
    """
    start = dataset.id.get_offset()
    if start is None:  # nothing is stored
        return dataset.size == 0
    with open(dataset.file.filename, "rb") as file:
        file.seek(start)
        entries = np.frombuffer(file.read(16 * dataset.size), "<u4")
        return entries[::4].sum(dtype=np.uint64) <= file.seek(0, os.SEEK_END)


def _stored(dataset: h5py.Dataset) -> int:
    """Return how many bytes stand in the file, or in the files that a virtual data set shows."""
    return sum(part.id.get_storage_size() for part in _parts(dataset))


def _parts(dataset: h5py.Dataset) -> Iterator[h5py.Dataset]:
    """Yield a data set, or those that a virtual one shows, each while its file is open."""
    if not dataset.is_virtual:
        yield dataset
        return
    folder = Path(dataset.file.filename).parent
    for source in dataset.virtual_sources():
        with h5py.File(folder / source.file_name) as file:
            yield file[source.dset_name]
