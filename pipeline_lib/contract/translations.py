"""What made each machine translation: a table beside the captions that hold its text."""

from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from pipeline_lib.contract.problems import (
    ContractError,
    duplicate_rows,
    empty_text,
    raise_problems,
)
from pipeline_lib.publishing import publish

TRANSLATIONS = pa.schema(
    [
        pa.field("caption_id", pa.string(), nullable=False),
        pa.field("source_caption_id", pa.string(), nullable=False),
        pa.field("engine", pa.string(), nullable=False),
        pa.field("log_likelihood", pa.float64(), nullable=True),
    ]
)
"""One translated caption. ``engine`` is JSON: its name and settings; ``log_likelihood`` is that of
the translation, null where the engine gives none."""


def write_translations(translations: pd.DataFrame, path: Path) -> None:
    """Check a table of translations (:data:`TRANSLATIONS`) and publish it, by ``caption_id``."""
    frame = translations[TRANSLATIONS.names].sort_values("caption_id", kind="stable")
    raise_problems(path, check_translations(frame))
    table = pa.Table.from_pandas(frame, schema=TRANSLATIONS, preserve_index=False)
    with publish(path) as temporary:
        # Without pandas' own metadata the bytes depend on the content and pyarrow's version only.
        pq.write_table(table.replace_schema_metadata(None), temporary)


def read_translations(path: Path) -> pd.DataFrame:
    """Read and check a table of translations."""
    table = pq.read_table(path)
    if not table.schema.equals(TRANSLATIONS):
        raise ContractError(
            f"{path}: expected columns {TRANSLATIONS.names}, found {table.schema.names} "
            "(or other types). The file was written by another version: run dvc repro."
        )
    frame = table.to_pandas()
    raise_problems(path, check_translations(frame))
    return frame


def check_translations(translations: pd.DataFrame) -> Iterator[str]:
    """Yield every way in which a table of translations breaks the contract."""
    yield from duplicate_rows(translations, ["caption_id"])
    yield from empty_text(translations, ["caption_id", "source_caption_id", "engine"])
