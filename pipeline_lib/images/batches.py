"""Batches of images: decoded ahead of the network, and their features kept until all are done."""

import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pipeline_lib.images.decoding import ImageError

AHEAD = 1
"""Batches that are decoded while the network works on one.

Memory holds ``AHEAD + 2``: for a moment the one before is still there.
"""

_KEY_BYTES = 32


@dataclass(frozen=True)
class LoadedBatch:
    """Crops of one batch.

    Attributes:
        index: Place of the batch among all batches.
        pixels: ``uint8 [batch_size, crops, crop, crop, 3]``, zero after the last image.
        problems: One sentence for each image that could not be used.
    """

    index: int
    pixels: np.ndarray
    problems: list[str]


def load_batches(
    batches: dict[int, list[Path]],
    shape: tuple[int, ...],
    read: Callable[[Path], np.ndarray],
) -> Iterator[LoadedBatch]:
    """Yield batches in order, reading their images in threads while the caller works.

    Args:
        batches: Image files by index of the batch.
        shape: ``(batch_size, crops, crop, crop, 3)``.
        read: A file to its crops; raises :class:`ImageError` for a file that cannot be used.
    """
    pool = ThreadPoolExecutor(len(os.sched_getaffinity(0)))
    pending: deque[tuple[int, np.ndarray, list[Future]]] = deque()
    try:
        for index, paths in batches.items():
            pixels = np.zeros(shape, np.uint8)
            tasks = [pool.submit(_fill, pixels[i], read, path) for i, path in enumerate(paths)]
            pending.append((index, pixels, tasks))
            del pixels, tasks  # else a third batch stays alive while the caller works
            if len(pending) > AHEAD:
                yield _finished(*pending.popleft())
        while pending:
            yield _finished(*pending.popleft())
    finally:
        pool.shutdown(cancel_futures=True)


class FeatureStore:
    """Features of the finished batches on disk, readable after ``kill -9`` at any moment.

    Each batch has a key, the SHA-256 of everything its features depend on, and is finished when
    its key is on disk. A batch whose images or settings have changed has another key, and is
    computed again; the others stay.

    Args:
        folder: Where the work lies, from this run or an earlier one.
        keys: Key of each batch, 32 bytes.
        count: Number of images.
        dim: Length of a feature vector.
    """

    def __init__(self, folder: Path, keys: list[bytes], count: int, dim: int):
        self._keys = keys
        self._shape = (count, dim)
        self._vectors_path = folder / "vectors.f32"
        self._vectors = _open(self._vectors_path, count * dim * 4)
        self._finished = _open(folder / "finished.sha256", len(keys) * _KEY_BYTES)

    def is_finished(self, index: int) -> bool:
        """Return whether the features of a batch are there."""
        stored = os.pread(self._finished, _KEY_BYTES, index * _KEY_BYTES)
        return stored == self._keys[index]

    def write(self, index: int, first: int, vectors: np.ndarray) -> None:
        """Store the features ``[images, dim]`` of a batch whose first image is row ``first``."""
        _write(self._vectors, np.ascontiguousarray(vectors, "<f4"), first * self._shape[1] * 4)
        # Only after the vectors are on disk may the key say so.
        _write(self._finished, self._keys[index], index * _KEY_BYTES)

    def read(self) -> np.ndarray:
        """Return the features of all images, ``float32 [images, dim]``, without loading them."""
        if not self._shape[0]:  # an empty file cannot be mapped
            return np.empty(self._shape, np.float32)
        return np.memmap(self._vectors_path, "<f4", "r", shape=self._shape)

    def close(self) -> None:
        """Close the files; they stay for the next run."""
        os.close(self._vectors)
        os.close(self._finished)


def _fill(pixels: np.ndarray, read: Callable[[Path], np.ndarray], path: Path) -> str | None:
    """Read one image into its place; return what is wrong with it, or nothing."""
    try:
        pixels[...] = read(path)
    except ImageError as error:
        return f"{path}: {error}"
    return None


def _finished(index: int, pixels: np.ndarray, tasks: list[Future]) -> LoadedBatch:
    problems = [problem for task in tasks if (problem := task.result())]
    return LoadedBatch(index, pixels, problems)


def _open(path: Path, size: int) -> int:
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT)
    os.ftruncate(descriptor, size)
    return descriptor


def _write(descriptor: int, data: bytes | np.ndarray, offset: int) -> None:
    left = memoryview(data).cast("B")
    while left:  # on a disk that fills up a part is written before the error comes
        written = os.pwrite(descriptor, left, offset)
        left, offset = left[written:], offset + written
    os.fsync(descriptor)
