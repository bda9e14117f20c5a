"""Pseudopairs: images of one set captioned with the sentences of another (Kádár et al. 2019).

For each training caption of one set the caption of the other that a teacher finds most similar is
written under the same image. The rows are captions like any other: their ids name both captions,
and pairs of captions form by image id, however many of them a filter leaves.
"""

import numpy as np
import pandas as pd

from pipeline_lib.contract.problems import ContractError
from pipeline_lib.models.joint_space import JointSpace
from pipeline_lib.settings.pseudopairs import Pseudopairs, Side
from pipeline_lib.synthesis.matching import RETRIEVALS, Matches

LOWEST_PERCENTILE = {"none": 0, "remove_bottom_quarter": 25, "keep_top_quarter": 75}
"""Pairs with a score below this percentile are dropped (Kádár et al. 2019, §2.2)."""


def training_captions(pairs: pd.DataFrame, side: Side) -> pd.DataFrame:
    """Return the training captions of one side, from the table of its pair set.

    Raises:
        ContractError: If there is none.
    """
    added = pairs[pairs["set"] == side.pairs]
    captions = added[(added["split"] == "train") & (added["language"] == side.language)]
    if not len(captions):
        raise ContractError(
            f"pairs.{side.pairs}: expected training captions in {side.language} among those that "
            f"the set adds itself, found {sorted(added['language'].unique())}. Name the pair set "
            "that selects them; those of its plus do not count."
        )
    return captions.reset_index(drop=True)


def match_captions(
    teacher: JointSpace, borrowing: pd.DataFrame, lent: pd.DataFrame, settings: Pseudopairs
) -> Matches:
    """Choose, by a teacher's sentence vectors, the caption that each caption borrows.

    Args:
        teacher: A model trained on both languages.
        borrowing: Captions in the language of ``settings.images_of``.
        lent: Captions in the language of ``settings.captions_of``.
        settings: How to choose, and which pairs to keep.
    """
    vectors = teacher.embed_sentences([*borrowing["tokens"]], settings.images_of.language)
    lent_vectors = teacher.embed_sentences([*lent["tokens"]], settings.captions_of.language)
    options = settings.retrieval.model_dump(exclude={"rule"})
    retrieve = RETRIEVALS[settings.retrieval.rule]
    matches = retrieve(vectors, lent_vectors.to(teacher.device), **options)
    return keep_best(matches, settings.filter)


def keep_best(matches: Matches, rule: str) -> Matches:
    """Drop the pairs whose score is below the filter's percentile of all scores."""
    kept = matches.scores >= np.percentile(matches.scores, LOWEST_PERCENTILE[rule])
    return Matches(
        matches.borrowing[kept], matches.lent[kept], matches.scores[kept], matches.cosines[kept]
    )


def borrow(
    borrowing: pd.DataFrame, lent: pd.DataFrame, matches: Matches, name: str, seed: int
) -> pd.DataFrame:
    """Write each lent caption under the image of the caption that borrows it.

    Args:
        borrowing: Captions whose images are captioned (contract.tables.PAIRS).
        lent: Captions of the other language.
        matches: Pairs of rows of the two tables.
        name: Of the new set.
        seed: Of the teacher, and of the models that learn from it.

    Returns:
        One row per pair (contract.tables.PAIRS). ``source_caption_id`` is the lent caption, whose
        language, annotation, text and tokens the row has; the rest is the borrowing one's.
    """
    rows = lent.iloc[matches.lent].reset_index(drop=True)
    own = borrowing.iloc[matches.borrowing].reset_index(drop=True)
    return rows.assign(
        caption_id=own["caption_id"] + "<-" + rows["caption_id"],
        source_caption_id=rows["caption_id"],
        set=name,
        seed=seed,
        **{column: own[column] for column in ("image_id", "dataset", "split", "position")},
    )
