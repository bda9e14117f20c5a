"""What became of every query of image-text retrieval, in parquet: its rank, and what it found."""

from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pyarrow as pa

from pipeline_lib.contract.parquet import read_table, write_table
from pipeline_lib.contract.problems import duplicate_rows, empty_text, faulty

DIRECTIONS = ("image_to_text", "text_to_image")

_TEXT = pa.string()
QUERIES = pa.schema(
    [
        pa.field("seed", pa.int64(), nullable=False),
        pa.field("language", _TEXT, nullable=False),
        pa.field("direction", _TEXT, nullable=False),
        pa.field("query_id", _TEXT, nullable=False),
        pa.field("image_id", _TEXT, nullable=False),
        pa.field("rank", pa.int64(), nullable=False),
        pa.field("right_id", _TEXT, nullable=False),
        pa.field("wrong_id", _TEXT, nullable=True),
    ]
)
"""One query under one model. ``query_id`` is an image's id or a caption's, ``image_id`` the image
that the query is about. ``right_id`` and ``wrong_id`` name the right and the wrong candidate with
the highest score; there is no wrong one in a pool of a single image."""


def write_queries(queries: pd.DataFrame, path: Path) -> None:
    """Check a table of queries (schema :data:`QUERIES`) and publish it, sorted."""
    write_table(
        queries, QUERIES, ["seed", "language", "direction", "query_id"], check_queries, path
    )


def read_queries(path: Path) -> pd.DataFrame:
    """Read and check a table of queries."""
    return read_table(path, QUERIES, check_queries)


def check_queries(queries: pd.DataFrame) -> Iterator[str]:
    """Yield every way in which a table of queries breaks the contract."""
    yield from duplicate_rows(queries, ["seed", "language", "direction", "query_id"])
    yield from empty_text(queries, ["language", "query_id", "image_id", "right_id"])
    unknown = ~queries["direction"].isin(DIRECTIONS)
    yield from faulty(queries[unknown], "query_id", f"have a direction not in {DIRECTIONS}")
    yield from faulty(queries[queries["rank"] < 1], "query_id", "have a rank below 1")
    missed = (queries["rank"] > 1) & queries["wrong_id"].isna()
    yield from faulty(queries[missed], "query_id", "are missed, but name no wrong candidate")
