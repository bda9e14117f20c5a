"""Bilingual lexicons in parquet: which word translates to which, to learn from or to test on."""

from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from pipeline_lib.contract.problems import (
    ContractError,
    duplicate_rows,
    empty_text,
    faulty,
    raise_problems,
)
from pipeline_lib.publishing import publish

FOLDS = ("train", "test")
PROTOCOLS = ("paper", "clean")
"""``paper``: the folds as their source has them, overlapping or not. ``clean``: the same test
fold, and of the training fold what has none of its source words."""

_TEXT = pa.string()
LEXICON = pa.schema(
    [
        pa.field("source_language", _TEXT, nullable=False),
        pa.field("target_language", _TEXT, nullable=False),
        pa.field("source_word", _TEXT, nullable=False),
        pa.field("target_word", _TEXT, nullable=False),
        pa.field("fold", _TEXT, nullable=False),
        pa.field("protocol", _TEXT, nullable=False),
    ]
)
"""One translation of a word, once for each protocol and fold that it belongs to."""


def write_lexicon(lexicon: pd.DataFrame, path: Path) -> None:
    """Check a lexicon (schema :data:`LEXICON`) and publish it, sorted."""
    missing = [name for name in LEXICON.names if name not in lexicon.columns]
    if missing:
        raise ContractError(f"{path}: columns missing: {', '.join(missing)}")
    order = ["source_language", "target_language", "protocol", "fold"]
    lexicon = lexicon[LEXICON.names].sort_values([*order, "source_word", "target_word"])
    raise_problems(path, check_lexicon(lexicon))
    table = pa.Table.from_pandas(lexicon, schema=LEXICON, preserve_index=False)
    with publish(path) as temporary:
        # Without pandas' own metadata the bytes depend on the content and pyarrow's version only.
        pq.write_table(table.replace_schema_metadata(None), temporary)


def read_lexicon(path: Path) -> pd.DataFrame:
    """Read and check a lexicon."""
    table = pq.read_table(path)
    if not table.schema.equals(LEXICON):
        raise ContractError(
            f"{path}: expected columns {LEXICON.names}, found {table.schema.names} "
            "(or other types). The file was written by another version: run dvc repro."
        )
    lexicon = table.to_pandas()
    raise_problems(path, check_lexicon(lexicon))
    return lexicon


def empty_lexicon() -> pd.DataFrame:
    """Return a lexicon without words: what ``lexicon: none`` reads."""
    return LEXICON.empty_table().to_pandas()


def check_lexicon(lexicon: pd.DataFrame) -> Iterator[str]:
    """Yield every way in which a lexicon breaks the contract."""
    yield from empty_text(lexicon, LEXICON.names)
    rows = lexicon.rename(columns={"source_word": "word"})
    key = ["source_language", "target_language", "target_word", "fold", "protocol", "word"]
    yield from duplicate_rows(rows, key)
    for column, legal in (("fold", FOLDS), ("protocol", PROTOCOLS)):
        unknown = ~lexicon[column].isin(legal)
        yield from faulty(lexicon[unknown], column, f"have a {column} not in {legal}")
    yield from faulty(
        leaked(lexicon, "clean"),
        "source_word",
        "of the clean training fold are tested too; expected no test source word in it",
    )


def leaked(lexicon: pd.DataFrame, protocol: str) -> pd.DataFrame:
    """Return the training rows of one protocol whose source word its test fold has too."""
    rows = lexicon[lexicon["protocol"] == protocol]
    key = ["source_language", "target_language", "source_word"]
    tested = pd.MultiIndex.from_frame(rows.loc[rows["fold"] == "test", key])
    train = rows[rows["fold"] == "train"]
    return train[pd.MultiIndex.from_frame(train[key]).isin(tested)]
