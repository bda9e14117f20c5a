"""Retrieval of sentences by sentences of another language, in two pools that bear names.

``first``
    The first sentence of each image queries; any sentence of that image in the other language is
    right. It asks for a description of the same image (the code of Calixto et al. 2017).
``exact``
    Every sentence that has a translation queries; that translation alone is right, and the other
    translated sentences are the candidates (§7.1 of Kádár et al. 2019). languages.translated_alike
    says which sentences are compared.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import permutations

import numpy as np
import pandas as pd

from pipeline_lib.contract.problems import raise_problems
from pipeline_lib.contract.recalls import CUTOFFS
from pipeline_lib.contract.tables import meanings
from pipeline_lib.evaluation.retrieval.ranking import Scores, dot_products, ranks
from pipeline_lib.evaluation.retrieval.recalls import bootstrapped_recalls, direction_scores
from pipeline_lib.evaluation.significance import bootstrap_interval


@dataclass(frozen=True)
class SentenceRanks:
    """Rank of the best right sentence of every query from one language to another.

    Attributes:
        caption_ids: The queries ``[queries]``.
        image_ids: Their images, the units of every interval and test ``[queries]``.
        ranks: 1 is best ``[queries]``.
        n_candidates: Sentences that were ranked.
    """

    caption_ids: np.ndarray
    image_ids: np.ndarray
    ranks: np.ndarray
    n_candidates: int


def sentence_ranks(
    captions: pd.DataFrame,
    vectors: np.ndarray,
    protocol: str,
    scores: Callable[[str, str], Scores] = lambda source, target: dot_products,
) -> dict[tuple[str, str], SentenceRanks]:
    """Rank sentences by sentences, from each language to each other that shares queries with it.

    Args:
        captions: The sentences of one split (contract.tables.CAPTIONS). For ``first`` they are the
            pool itself, so of one kind per language; for ``exact`` those without a translation
            among them are left out.
        vectors: One row per row of ``captions`` ``[captions, dim]``.
        protocol: ``first`` or ``exact``, one of :data:`PROTOCOLS`.
        scores: From the languages of queries and candidates to the scores of all their pairs.

    Returns:
        Ranks by (language of the queries, language of the candidates); none, if no two languages
        have sentences to compare. Two languages that share one sentence alone are left out.

    Raises:
        ContractError: Vectors and captions differ in number, or captions are repeated.
    """
    _check(captions, vectors, protocol)
    found = {}
    for languages in permutations(sorted(captions["language"].unique()), 2):
        sides = [np.flatnonzero(captions["language"] == language) for language in languages]
        queries, candidates, right = PROTOCOLS[protocol](captions, *sides)
        if len(queries) and len(candidates) > 1:  # one alone is first, whatever was learnt
            ranked = ranks(vectors[queries], vectors[candidates], *right, scores(*languages))
            asked = captions.iloc[queries]
            found[languages] = SentenceRanks(
                asked["caption_id"].to_numpy(),
                asked["image_id"].to_numpy(),
                ranked,
                len(candidates),
            )
    return found


def sentence_scores(
    found: SentenceRanks, *, resamples: int, confidence: float, seed: int
) -> dict[str, object]:
    """Summarise the ranks from one language to another.

    Args:
        found: Ranks of all queries.
        resamples: Bootstrap draws of the images.
        confidence: Level of the intervals, such as 0.95.
        seed: Seed of the draws.

    Returns:
        What :func:`recalls.direction_scores` returns, and ``sum_of_recalls`` of the three with
        its interval. JSON-serialisable.
    """
    draws = bootstrapped_recalls(found.ranks, found.image_ids, resamples, seed)
    bounds = bootstrap_interval(draws, confidence).T.tolist()
    scores = direction_scores(found.ranks, bounds, found.n_candidates)
    return {
        **scores,
        "sum_of_recalls": sum(scores[f"r{k}"] for k in CUTOFFS),
        "sum_of_recalls_interval": bootstrap_interval(draws.sum(axis=1), confidence).tolist(),
    }


Rows = np.ndarray
Pool = tuple[Rows, Rows, tuple[np.ndarray, np.ndarray]]
"""Rows of the queries and of the candidates, and the groups within which they match."""


def _first(captions: pd.DataFrame, source: Rows, target: Rows) -> Pool:
    image = pd.factorize(captions["image_id"])[0]
    described = source[np.isin(image[source], image[target])]
    by_position = (
        captions.iloc[described].reset_index(drop=True).sort_values("position", kind="stable")
    )
    queries = described[np.sort(by_position.drop_duplicates("image_id").index)]
    return queries, target, (image[queries], image[target])


def _exact(captions: pd.DataFrame, source: Rows, target: Rows) -> Pool:
    meaning = pd.factorize(meanings(captions))[0]
    queries = source[np.isin(meaning[source], meaning[target])]
    candidates = target[np.isin(meaning[target], meaning[source])]
    return queries, candidates, (meaning[queries], meaning[candidates])


PROTOCOLS: dict[str, Callable[[pd.DataFrame, Rows, Rows], Pool]] = {
    "first": _first,
    "exact": _exact,
}
"""Who queries, who is ranked and what is right, by the protocol's name."""


def _check(captions: pd.DataFrame, vectors: np.ndarray, protocol: str) -> None:
    problems = []
    if len(captions) != len(vectors):
        problems.append(f"expected a vector per caption, found {len(vectors)} for {len(captions)}")
    if protocol not in PROTOCOLS:
        problems.append(f"expected a protocol of {sorted(PROTOCOLS)}, found {protocol!r}")
    repeated = captions.loc[captions["caption_id"].duplicated(), "caption_id"]
    if len(repeated):
        problems.append(f"{len(repeated)} captions are repeated (first: {repeated.iloc[0]!r})")
    raise_problems("translation retrieval", problems)
