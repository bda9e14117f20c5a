"""Features that another program made: a user's file, whose rows are named as the photos are.

It is HDF5 of two data sets: ``features [rows, dim]``, numbers of any type, and ``image [rows]``,
the paths that the data set gives its photos (``captions.tsv``: the column ``image``). Rows may
stand in any order, and be of more photos than the data set has.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import h5py
import numpy as np
import pandas as pd

from pipeline_lib.contract.features import Features, check_features, write_features
from pipeline_lib.contract.problems import ContractError, raise_problems
from pipeline_lib.images.decoding import is_of_machine
from pipeline_lib.running.publishing import file_sha256
from pipeline_lib.settings.images import GIVEN

_FORM = "features (numbers [rows, dim]) and image (text [rows])"

_BLOCK_ROWS = 4096
"""Rows of a file in chunks that are read at a time, or nearly so many."""

_HOW = (
    "With h5py: file['features'] = an array of a row for each photo, file['image'] = a list of the "
    "photos' paths"
)


class GivenRows:
    """The rows of a file for some photos, in their order: slices are read when they are asked for.

    For a file whose rows lie one after the other; of another, see :func:`_rows_of_chunks`.

    Args:
        matrix: All rows ``[rows, dim]``.
        rows: Those of the photos, in order ``int64 [photos]``.
    """

    def __init__(self, matrix: h5py.Dataset, rows: np.ndarray) -> None:
        self._matrix, self._rows = matrix, rows
        self.shape, self.ndim = (len(rows), matrix.shape[1]), 2

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, photos: slice) -> np.ndarray:
        """Return ``float32 [photos, dim]``."""
        rows, places = np.unique(self._rows[photos], return_inverse=True)  # HDF5 reads upwards
        with np.errstate(over="ignore"):  # what float32 cannot hold is infinite, and found so
            return self._matrix[rows].astype(np.float32)[places]


def _given_rows(
    matrix: h5py.Dataset, names: np.ndarray, images: pd.DataFrame
) -> "GivenRows | np.ndarray":
    """Return the rows of the photos of a table, in its order; each has one."""
    rows = pd.Index(names).get_indexer(images["path"])
    return _rows_of_chunks(matrix, rows) if matrix.chunks else GivenRows(matrix, rows)


def _rows_of_chunks(matrix: h5py.Dataset, rows: np.ndarray) -> np.ndarray:
    """Return rows in the order asked for, ``float32 [rows, dim]``.

    A chunk is read, and decompressed, as a whole, so each of them once.
    """
    found = np.empty((len(rows), matrix.shape[1]), np.float32)
    upwards = np.argsort(rows, kind="stable")
    step = matrix.chunks[0] * max(1, _BLOCK_ROWS // matrix.chunks[0])
    for first in range(0, len(matrix), step):
        start, stop = np.searchsorted(rows, (first, first + step), sorter=upwards)
        here = upwards[start:stop]
        if len(here):
            with np.errstate(over="ignore"):
                found[here] = matrix[first : first + step][rows[here] - first]
    return found


def take_features(images: pd.DataFrame, given: Path, output: Path) -> None:
    """Publish what a file has of the photos of a table.

    Args:
        images: Table of schema :data:`~pipeline_lib.contract.tables.IMAGES`.
        given: The user's file.
        output: Features file, of :func:`~pipeline_lib.contract.features.write_features`.

    Raises:
        ContractError: The file is none, or has no row for some of the photos, or one that no model
            could learn from.
    """
    with open_given(given) as (names, matrix):
        raise_problems(given, _photos_without_row(names, images))
        attributes = {
            "backbone": GIVEN,
            "dim": matrix.shape[1],
            "vectors": 1,
            "given_sha256": file_sha256(given),
        }
        ids = images["image_id"].to_numpy(object)
        rows = _given_rows(matrix, names, images)
        write_features(Features(ids, rows, attributes), output, source=given)


def given_dim(given: Path) -> int:
    """Return the size of the features of a file.

    Raises:
        ContractError: It is no such file.
    """
    with _hdf5(given) as file:
        raise_problems(given, _form_problems(file))
        return file["features"].shape[1]


def given_problems(given: Path, images: pd.DataFrame | None) -> Iterator[str]:
    """Yield why a file cannot give features to the photos of a table, but for its numbers.

    Args:
        given: The user's file.
        images: ``path`` of each photo; None if the photos are unknown.
    """
    try:
        with _hdf5(given) as file:
            found = [*_form_problems(file)]
            if not found:
                names = _names(file)
                found += _repeated_photos(names)
                found += _photos_without_row(names, images) if images is not None else ()
    except ContractError as error:
        yield str(error)
        return
    yield from (f"{given}: {problem}" for problem in found)


def number_problems(given: Path, images: pd.DataFrame) -> Iterator[str]:
    """Yield which photos have a row that no model could learn from.

    Of a file for which :func:`given_problems` has nothing to say.
    """
    with open_given(given) as (names, matrix):
        rows = _given_rows(matrix, names, images)
        found = [*check_features(Features(images["path"], rows, {}))]
    yield from (f"{given}: {problem}" for problem in found)


@contextmanager
def open_given(given: Path) -> Iterator[tuple[np.ndarray, h5py.Dataset]]:
    """Yield the names of a file's rows ``[rows]``, and its features ``[rows, dim]``.

    Raises:
        ContractError: It is no such file.
    """
    with _hdf5(given) as file:
        raise_problems(given, _form_problems(file))
        names = _names(file)
        raise_problems(given, _repeated_photos(names))
        yield names, file["features"]


@contextmanager
def _hdf5(given: Path) -> Iterator[h5py.File]:
    try:
        with _opened(given) as file:
            yield file
    except OSError as error:
        if is_of_machine(error):
            raise
        raise ContractError(
            f"{given}: expected HDF5 of {_FORM}, found another file, or a damaged one. {_HOW}"
        ) from error


def _opened(given: Path) -> h5py.File:
    try:
        return h5py.File(given, "r")
    except BlockingIOError as error:  # HDF5 locks what it writes
        raise ContractError(
            f"{given}: another program has it open to write. Close it there (of a notebook: "
            "file.close()), and try again"
        ) from error
    except OSError as error:
        error.filename = str(given)  # h5py names it in its words alone
        raise


def _names(file: h5py.File) -> np.ndarray:
    # Of names that were written as bytes h5py calls the character set ASCII.
    return file["image"].asstr("utf-8", errors="replace")[:]


def _form_problems(file: h5py.File) -> Iterator[str]:
    """Yield which of its two data sets a file has not, or in another form."""
    if not all(isinstance(file.get(name), h5py.Dataset) for name in ("features", "image")):
        yield f"expected {_FORM}, found {', '.join(file) or 'nothing'}. {_HOW}"
        return
    features, image = file["features"], file["image"]
    if features.ndim != 2 or features.dtype.kind not in "fiu" or not features.size:
        yield f"features: expected numbers [rows, dim], found {features.dtype} {features.shape}"
    if image.ndim != 1 or h5py.check_string_dtype(image.dtype) is None:
        yield f"image: expected text [rows], found {image.dtype} {image.shape}"
    elif len(image) > Path(file.filename).stat().st_size:
        yield f"image: expected {len(image):,} names, the file has not so many bytes"
    elif features.shape[:1] != image.shape:
        rows = features.shape[0] if features.ndim else 0
        yield f"image: expected a name for each of the {rows:,} rows, found {len(image):,}"


def _repeated_photos(names: np.ndarray) -> Iterator[str]:
    """Yield which rows are of the same photo."""
    rows = pd.Series(names)
    again = rows[rows.duplicated()]
    if len(again):
        first = rows[rows == again.iloc[0]].index[0]
        yield (
            f"image: expected each photo once, found {again.iloc[0]!r} in the rows {first + 1} and "
            f"{again.index[0] + 1}" + (f", and {len(again) - 1:,} more" if len(again) > 1 else "")
        )


def _photos_without_row(names: np.ndarray, images: pd.DataFrame) -> Iterator[str]:
    """Yield how many photos of a table have no row."""
    absent = images["path"][~images["path"].isin(names)]
    if len(absent):
        yield (
            f"image: expected the path of each photo, {len(absent):,} of {len(images):,} have no "
            f"row (first: {absent.iloc[0]!r}). The {len(names):,} rows are named like {names[0]!r}"
        )
