"""What each image adds to the sum of recalls of each seed's model: all that its tests need.

The table is small enough for metrics/, so that recipes can be compared without their models: a row
per language and seed, with a string of digits for all images.
"""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from pipeline_lib.contract.problems import raise_problems
from pipeline_lib.contract.queries import DIRECTIONS
from pipeline_lib.contract.recalls import CUTOFFS
from pipeline_lib.contract.reports import read_rows

HITS = ["language", "seed", "images", "per_image", "queries", *DIRECTIONS]
"""Columns: of each language and seed how many images query, how many captions of each, a digest of
them, and how often the queries of each image in each direction are right within each of
:data:`CUTOFFS` (an image that is first counts for all three). What is of each image is hexadecimal
numbers of equal width, sorted by image id; one number, where all images have as many captions."""

_OF_IMAGES = ["per_image", *DIRECTIONS]


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
    return [len(captions), _shortened(captions.to_numpy(int)), digest, *digits]


def _shortened(numbers: np.ndarray) -> str:
    """Write one number for all where they are equal, and it has fewer digits than there are."""
    one = _digits(numbers[:1])
    return one if (numbers == numbers[0]).all() and len(one) < len(numbers) else _digits(numbers)


def _digits(numbers: np.ndarray) -> str:
    width = len(f"{numbers.max():x}")
    return "".join(f"{number:0{width}x}" for number in numbers)


def read_hits(path: Path) -> pd.DataFrame:
    """Read the hits of a recipe from metrics/reports/recipes/<recipe>/scores/hits.csv.

    Raises:
        ContractError: The file is damaged, or written by an earlier version.
    """
    text = dict.fromkeys(["language", "queries", *_OF_IMAGES], str)
    hits = read_rows(path, dtype=text, na_values=[])
    raise_problems(path, _problems(hits))
    return hits


def _problems(hits: pd.DataFrame) -> Iterator[str]:
    again = "Make it again: dvc repro evaluate@RECIPE"
    if list(hits) != HITS:
        yield f"expected the columns {', '.join(HITS)}, found {', '.join(map(str, hits))}. {again}"
        return
    for _, row in hits.iterrows():
        for way in DIRECTIONS:
            if not row[way] or len(row[way]) % row["images"]:
                yield (
                    f"{way}: expected a number for each of {row['images']} images in "
                    f"{row['language']}, seed {row['seed']}, found {len(row[way])} digits. {again}"
                )
        digits, images = len(row["per_image"]), row["images"]
        if not digits or (digits > images and digits % images):
            yield (
                f"per_image: expected a number for each of {images} images in {row['language']}, "
                f"or one for all, found {digits} digits. {again}"
            )


def image_contributions(hits: pd.DataFrame, language: str) -> np.ndarray:
    """Return what each image adds to each seed's sum of recalls, in per cent ``[seeds, images]``.

    Together those of a seed are its sum. An image with more captions than others adds what their
    recall exceeds that of all by, as the sum is a ratio to a number of captions that draws of
    images change. Seeds ascend, images are sorted by id.

    Args:
        hits: Table of one recipe, of columns :data:`HITS`.
        language: Whose queries count; one that has none has no seeds.
    """
    rows = [_contributions(row) for _, row in hits[hits["language"] == language].iterrows()]
    return np.array(rows) if rows else np.empty((0, 0))


def _contributions(row: pd.Series) -> np.ndarray:
    images = row["images"]
    captions, of_image, of_text = (_numbers(row[column], images) for column in _OF_IMAGES)
    more = of_text.sum() * (captions - captions.mean()) / captions.sum()
    return 100 * (of_image / images + (of_text - more) / captions.sum())


def _numbers(digits: str, images: int) -> np.ndarray:
    """Read what :func:`_digits` or :func:`_shortened` wrote."""
    if len(digits) < images:
        return np.full(images, int(digits, 16))
    width = len(digits) // images
    return np.array([int(digits[width * i : width * (i + 1)], 16) for i in range(images)])


def pool_of(hits: pd.DataFrame, language: str) -> str | None:
    """Return the digest of the images and captions that query in a language; None if none do."""
    found = hits.loc[hits["language"] == language, "queries"]
    return found.iloc[0] if len(found) else None
