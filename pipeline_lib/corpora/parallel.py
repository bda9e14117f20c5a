"""Parallel text: captions and their human translations, as pairs of sentences with one meaning."""

from collections.abc import Iterator

import pandas as pd

from pipeline_lib.contract.problems import raise_problems
from pipeline_lib.contract.tables import meanings
from pipeline_lib.corpora.corpus import split_hint


def parallel_text(captions: pd.DataFrame, source: str, target: str) -> pd.DataFrame:
    """Pair sentences of two languages that translate one another, or the same caption.

    Args:
        captions: Captions table; machine translations are left out.
        source: Language to translate from.
        target: Language to translate into.

    Returns:
        ``source_id``, ``target_id``, ``image_id``, ``split``, ``source`` and ``target`` (texts), in
        the order of both ids.

    Raises:
        ContractError: There is no such pair in the splits ``train`` and ``val``.
    """
    human = captions[captions["annotation"] != "machine"]
    human = human.assign(meaning=meanings(human))
    sides = {
        side: human[human["language"] == language].rename(
            columns={"caption_id": f"{side}_id", "text": side}
        )
        for side, language in (("source", source), ("target", target))
    }
    pairs = sides["source"][["meaning", "image_id", "split", "source_id", "source"]].merge(
        sides["target"][["meaning", "target_id", "target"]], on="meaning"
    )
    hint = split_hint(captions["split"])
    raise_problems("parallel text", _splits_without(pairs, source, target, hint))
    columns = ["source_id", "target_id", "image_id", "split", "source", "target"]
    return pairs[columns].sort_values(["source_id", "target_id"], ignore_index=True)


def _splits_without(pairs: pd.DataFrame, source: str, target: str, hint: str) -> Iterator[str]:
    for split in ("train", "val"):
        if split not in set(pairs["split"]):
            yield (
                f"expected translations between {source!r} and {target!r} with a "
                f"source_caption_id in the split {split}, found none. Name a data set that has "
                f"them{hint}"
            )
