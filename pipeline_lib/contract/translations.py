"""What made each machine translation: a table beside the captions that hold its text."""

from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pyarrow as pa

from pipeline_lib.contract.parquet import read_table, write_table
from pipeline_lib.contract.problems import duplicate_rows, empty_text

TRANSLATIONS = pa.schema(
    [
        pa.field("caption_id", pa.string(), nullable=False),
        pa.field("source_caption_id", pa.string(), nullable=False),
        pa.field("engine", pa.string(), nullable=False),
        pa.field("log_likelihood", pa.float64(), nullable=True),
    ]
)
"""One translated caption. ``source_caption_id`` is what was translated, be it a translation itself;
``engine`` is JSON: its name and settings; ``log_likelihood`` is that of the translation, null where
the engine gives none."""


def write_translations(translations: pd.DataFrame, path: Path) -> None:
    """Check a table of translations (:data:`TRANSLATIONS`) and publish it, by ``caption_id``."""
    write_table(translations, TRANSLATIONS, "caption_id", check_translations, path)


def read_translations(path: Path) -> pd.DataFrame:
    """Read and check a table of translations."""
    return read_table(path, TRANSLATIONS, check_translations)


def check_translations(translations: pd.DataFrame) -> Iterator[str]:
    """Yield every way in which a table of translations breaks the contract."""
    yield from duplicate_rows(translations, ["caption_id"])
    yield from empty_text(translations, ["caption_id", "source_caption_id", "engine"])
