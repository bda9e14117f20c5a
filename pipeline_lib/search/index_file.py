"""The file of an index: rows of photos, of one folder and one model."""

import os
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from pipeline_lib.contract.problems import ContractError
from pipeline_lib.running.publishing import publish
from pipeline_lib.search.names import printable

_FOLDER = b"folder"
"""Key of the folder that an index is of."""


class Row(NamedTuple):
    """What an index knows of a photo.

    Attributes:
        size: In bytes.
        mtime_ns: When it was written.
        sha256: Of its content; empty if it could not be read, which says nothing of its content.
        problem: What is wrong with it, or nothing.
        vector: ``float32 [dim]``; None if there is a problem.
    """

    size: int
    mtime_ns: int
    sha256: str
    problem: str
    vector: np.ndarray | None


Rows = dict[str, Row]
"""By path, relative to the folder."""


def index_schema(dim: int, digest: str, folder: Path) -> pa.Schema:
    """Return the schema of an index of vectors ``[dim]`` by the model of a digest."""
    columns = {
        "path": pa.binary(),  # a name need not be UTF-8
        "size": pa.int64(),
        "mtime_ns": pa.int64(),
        "sha256": pa.string(),
        "problem": pa.string(),
        "vector": pa.list_(pa.float32(), dim),
    }
    return pa.schema(columns, {"model": digest, _FOLDER: os.fsencode(folder)})


def read_rows(file: Path, schema: pa.Schema) -> Rows:
    """Return the rows of an index; none if it is of another model, damaged, or not there.

    Of a folder that was moved, they are known by their content alone.

    Raises:
        ContractError: If the file is no index of this folder, but something else, which nobody
            wants replaced.
    """
    table = _table(file, schema.names)
    if table is None:
        return {}
    found = table.schema.metadata or {}
    moved = _check_folder(file, found.get(_FOLDER, b""), schema.metadata[_FOLDER])
    if not table.schema.equals(schema) or {**found, _FOLDER: schema.metadata[_FOLDER]} != (
        schema.metadata
    ):
        return {}
    present = table["vector"].is_valid().to_numpy()
    dim = schema.field("vector").type.list_size
    vectors = np.full((len(table), dim), np.nan, np.float32)
    flat = table["vector"].drop_null().combine_chunks()
    if present.any():
        vectors[present] = flat.flatten().to_numpy().reshape(-1, dim)
    if not _is_complete(table, vectors):
        return {}
    columns = [table[name].to_pylist() for name in ("size", "mtime_ns", "sha256", "problem")]
    if moved:  # of the same path, size and time, a photo may be another one
        columns[0] = [-1] * len(table)
    paths = map(os.fsdecode, table["path"].to_pylist())
    filled = (vector if there else None for vector, there in zip(vectors, present, strict=True))
    rows = map(Row, *columns, filled)
    return dict(zip(paths, rows, strict=True))


def _table(file: Path, names: list[str]) -> pa.Table | None:
    """Return the columns of an index, none if it is damaged or not there."""
    if file.exists() and not file.is_file():
        raise _no_index(file)
    try:
        table = pq.read_table(file, page_checksum_verification=True)
        found = table.schema.names
    except FileNotFoundError:
        return None
    except UnicodeDecodeError:
        raise _no_index(file) from None
    except (OSError, pa.ArrowException) as error:
        if isinstance(error, MemoryError) or getattr(error, "errno", None):
            raise  # the machine's fault: a damaged file has no number
        if file.stat().st_size and not _begins_as_parquet(file):
            raise _no_index(file) from None
        return None
    if found != names:
        raise _no_index(file)
    return table


def _check_folder(file: Path, indexed: bytes, folder: bytes) -> bool:
    """Return whether the folder of an index was moved; raise where it is another one."""
    if indexed and indexed != folder and os.path.isdir(indexed):
        raise ContractError(
            f"{file}: expected the index of {printable(os.fsdecode(folder))}, found that of "
            f"{printable(os.fsdecode(indexed))}, which it would replace. Name another one with "
            "--index, or delete it"
        )
    return indexed != folder


def _is_complete(table: pa.Table, vectors: np.ndarray) -> bool:
    """Return whether rows lack nothing, and photos without a problem have vectors of numbers."""
    if any(column.null_count for column in table.drop_columns("vector").columns):
        return False
    readable = np.array(table["problem"].to_pylist(), object) == ""
    return bool(np.isfinite(vectors[readable]).all())


def _begins_as_parquet(file: Path) -> bool:
    with open(file, "rb") as content:
        return content.read(4) == b"PAR1"


def _no_index(file: Path) -> ContractError:
    return ContractError(
        f"{file}: expected an index of photos, found another file, which it would replace. Name "
        "another one with --index, or delete it"
    )


def write_rows(rows: Rows, schema: pa.Schema, file: Path) -> None:
    """Publish the rows of an index, without those of photos that could not be read (no SHA-256)."""
    kept = [(os.fsencode(path), *row) for path, row in sorted(rows.items()) if row.sha256]
    table = pa.Table.from_pandas(
        pd.DataFrame(kept, columns=schema.names), schema, preserve_index=False
    )
    with publish(file) as temporary:
        content = table.replace_schema_metadata(schema.metadata)
        pq.write_table(content, temporary, write_page_checksum=True)
