"""No leaks: what a study trains or translates never saw captions of images it is evaluated on.

Data sets share photos: most test photos of Flickr8k are training photos of Multi30k. An image id
of a published data set names the photo itself, so that ids can be compared. Those of the reader
``table`` name a photo of that table: two tables of the same photos are not seen to share any.
"""

from collections.abc import Iterable, Iterator, Mapping

import pandas as pd

from pipeline_lib.contract.problems import raise_problems
from pipeline_lib.contract.tables import TRAIN, VAL, images_outside

_SHOWN = 5


def protected_images(images: pd.DataFrame, pairs: pd.DataFrame) -> set[str]:
    """Return the ids of images that a translator must not see.

    Args:
        images: Table whose validation and test images are meant.
        pairs: Pair set all of whose images are meant (contract.tables.PAIRS).
    """
    return images_outside(images, TRAIN) | set(pairs["image_id"])


def without_images(pairs: pd.DataFrame, protected: set[str]) -> pd.DataFrame:
    """Return parallel text whose training and validation rows show no protected image."""
    seen = pairs["split"].isin([TRAIN, VAL])
    return pairs[~(seen & pairs["image_id"].isin(protected))]


def images_seen(pairs: pd.DataFrame) -> dict[str, list[str]]:
    """Return the ids of the images behind training and validation rows, sorted."""
    return {
        split: sorted(pairs.loc[pairs["split"] == split, "image_id"].unique())
        for split in (TRAIN, VAL)
    }


def check_training_pairs(pairs: pd.DataFrame, protected: set[str], where: str) -> None:
    """Raise unless there are training and validation rows, and they show no protected image.

    Raises:
        ContractError: Names the splits and the first images.
    """
    seen = images_seen(pairs)
    overlaps = _overlaps(seen, {TRAIN: protected, VAL: protected})
    raise_problems(where, [*overlaps, *_empty_splits(seen)])


def check_images_seen(seen: Mapping[str, Iterable[str]], images: pd.DataFrame, where: str) -> None:
    """Raise if a translator of :func:`images_seen` may not translate for this images table.

    It may be trained on the table's training images only, and validated on its training and
    validation images: the test images it never saw.

    Raises:
        ContractError: Names the splits and the first images.
    """
    forbidden = {TRAIN: images_outside(images, TRAIN), VAL: images_outside(images, TRAIN, VAL)}
    raise_problems(where, _overlaps(seen, forbidden))


def training_leaks(pairs: pd.DataFrame, images: pd.DataFrame) -> Iterator[str]:
    """Yield one sentence if a pair set trains on images that its recipe is evaluated on.

    Args:
        pairs: Of one recipe, which may join several data sets with splits of their own.
        images: Of the data set that it is validated and tested on.
    """
    seen = {split: set(ids) for split, ids in images_seen(pairs).items()}
    learnt = seen[TRAIN] & images_outside(images, TRAIN) | _of_two_splits(pairs)
    shared = sorted(learnt | seen[VAL] & images_outside(images, TRAIN, VAL))
    if shared:
        first = ", ".join(shared[:_SHOWN])
        yield (
            "expected no training pair that shows a validation or test image, and no validation "
            f"pair that shows a test image; found {len(shared)} such images (first: {first}). Name "
            "pairs of the recipe's own split"
        )


def _of_two_splits(pairs: pd.DataFrame) -> set[str]:
    """Return the images that one set trains on and another validates on.

    A set is of one data set, where an image is in one split.
    """
    rows = pairs[["image_id", "set", "split"]].drop_duplicates()
    train, val = (rows[rows["split"] == split] for split in (TRAIN, VAL))
    both = train.merge(val, on="image_id")
    return set(both.loc[both["set_x"] != both["set_y"], "image_id"])


def _empty_splits(seen: Mapping[str, list[str]]) -> Iterator[str]:
    for split, ids in seen.items():
        if not ids:
            yield (
                f"expected parallel text in the split {split}, found none that exclude_images "
                "and exclude_pairs leave. Name another data set to learn from"
            )


def _overlaps(
    seen: Mapping[str, Iterable[str]], forbidden: Mapping[str, set[str]]
) -> Iterator[str]:
    for split, ids in seen.items():
        shared = sorted(forbidden[split].intersection(ids))
        if shared:
            first = ", ".join(shared[:_SHOWN])
            yield (
                f"the translator's split {split} shows {len(shared)} images that are evaluated on "
                f"(first: {first}). Name the evaluated data set in exclude_images of the "
                "translator and train it again"
            )
