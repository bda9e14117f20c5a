"""What re-ranking brings: the translator's own first choice, MIRA's, a control, and bounds."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from pipeline_lib.evaluation.machine_translation.bleu import bleu, bleu_statistics
from pipeline_lib.evaluation.machine_translation.meteor import meteor
from pipeline_lib.evaluation.machine_translation.quality import (
    ter,
    ter_statistics,
    translation_quality,
)
from pipeline_lib.evaluation.reranking.mira import (
    Tuning,
    best_rows,
    oracle_rows,
    random_bleu,
    tune_weights,
    weighted,
)
from pipeline_lib.evaluation.reranking.nbest import NBest
from pipeline_lib.evaluation.significance import Score, randomisation_test
from pipeline_lib.settings.evaluations import RetrievalEvaluation
from pipeline_lib.settings.rerankings import Reranking

Best = dict[str, list[str]]
"""Translations that come first, ``own``, ``control`` and ``reranked``, one per sentence."""


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

    The weights start from the translator's own score, the first feature, alone. As a control they
    are also tuned without the similarities.

    Args:
        val: Lists to tune on.
        test: Lists to apply the weights to.
        language: Of the translations.
        settings: Of MIRA, and whether to measure METEOR.
        bootstrap: Of intervals and tests.

    Returns:
        The report, JSON-serialisable, and the chosen translations by split. The report holds for
        ``control`` and ``reranked`` the ``weights`` by feature and the ``epoch`` of MIRA they are
        from, and for ``val`` and ``test``: ``own``, ``control`` and ``reranked`` (see
        translation_quality, and meteor where it is asked for), ``oracle_bleu``, ``random_bleu``,
        ``p_bleu`` and ``p_ter`` of the difference between own and re-ranked,
        ``p_bleu_control`` of that between control and re-ranked, ``n_hypotheses``.

    Raises:
        ContractError: METEOR is asked for and cannot be measured.
    """
    names = np.array(val.nbest.names)
    used = {
        "control": ~np.isin(names, settings.similarities),
        "reranked": np.full(len(names), True),
    }
    tuned = {name: _tune(val, columns, settings) for name, columns in used.items()}
    weights = {name: each.weights for name, each in tuned.items()}
    splits = {"val": val, "test": test}
    chosen = {split: _choose(lists.nbest, weights) for split, lists in splits.items()}
    outcomes = {split: _outcome(lists, chosen[split], bootstrap) for split, lists in splits.items()}
    texts = {split: _texts(lists.nbest, chosen[split]) for split, lists in splits.items()}
    if settings.meteor:
        for split, found in outcomes.items():
            for name, hypotheses in texts[split].items():
                found[name] |= meteor(hypotheses, splits[split].references, language)
    tunings = {
        name: {
            "weights": dict(
                zip(names[used[name]].tolist(), each.weights[used[name]].tolist(), strict=True)
            ),
            "epoch": each.epoch,
        }
        for name, each in tuned.items()
    }
    return {**tunings, **outcomes}, texts


def _tune(val: Lists, columns: np.ndarray, settings: Reranking) -> Tuning:
    """Tune the weights of some features; those of the others are 0."""
    features = val.nbest.features[:, columns]
    tuned = tune_weights(
        features,
        val.statistics,
        val.nbest.sentence,
        np.eye(columns.sum())[0],
        step_cap=settings.step_cap,
        decay=settings.decay,
        epochs=settings.epochs,
        seed=settings.order_seed,
    )
    weights = np.zeros(val.nbest.features.shape[1])
    weights[columns] = tuned.weights
    return replace(tuned, weights=weights)


def _choose(nbest: NBest, weights: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the rows that come first, by the translator and by each set of weights."""
    scores = {name: weighted(nbest.features, each) for name, each in weights.items()}
    scores = {"own": nbest.scores, **scores}
    return {name: best_rows(each, nbest.sentence) for name, each in scores.items()}


def _texts(nbest: NBest, rows: dict[str, np.ndarray]) -> Best:
    return {name: [nbest.text[row] for row in chosen] for name, chosen in rows.items()}


def _outcome(
    lists: Lists, rows: dict[str, np.ndarray], settings: RetrievalEvaluation
) -> dict[str, object]:
    nbest, statistics = lists.nbest, lists.statistics
    texts = _texts(nbest, rows)
    edits = {name: ter_statistics(chosen, lists.references) for name, chosen in texts.items()}
    draws, seed = settings.bootstrap_samples, settings.seed
    quality = {
        name: translation_quality(chosen, lists.references, tokenize="none", **settings.bootstrap)
        for name, chosen in texts.items()
    }
    chosen = {name: statistics[each] for name, each in rows.items()}

    def p(counted: dict[str, np.ndarray], score: Score, against: str) -> float:
        return randomisation_test(counted[against], counted["reranked"], score, draws, seed)

    return {
        **quality,
        "p_bleu": p(chosen, bleu, "own"),
        "p_ter": p(edits, ter, "own"),
        "p_bleu_control": p(chosen, bleu, "control"),
        "oracle_bleu": float(bleu(statistics[oracle_rows(statistics, nbest.sentence)].sum(0))),
        "random_bleu": float(random_bleu(statistics, nbest.sentence, draws, seed).mean()),
        "n_hypotheses": len(nbest.text),
    }
