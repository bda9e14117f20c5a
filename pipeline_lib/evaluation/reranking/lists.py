"""N-best lists of a translator beside the sentences that they translate."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from pipeline_lib.contract.problems import raise_problems
from pipeline_lib.contract.reports import read_rows
from pipeline_lib.evaluation.reranking.nbest import NBest, read_nbest


def read_lists(
    folder: Path, split: str, tokens: pd.Series, images: set[str] | None
) -> tuple[NBest, pd.DataFrame]:
    """Return what evaluate_translator wrote of one split.

    Args:
        folder: Where it wrote ``SPLIT.nbest`` and ``SPLIT.tsv``.
        split: One of nbest.SPLITS.
        tokens: Of each caption, by its id.
        images: Those whose sentences are wanted, None if all are.

    Returns:
        The lists, and a row for each: ``source_id``, ``target_id``, ``image_id``,
        ``source_tokens``, and the ``reference``, whose tokens blanks join.
    """
    lists = read_nbest(folder / f"{split}.nbest")
    rows = read_rows(folder / f"{split}.tsv", sep="\t")
    if images is not None:
        lists, rows = with_images(lists, rows, images)
    return lists, rows.assign(
        source_tokens=rows["source_id"].map(tokens).map(list),
        reference=rows["target_id"].map(tokens).map(" ".join),
    )


def check_lists(
    name: str, lists: dict[str, tuple[NBest, pd.DataFrame]], pairs: pd.DataFrame
) -> None:
    """Raise unless every split has sentences, a list each, and no image that the model learnt from.

    Weights are tuned on ``val``, where a model may have been validated too; ``test`` it never saw.

    Args:
        name: Entry of ``rerankings``, for the message.
        lists: Lists and rows of sentences by split, ``val`` or ``test``.
        pairs: Captions that the model was trained and validated on (contract.tables.PAIRS).

    Raises:
        ContractError: Lists every problem.
    """
    raise_problems(f"rerankings.{name}", _problems(lists, pairs))


def with_images(lists: NBest, rows: pd.DataFrame, images: set[str]) -> tuple[NBest, pd.DataFrame]:
    """Return the lists of the sentences whose image is one of ``images``, and their rows."""
    kept = rows["image_id"].isin(images).to_numpy()
    chosen, number = kept[lists.sentence], np.cumsum(kept) - 1
    return NBest(
        sentence=number[lists.sentence[chosen]],
        text=[text for text, keep in zip(lists.text, chosen, strict=True) if keep],
        names=lists.names,
        features=lists.features[chosen],
        scores=lists.scores[chosen],
    ), rows[kept].reset_index(drop=True)


def _problems(lists: dict[str, tuple[NBest, pd.DataFrame]], pairs: pd.DataFrame) -> Iterator[str]:
    seen = {"val": pairs.loc[pairs["split"] == "train", "image_id"], "test": pairs["image_id"]}
    for split, (found, rows) in lists.items():
        if not len(rows):
            yield (
                f"split {split}: expected sentences whose image has features, found none. Name "
                "the extractor of the translated images in features, or compare no images"
            )
        if len(np.unique(found.sentence)) != len(rows):
            yield (
                f"split {split}: expected a list for each of {len(rows):,} sentences, found "
                f"{len(np.unique(found.sentence)):,}. Run evaluate_translator again"
            )
        shared = sorted(set(seen[split]).intersection(rows["image_id"]))
        if shared:
            yield (
                f"split {split}: {len(shared):,} of the translated images are among those that "
                f"the recipe has seen in training (first: {', '.join(shared[:5])}). Name a recipe "
                "that has not"
            )
