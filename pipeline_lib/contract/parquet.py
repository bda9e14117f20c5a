"""Tables in parquet: checked before they are published and when they are read."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from pipeline_lib.contract.digests import NO_DIGEST, reading_sealed, seal
from pipeline_lib.contract.problems import ContractError, raise_problems
from pipeline_lib.running.publishing import publish


def write_table(
    frame: pd.DataFrame,
    schema: pa.Schema,
    order: str | list[str],
    check: Callable[[pd.DataFrame], Iterator[str]],
    path: Path,
) -> None:
    """Check a table of this schema and publish it, sorted by ``order``."""
    missing = [name for name in schema.names if name not in frame.columns]
    if missing:
        raise ContractError(f"{path}: columns missing: {', '.join(missing)}")
    frame = frame[schema.names].sort_values(order, kind="stable")
    raise_problems(path, check(frame))
    table = pa.Table.from_pandas(frame, schema=schema, preserve_index=False)
    # Without pandas' own metadata the bytes depend on the content and pyarrow's version only.
    table = table.replace_schema_metadata(None)
    with publish(path) as temporary:
        with pq.ParquetWriter(temporary, table.schema) as writer:
            writer.write_table(table)
            writer.add_key_value_metadata({"sha256": NO_DIGEST})
        seal(temporary)


def read_table(
    path: Path, schema: pa.Schema, check: Callable[[pd.DataFrame], Iterator[str]]
) -> pd.DataFrame:
    """Read a table of this schema and check it."""
    with reading_sealed(path, "a Parquet table"):
        table = pq.ParquetFile(path).read()
        if not table.schema.equals(schema):
            raise ContractError(
                f"{path}: expected columns {schema.names}, found {table.schema.names} "
                "(or other types). The file was written by another version: run dvc repro."
            )
        table.validate(full=True)
        frame = table.to_pandas()
        if "tokens" in frame:
            frame["tokens"] = table["tokens"].to_pylist()
        raise_problems(path, check(frame))
        return frame
