"""Photos of a data set: there, and not the same ones in training and test."""

import os
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from pipeline_lib.contract.problems import named
from pipeline_lib.publishing import file_sha256


def missing_photos(images: pd.DataFrame, folder: Path) -> Iterator[str]:
    """Yield the photos of a table that are not in a folder."""
    absent = [path for path in images["path"] if not os.path.isfile(folder / path)]
    yield from named(
        [f"{folder / path} is not there" for path in absent], others="more photos are not there"
    )


def photos_in_two_splits(images: pd.DataFrame, folder: Path) -> Iterator[str]:
    """Yield a sentence if photos of other splits have the bytes of training photos."""
    rows = images.assign(size=[_size(folder / path) for path in images["path"]])
    rows = rows[rows["size"].duplicated(keep=False) & (rows["size"] >= 0)]
    rows = rows.assign(digest=[file_sha256(folder / path) for path in rows["path"]])
    training = rows[rows["split"] == "train"].drop_duplicates("digest").set_index("digest")["path"]
    twins = rows[(rows["split"] != "train") & rows["digest"].isin(training.index)]
    if len(twins):
        first = twins.iloc[0]
        yield (
            f"{len(twins)} photos of other splits have the bytes of training photos (first: "
            f"{first['path']} of {first['split']} is {training[first['digest']]}): a model is "
            "tested on what it learnt. Leave one of each two out"
        )


def _size(path: Path) -> int:
    return path.stat().st_size if os.path.isfile(path) else -1
