"""Bilingual lexicons in parquet: which word translates to which, to learn from or to test on."""

from collections.abc import Collection, Iterator
from pathlib import Path

import pandas as pd
import pyarrow as pa

from pipeline_lib.contract.parquet import read_table, write_table
from pipeline_lib.contract.problems import (
    duplicate_rows,
    empty_text,
    faulty,
)

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
    order = ["source_language", "target_language", "protocol", "fold"]
    write_table(lexicon, LEXICON, [*order, "source_word", "target_word"], check_lexicon, path)


def read_lexicon(path: Path) -> pd.DataFrame:
    """Read and check a lexicon."""
    return read_table(path, LEXICON, check_lexicon)


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


def tested_pairs(
    lexicon: pd.DataFrame, languages: Collection[str]
) -> dict[tuple[str, str], list[tuple[str, str]]]:
    """Return the word pairs of the test fold, which both protocols share, by (source, target).

    Args:
        lexicon: Of schema :data:`LEXICON`.
        languages: Those that both words may be of.
    """
    rows = lexicon[(lexicon["fold"] == "test") & (lexicon["protocol"] == PROTOCOLS[0])]
    for side in ("source_language", "target_language"):
        rows = rows[rows[side].isin(languages)]
    directions = rows.groupby(["source_language", "target_language"], sort=True)
    return {
        pair: list(zip(own["source_word"], own["target_word"], strict=True))
        for pair, own in directions
    }


def leaked(lexicon: pd.DataFrame, protocol: str) -> pd.DataFrame:
    """Return the training rows of one protocol whose source word its test fold has too."""
    rows = lexicon[lexicon["protocol"] == protocol]
    key = ["source_language", "target_language", "source_word"]
    tested = pd.MultiIndex.from_frame(rows.loc[rows["fold"] == "test", key])
    train = rows[rows["fold"] == "train"]
    return train[pd.MultiIndex.from_frame(train[key]).isin(tested)]
