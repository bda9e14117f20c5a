"""What each image adds to the sum of recalls of each seed's model: all that its tests need.

The table is small enough for metrics/, so that recipes can be compared without their models: a row
per language and seed, with a string of digits for all images.
"""

import hashlib
from pathlib import Path

import numpy as np
import pandas as pd

from pipeline_lib.contract.queries import DIRECTIONS
from pipeline_lib.contract.recalls import CUTOFFS
from pipeline_lib.contract.reports import read_rows

HITS = ["language", "seed", "images", "captions", "queries", *DIRECTIONS]
"""Columns: of each language and seed how many images and captions query, a digest of them, and how
often the queries of each image in each direction are right within each of :data:`CUTOFFS` (an image
that is first counts for all three): hexadecimal numbers of equal width, sorted by image id."""


def image_hits(queries: pd.DataFrame) -> pd.DataFrame:
    """Count the hits of every image under every seed's model.

    Args:
        queries: Table of one recipe (contract.queries.QUERIES).

    Returns:
        A table with the columns :data:`HITS`, sorted by language and seed.
    """
    right = (queries["rank"].to_numpy()[:, None] <= np.array(CUTOFFS)).sum(axis=1)
    groups = queries.assign(hits=right).groupby(["language", "seed"], sort=True)
    rows = [[*key, *_counted(own)] for key, own in groups]
    return pd.DataFrame(rows, columns=HITS)


def _counted(queries: pd.DataFrame) -> list[object]:
    counted = queries.groupby(["direction", "image_id"], sort=True)["hits"]
    sums, asked = (each.unstack("image_id") for each in (counted.sum(), counted.size()))
    captions = asked.loc["text_to_image"]
    named = "".join(f"{image}\t{number}\n" for image, number in captions.items())
    digest = hashlib.sha256(named.encode()).hexdigest()[:16]
    digits = [_digits(sums.loc[way].to_numpy()) for way in DIRECTIONS]
    return [len(captions), int(captions.sum()), digest, *digits]


def _digits(numbers: np.ndarray) -> str:
    width = len(f"{numbers.max():x}")
    return "".join(f"{number:0{width}x}" for number in numbers)


def read_hits(path: Path) -> pd.DataFrame:
    """Read the hits of a recipe from metrics/reports/recipes/<recipe>/scores/hits.csv."""
    text = dict.fromkeys(["language", "queries", *DIRECTIONS], str)
    return read_rows(path, dtype=text, keep_default_na=False)


def image_contributions(hits: pd.DataFrame, language: str) -> np.ndarray:
    """Return what each image adds to each seed's sum of recalls, in per cent ``[seeds, images]``.

    Together those of a seed are its sum. Seeds ascend, images are sorted by id.

    Args:
        hits: Table of one recipe, of columns :data:`HITS`.
        language: Whose queries count; one that has none has no seeds.
    """
    rows = [_contributions(row) for _, row in hits[hits["language"] == language].iterrows()]
    return np.array(rows) if rows else np.empty((0, 0))


def _contributions(row: pd.Series) -> np.ndarray:
    queries = {"image_to_text": row["images"], "text_to_image": row["captions"]}
    shares = [_numbers(row[way], row["images"]) / asked for way, asked in queries.items()]
    return 100 * sum(shares)


def _numbers(digits: str, images: int) -> np.ndarray:
    width = len(digits) // images
    return np.array([int(digits[width * i : width * (i + 1)], 16) for i in range(images)])


def pool_of(hits: pd.DataFrame, language: str) -> str | None:
    """Return the digest of the images and captions that query in a language; None if none do."""
    found = hits.loc[hits["language"] == language, "queries"]
    return found.iloc[0] if len(found) else None
