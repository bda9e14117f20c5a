"""Photos of a data set: there, and not the same ones in two splits."""

import os
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from pipeline_lib.contract.problems import named
from pipeline_lib.contract.tables import TRAIN, VAL
from pipeline_lib.running.publishing import file_sha256

_USES = {TRAIN: ("training", "it learnt"), VAL: ("validation", "chose its weights")}
"""How photos of a split are called, and what becomes of them."""


def missing_photos(images: pd.DataFrame, folder: Path) -> Iterator[str]:
    """Yield the photos of a table that are not in a folder."""
    absent = [path for path in images["path"] if not os.path.isfile(folder / path)]
    yield from named(
        [f"{folder / path} is not there" for path in absent], others="more photos are not there"
    )


def photos_in_two_splits(images: pd.DataFrame, folder: Path) -> Iterator[str]:
    """Yield which photos of other splits have the bytes of training, or of validation photos."""
    rows = images.assign(size=[_size(folder / path) for path in images["path"]])
    rows = rows[rows["size"].duplicated(keep=False) & (rows["size"] >= 0)]
    rows = rows.assign(digest=[file_sha256(folder / path) for path in rows["path"]])
    for split, (said, use) in _USES.items():
        known = rows[rows["split"] == split].drop_duplicates("digest").set_index("digest")["path"]
        rows = rows[rows["split"] != split]
        again = rows["digest"].isin(known.index)
        if again.any():
            first = rows[again].iloc[0]
            yield (
                f"{again.sum()} photos of other splits have the bytes of {said} photos (first: "
                f"{first['path']} of {first['split']} is {known[first['digest']]}): a model is "
                f"tested on what {use}. Leave one of each two out"
            )
        rows = rows[~again]


def _size(path: Path) -> int:
    return path.stat().st_size if os.path.isfile(path) else -1
