"""What pseudopairs are like: reuse, stability, and agreement with a known truth.

The first two follow §7.2 of Kádár et al. 2019. All figures are shares of 1 or counts.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd

from pipeline_lib.contract.facts import Fact, Facts
from pipeline_lib.contract.problems import raise_problems
from pipeline_lib.synthesis.matching import Matches

MOST_USED = 150
_BLOCK = 1024


def similarities(matches: Matches, borrowing: int) -> dict[str, object]:
    """Count the pairs and summarise their cosines.

    Args:
        matches: The pairs that are kept.
        borrowing: Number of captions that could borrow.
    """
    return {
        "pairs": len(matches.lent),
        "share_of_captions_that_borrow": len(matches.lent) / borrowing,
        "mean_cosine": float(matches.cosines.mean()),
        "cosine_quartiles": [float(q) for q in np.percentile(matches.cosines, [25, 50, 75])],
    }


def reuse(lent: np.ndarray, captions: int) -> dict[str, object]:
    """Describe how evenly captions are lent.

    Args:
        lent: Row of the lent caption of each pair ``[pairs]``.
        captions: Number of captions that could be lent.

    Returns:
        The share of captions used, the share of the pairs that the 150 most used ones have, the
        most uses of one caption, and ``captions_by_uses``: how many are used 0, 1, 2, 3–4, 5–8, …
        times.
    """
    uses = np.sort(np.bincount(lent, minlength=captions))[::-1]
    return {
        "captions_lent_from": captions,
        "share_of_captions_used": float((uses > 0).mean()),
        f"share_of_{MOST_USED}_most_used": float(uses[:MOST_USED].sum() / len(lent)),
        "most_uses": int(uses[0]),
        "captions_by_uses": _histogram(uses),
    }


def overlap(pseudopairs: pd.DataFrame, others: pd.DataFrame) -> dict[str, float]:
    """Compare two pseudopair sets, of other seeds or other teachers; nothing if one is empty.

    Args:
        pseudopairs: Rows of one set (contract.tables.PAIRS).
        others: Rows of another one, with images and captions of the same sets.

    Returns:
        The Jaccard index of the captions used, and that of the (image, caption) pairs whose
        caption both use.
    """
    if not len(pseudopairs) or not len(others):
        return {}
    used, also_used = (set(table["source_caption_id"]) for table in (pseudopairs, others))
    shared = used & also_used
    placed, also_placed = (_placements(table, shared) for table in (pseudopairs, others))
    return {
        "jaccard_of_captions": _jaccard_of_sets(used, also_used),
        "jaccard_of_placements": _jaccard_of_sets(placed, also_placed),
    }


def stability(tables: Sequence[pd.DataFrame]) -> dict[str, float]:
    """Return the overlap of two teachers' pseudopairs, averaged over all two of the seeds.

    Args:
        tables: Pseudopairs of each seed (contract.tables.PAIRS).

    Returns:
        The figures of :func:`overlap`, under ``..._of_seeds``; nothing if there is one seed.
    """
    found = pd.DataFrame([overlap(a, b) for a, b in combinations(tables, 2)])
    return {f"{name}_of_seeds": float(value) for name, value in found.mean().items()}


@dataclass(frozen=True)
class Truth:
    """Which facts hold, 1 or 0: no rows where the truth is unknown.

    Attributes:
        borrowing: Facts that each borrowing caption states ``[borrowing captions, facts]``.
        images: Facts that hold in its image ``[borrowing captions, facts]``.
        lent: Facts that each lent caption states ``[lent captions, facts]``.
    """

    borrowing: np.ndarray
    images: np.ndarray
    lent: np.ndarray


def known_truth(
    borrowing: pd.DataFrame, lent: pd.DataFrame, facts: Facts, lent_facts: Facts
) -> Truth:
    """Look up the facts of all captions; of none where one side's are unknown.

    Args:
        borrowing: Captions that borrow.
        lent: Captions that are lent.
        facts: Of the borrowing captions and their images.
        lent_facts: Of the lent captions.

    Raises:
        ContractError: If a caption or image has no facts although others have.
    """
    if not facts.captions or not lent_facts.captions:
        return Truth(*(np.empty((0, 0), np.float32) for _ in range(3)))
    tables = {
        "borrowing captions": (borrowing["caption_id"], facts.captions),
        "their images": (borrowing["image_id"], facts.images),
        "lent captions": (lent["caption_id"], lent_facts.captions),
    }
    raise_problems(
        "facts", [line for name, item in tables.items() for line in _absent(name, *item)]
    )
    return Truth(*_indicators([[known[i] for i in ids] for ids, known in tables.values()]))


def agreement(truth: Truth, matches: Matches) -> dict[str, float]:
    """Compare with the truth what captions borrow; nothing where it is unknown.

    Returns:
        Means over all pairs. ``similarity`` of the two captions is the Jaccard index of the sets
        of facts that they state; ``true_of_image`` is the share of the lent caption's facts that
        hold in the image. Beside them, ``..._of_best``: what the most similar caption would
        reach, and ``..._by_chance``: what any caption does on average.
    """
    if not len(truth.lent):
        return {}
    blocks = [
        _agreement(truth, rows, lent)
        for rows, lent in zip(
            *(
                np.split(side, range(_BLOCK, len(matches.lent), _BLOCK))
                for side in (matches.borrowing, matches.lent)
            ),
            strict=True,
        )
    ]
    table = pd.concat(blocks)
    return {name: float(value) for name, value in table.mean().items()}


def _agreement(truth: Truth, rows: np.ndarray, lent: np.ndarray) -> pd.DataFrame:
    stated = truth.lent.sum(axis=1)
    common = truth.borrowing[rows] @ truth.lent.T
    similarity = common / (truth.borrowing[rows].sum(axis=1)[:, None] + stated - common)
    true = truth.images[rows] @ truth.lent.T / stated
    chosen = np.arange(len(rows)), lent
    return pd.DataFrame(
        {
            "similarity": similarity[chosen],
            "similarity_of_best": similarity.max(axis=1),
            "similarity_by_chance": similarity.mean(axis=1),
            "true_of_image": true[chosen],
            "true_of_image_by_chance": true.mean(axis=1),
        },
        dtype=np.float64,
    )


def _histogram(uses: np.ndarray) -> dict[str, int]:
    """Count captions by how often they are used, in classes that end at powers of two."""
    counts, low, high = {"0": int((uses == 0).sum())}, 1, 1
    while low <= uses.max():
        label = str(low) if low == high else f"{low}-{high}"
        counts[label] = int(((uses >= low) & (uses <= high)).sum())
        low, high = high + 1, 2 * high
    return counts


def _placements(pseudopairs: pd.DataFrame, captions: set[str]) -> set[tuple[str, str]]:
    chosen = pseudopairs[pseudopairs["source_caption_id"].isin(captions)]
    return set(zip(chosen["image_id"], chosen["source_caption_id"], strict=True))


def _jaccard_of_sets(a: set, b: set) -> float:
    return len(a & b) / len(a | b) if a | b else 0.0


def _absent(name: str, ids: pd.Series, known: dict[str, frozenset[Fact]]) -> Iterator[str]:
    absent = [item for item in ids if not known.get(item)]
    if absent:
        yield (
            f"{len(absent)} of {len(ids)} {name} have no facts (first: {absent[0]!r}). Name the "
            "truth.jsonl of their data set, or data/facts/none.jsonl."
        )


def _indicators(tables: Sequence[Sequence[frozenset[Fact]]]) -> list[np.ndarray]:
    """Return one matrix per table, 1 where a row states a fact ``[rows, facts]``."""
    stated = sorted({fact for table in tables for row in table for fact in row})
    column = {fact: number for number, fact in enumerate(stated)}
    matrices = [np.zeros((len(table), len(column)), np.float32) for table in tables]
    for matrix, table in zip(matrices, tables, strict=True):
        for number, row in enumerate(table):
            matrix[number, [column[fact] for fact in row]] = 1
    return matrices
