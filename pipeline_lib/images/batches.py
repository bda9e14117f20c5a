"""Batches of images: decoded in threads, and their features kept until all are done."""

import hashlib
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pipeline_lib.compute.forks import cores
from pipeline_lib.images.decoding import ImageError, is_of_machine

_DIGEST_BYTES = 32


@dataclass(frozen=True)
class LoadedBatch:
    """Crops of one batch.

    Attributes:
        count: Number of images.
        pixels: ``uint8 [batch_size, crops, crop, crop, 3]``, zero after the last image.
        problems: One sentence for each image that could not be used.
    """

    count: int
    pixels: np.ndarray
    problems: list[str]


def load_batch(
    paths: Sequence[Path], shape: tuple[int, ...], read: Callable[[Path], np.ndarray]
) -> LoadedBatch:
    """Read the images of one batch, on all cores.

    Args:
        paths: Image files, at most as many as a batch has.
        shape: ``(batch_size, crops, crop, crop, 3)``.
        read: A file to its crops; raises :class:`ImageError` for a file that cannot be used.
    """
    pixels = np.zeros(shape, np.uint8)
    with ThreadPoolExecutor(cores()) as pool:
        found = pool.map(lambda i: _fill(pixels[i], read, paths[i]), range(len(paths)))
        return LoadedBatch(len(paths), pixels, [problem for problem in found if problem])


class FeatureStore:
    """Features of the finished batches on disk, readable after ``kill -9`` at any moment.

    Each batch has a key, the SHA-256 of everything its features depend on, and is finished when
    its key is on disk beside the SHA-256 of its features. A batch whose images or settings have
    changed has another key, and is computed again, as one whose features are damaged; the others
    stay.

    Args:
        folder: Where the work lies, from this run or an earlier one.
        keys: Key of each batch, 32 bytes.
        batch_size: Images of a batch.
        count: Number of images.
        dim: Length of a feature vector.
    """

    def __init__(self, folder: Path, keys: list[bytes], batch_size: int, count: int, dim: int):
        self._keys, self._count, self._dim = keys, count, dim
        self._bytes = batch_size * dim * 4
        self._vectors_path = folder / "vectors.f32"
        self._vectors = _open(self._vectors_path, count * dim * 4)
        self._finished = _open(folder / "finished.sha256", len(keys) * 2 * _DIGEST_BYTES)

    def is_finished(self, index: int) -> bool:
        """Return whether the features of a batch are there, as they were computed."""
        stored = os.pread(self._finished, 2 * _DIGEST_BYTES, index * 2 * _DIGEST_BYTES)
        if stored[:_DIGEST_BYTES] != self._keys[index]:
            return False
        features = os.pread(self._vectors, self._bytes, index * self._bytes)
        return hashlib.sha256(features).digest() == stored[_DIGEST_BYTES:]

    def write(self, index: int, result: bytes, sha256: bytes) -> None:
        """Store the features of a batch, ``float32 [images, dim]`` in little endian.

        ``dim`` counts all vectors of an image, one beside the other.
        """
        try:
            _write(self._vectors, result, index * self._bytes)
            # Only after the vectors are on disk may the key say so.
            _write(self._finished, self._keys[index] + sha256, index * 2 * _DIGEST_BYTES)
        except OSError as error:
            error.filename = str(self._vectors_path)  # of a descriptor the system names none
            raise

    def read(self) -> "StoredVectors":
        """Return the features of all images, which a slice reads from disk."""
        return StoredVectors(self._vectors, (self._count, self._dim))

    def __enter__(self) -> "FeatureStore":
        return self

    def __exit__(self, *_: object) -> None:
        """Close the files; they stay for the next run."""
        os.close(self._vectors)
        os.close(self._finished)


@dataclass(frozen=True)
class StoredVectors:
    """A matrix on disk, ``float32 [images, dim]``, of which a slice of rows is read each time."""

    descriptor: int
    shape: tuple[int, int]
    ndim: int = 2

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice) -> np.ndarray:
        start, stop, _ = rows.indices(len(self))
        row_bytes = self.shape[1] * 4
        data = os.pread(self.descriptor, (stop - start) * row_bytes, start * row_bytes)
        return np.frombuffer(data, "<f4").reshape(-1, self.shape[1])


def _fill(pixels: np.ndarray, read: Callable[[Path], np.ndarray], path: Path) -> str | None:
    """Read one image into its place; return what is wrong with it, or nothing."""
    try:
        pixels[...] = read(path)
    except ImageError as error:
        cause = error.__cause__
        if is_of_machine(cause):
            if isinstance(cause, OSError) and cause.filename is None:  # a failed read names none
                cause.filename = str(path)
            raise cause from error
        return f"{path}: {error}"
    return None


def _open(path: Path, size: int) -> int:
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT)
    os.ftruncate(descriptor, size)
    return descriptor


def _write(descriptor: int, data: bytes, offset: int) -> None:
    left = memoryview(data)
    while left:  # on a disk that fills up a part is written before the error comes
        written = os.pwrite(descriptor, left, offset)
        left, offset = left[written:], offset + written
    os.fsync(descriptor)
