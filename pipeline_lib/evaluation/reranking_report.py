"""What re-ranking brings: the translator's own first choice, MIRA's, and the bounds of both."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pipeline_lib.evaluation.bleu import bleu, bleu_statistics
from pipeline_lib.evaluation.meteor import meteor
from pipeline_lib.evaluation.nbest import NBest
from pipeline_lib.evaluation.reranking import (
    best_rows,
    oracle_rows,
    random_bleu,
    tune_weights,
)
from pipeline_lib.evaluation.significance import randomisation_test
from pipeline_lib.evaluation.translation_quality import ter, ter_statistics, translation_quality
from pipeline_lib.settings.evaluations import RetrievalEvaluation
from pipeline_lib.settings.rerankings import Reranking

Best = dict[str, list[str]]
"""Translations that come first, ``own`` and ``reranked``, one per sentence."""


@dataclass(frozen=True)
class Lists:
    """N-best lists of one split with what they should say.

    Attributes:
        nbest: Translations as tokens, with all features.
        references: Tokens of one human translation of each sentence, joined by blanks.
    """

    nbest: NBest
    references: Sequence[str]

    @property
    def statistics(self) -> np.ndarray:
        """BLEU statistics of each hypothesis ``[hypotheses, 10]``."""
        references = [self.references[number] for number in self.nbest.sentence]
        return bleu_statistics(self.nbest.text, references, "none")


def rerank(
    val: Lists, test: Lists, language: str, settings: Reranking, bootstrap: RetrievalEvaluation
) -> tuple[dict[str, object], dict[str, Best]]:
    """Tune the weights of all features on ``val``, and report what they choose in ``test``.

    The weights start from the first feature, the log-likelihood, alone.

    Args:
        val: Lists to tune on.
        test: Lists to apply the weights to.
        language: Of the translations.
        settings: Of MIRA, and whether to measure METEOR.
        bootstrap: Of intervals and tests.

    Returns:
        The report, JSON-serialisable, and the chosen translations by split. The report holds
        ``weights`` by feature, ``epoch`` of MIRA they are from, and for ``val`` and ``test``:
        ``own`` and ``reranked`` (see translation_quality, and meteor where it is asked for),
        ``oracle_bleu``, ``random_bleu``, ``p_bleu`` and ``p_ter`` of the difference between own
        and re-ranked, ``n_hypotheses``.

    Raises:
        ContractError: METEOR is asked for and cannot be measured.
    """
    tuned = tune_weights(
        val.nbest.features,
        val.statistics,
        val.nbest.sentence,
        np.eye(val.nbest.features.shape[1])[0],
        step_cap=settings.step_cap,
        decay=settings.decay,
        epochs=settings.epochs,
        seed=settings.order_seed,
    )
    splits = {"val": val, "test": test}
    chosen = {split: _choose(lists.nbest, tuned.weights) for split, lists in splits.items()}
    outcomes = {split: _outcome(lists, chosen[split], bootstrap) for split, lists in splits.items()}
    texts = {split: _texts(lists.nbest, chosen[split]) for split, lists in splits.items()}
    if settings.meteor:
        for split, found in outcomes.items():
            for name, hypotheses in texts[split].items():
                found[name] |= meteor(hypotheses, splits[split].references, language)
    report = {
        "weights": dict(zip(val.nbest.names, tuned.weights.tolist(), strict=True)),
        "epoch": tuned.epoch,
        **outcomes,
    }
    return report, texts


def _choose(nbest: NBest, weights: np.ndarray) -> dict[str, np.ndarray]:
    """Return the rows that come first, by the translator and by the weights."""
    scores = {"own": nbest.scores, "reranked": nbest.features @ weights}
    return {name: best_rows(each, nbest.sentence) for name, each in scores.items()}


def _texts(nbest: NBest, rows: dict[str, np.ndarray]) -> Best:
    return {name: [nbest.text[row] for row in chosen] for name, chosen in rows.items()}


def _outcome(
    lists: Lists, rows: dict[str, np.ndarray], settings: RetrievalEvaluation
) -> dict[str, object]:
    nbest, statistics = lists.nbest, lists.statistics
    texts = _texts(nbest, rows)
    edits = [ter_statistics(texts[name], lists.references) for name in rows]
    draws, seed = settings.bootstrap_samples, settings.seed
    quality = {
        name: translation_quality(chosen, lists.references, tokenize="none", **settings.bootstrap)
        for name, chosen in texts.items()
    }
    chosen = [statistics[each] for each in rows.values()]
    return {
        **quality,
        "p_bleu": randomisation_test(*chosen, bleu, draws, seed),
        "p_ter": randomisation_test(*edits, ter, draws, seed),
        "oracle_bleu": float(bleu(statistics[oracle_rows(statistics, nbest.sentence)].sum(0))),
        "random_bleu": float(random_bleu(statistics, nbest.sentence, draws, seed).mean()),
        "n_hypotheses": len(nbest.text),
    }
