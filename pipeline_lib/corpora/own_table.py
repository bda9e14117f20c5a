"""A user's own table of captions, as the reader ``table`` wants it.

What a table must say is which sentence of which language describes which image. Kinds, numbers and
splits that it does not name are filled in.
"""

import csv
import hashlib
from pathlib import Path

import pandas as pd

from pipeline_lib.contract.problems import raise_problems
from pipeline_lib.corpora.files import read_lines
from pipeline_lib.corpora.table import COLUMNS

REQUIRED = ("image", "language", "text")


def complete_table(path: Path) -> pd.DataFrame:
    """Read a table and fill in the columns that it lacks.

    Args:
        path: UTF-8 with a header; separated by tabs without quoting, or by commas with it if it is
            called ``.csv``. Columns :data:`REQUIRED`, and any of
            :data:`~pipeline_lib.corpora.table.COLUMNS`.

    Returns:
        All of these columns as strings, a row per line. Where the table has none, ``split`` is
        ``train`` for eight of ten images, ``val`` and ``test`` for one each, by the image's name;
        ``annotation`` is ``caption``; ``position`` counts an image's captions of one language and
        kind; ``translation_of`` is empty.

    Raises:
        ContractError: The file is not such a table.
    """
    problems: list[str] = []
    comma = path.suffix.lower() == ".csv"
    lines = [line.rstrip("\r") for line in read_lines(path, problems)]
    rows = [*csv.reader(lines)] if comma else [line.split("\t") for line in lines]
    header, *rows = rows or [[]]
    missing = [name for name in REQUIRED if name not in header]
    if missing and not problems:
        wanted = f"{', '.join(REQUIRED)} separated by {'commas' if comma else 'tabs'}"
        problems.append(
            f"{path}:1: expected a header with {wanted}, found no {', '.join(missing)} in {header}"
        )
    for number, row in enumerate(rows, 2):
        if len(row) != len(header) and not missing:
            problems.append(f"{path}:{number}: expected {len(header)} fields, found {len(row)}")
    raise_problems(path, problems)
    table = pd.DataFrame(rows, columns=header, dtype="str")
    defaults = {"split": table["image"].map(_drawn_split), "annotation": "caption"}
    table = table.assign(**{k: v for k, v in defaults.items() if k not in table})
    if "position" not in table:
        among = table.groupby(["image", "language", "annotation"]).cumcount()
        table["position"] = among.astype(str)
    if "translation_of" not in table:
        table["translation_of"] = ""
    return table[[*COLUMNS]]


def _drawn_split(image: str) -> str:
    draw = int.from_bytes(hashlib.sha256(image.encode()).digest()[:8]) % 10
    return {0: "val", 1: "test"}.get(draw, "train")
