"""What re-ranking brings: the translator's own first choice, MIRA's, a control, and bounds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pipeline_lib.evaluation.machine_translation.bleu import bleu, bleu_statistics
from pipeline_lib.evaluation.machine_translation.meteor import meteor
from pipeline_lib.evaluation.machine_translation.quality import (
    ter,
    ter_statistics,
    translation_quality,
)
from pipeline_lib.evaluation.reranking.gains import gain
from pipeline_lib.evaluation.reranking.mira import (
    Tuning,
    best_rows,
    oracle_rows,
    random_bleu,
    tune_weights,
    weighted,
)
from pipeline_lib.evaluation.reranking.nbest import NBest
from pipeline_lib.evaluation.significance import Score
from pipeline_lib.settings.evaluations import Evaluations
from pipeline_lib.settings.rerankings import Reranking

OWN, CONTROL = "own", "control"
"""Rankings by the translator, and by its features with weights that are tuned as those of all."""

Ranking = str | int
"""``own``, ``control``, or a seed of the recipe whose similarities are features besides."""

Choices = dict[Ranking, list[str]]
"""Translations that come first by each ranking, one per sentence."""


@dataclass(frozen=True)
class Lists:
    """N-best lists of one split with what they should say.

    Attributes:
        nbest: Translations as tokens, with the translator's features; its score is the first.
        similarities: By each seed's model, ``[hypotheses, similarities]``.
        references: Tokens of one human translation of each sentence, joined by blanks.
    """

    nbest: NBest
    similarities: Mapping[int, np.ndarray]
    references: Sequence[str]

    @cached_property
    def statistics(self) -> np.ndarray:
        """BLEU statistics of each hypothesis ``[hypotheses, 10]``."""
        references = [self.references[number] for number in self.nbest.sentence]
        return bleu_statistics(self.nbest.text, references, "none")

    def features(self, ranking: Ranking) -> np.ndarray:
        """Return what a ranking is made of ``[hypotheses, features]``."""
        own = self.nbest.features
        return own if ranking == CONTROL else np.hstack([own, self.similarities[ranking]])

    def names(self, ranking: Ranking, similarities: Sequence[str]) -> tuple[str, ...]:
        """Return the names of these features."""
        return self.nbest.names if ranking == CONTROL else (*self.nbest.names, *similarities)


def rerank(
    val: Lists, test: Lists, language: str, settings: Reranking, evaluations: Evaluations
) -> tuple[dict[str, object], dict[str, Choices]]:
    """Tune the weights of all features on ``val``, and report what they choose in ``test``.

    The weights start from the translator's own score alone, those of each seed's model apart. As a
    control they are also tuned without the similarities.

    Args:
        val: Lists to tune on.
        test: Lists to apply the weights to.
        language: Of the translations.
        settings: Of MIRA, the similarities and seeds, and whether to measure METEOR.
        evaluations: Of intervals and tests.

    Returns:
        The report, JSON-serialisable, and the chosen translations by split. The report holds for
        ``control``, and for ``reranked`` by seed, the ``weights`` by feature and the ``epoch`` of
        MIRA they are from, and for ``val`` and ``test``: ``own``, ``control``, and ``reranked`` by
        seed (see translation_quality, and meteor where it is asked for), ``bleu_gain`` and
        ``ter_gain`` of the re-ranked over the translator's own and ``bleu_gain_over_control`` (see
        gains.gain), ``oracle_bleu``, ``random_bleu``, ``n_hypotheses``.

    Raises:
        ContractError: METEOR is asked for and cannot be measured.
    """
    tuned = {ranking: _tune(val, ranking, settings) for ranking in (CONTROL, *settings.seeds)}
    outcomes, texts, weights = {}, {}, {}
    for split, lists in (("val", val), ("test", test)):
        rows = _choose(lists, tuned)
        chosen = texts[split] = _texts(lists.nbest, rows)
        outcomes[split] = {
            **_quality(chosen, lists.references, language, settings, evaluations),
            **_gains(lists, rows, chosen, evaluations),
            **_bounds(lists, evaluations),
        }
    for ranking, found in tuned.items():
        names = val.names(ranking, settings.similarities)
        named = dict(zip(names, found.weights.tolist(), strict=True))
        weights[ranking] = {"weights": named, "epoch": found.epoch}
    return {**_by_seed(weights), **outcomes}, texts


def _tune(val: Lists, ranking: Ranking, settings: Reranking) -> Tuning:
    features = val.features(ranking)
    return tune_weights(
        features,
        val.statistics,
        val.nbest.sentence,
        np.eye(features.shape[1])[0],
        step_cap=settings.step_cap,
        decay=settings.decay,
        epochs=settings.epochs,
        seed=settings.order_seed,
    )


def _choose(lists: Lists, tuned: Mapping[Ranking, Tuning]) -> dict[Ranking, np.ndarray]:
    """Return the rows that come first, by the translator and by each set of weights."""
    scores = {
        ranking: weighted(lists.features(ranking), found.weights)
        for ranking, found in tuned.items()
    }
    scores = {OWN: lists.nbest.scores, **scores}
    return {ranking: best_rows(each, lists.nbest.sentence) for ranking, each in scores.items()}


def _texts(nbest: NBest, rows: Mapping[Ranking, np.ndarray]) -> Choices:
    return {name: [nbest.text[row] for row in chosen] for name, chosen in rows.items()}


def _quality(
    texts: Choices,
    references: Sequence[str],
    language: str,
    settings: Reranking,
    evaluations: Evaluations,
) -> dict[str, object]:
    """Return the quality of what each ranking chose, those of the seeds under ``reranked``."""
    found = {}
    for ranking, chosen in texts.items():
        drawn = evaluations.retrieval.bootstrap
        found[ranking] = translation_quality(chosen, references, tokenize="none", **drawn)
        if settings.meteor:
            found[ranking] |= meteor(chosen, references, language)
    return _by_seed(found)


def _gains(
    lists: Lists, rows: Mapping[Ranking, np.ndarray], texts: Choices, evaluations: Evaluations
) -> dict[str, object]:
    """Return what the seeds' models bring, by BLEU and by TER."""
    counts = {ranking: lists.statistics[chosen] for ranking, chosen in rows.items()}
    edits = {
        ranking: ter_statistics(chosen, lists.references, "none")
        for ranking, chosen in texts.items()
    }

    def over(ranking: str, found: Mapping[Ranking, np.ndarray], score: Score) -> dict[str, object]:
        seeds = np.stack([found[seed] for seed in lists.similarities])
        return gain(found[ranking], seeds, score, evaluations.drawn)

    return {
        "bleu_gain": over(OWN, counts, bleu),
        "ter_gain": over(OWN, edits, ter),
        "bleu_gain_over_control": over(CONTROL, counts, bleu),
    }


def _bounds(lists: Lists, evaluations: Evaluations) -> dict[str, object]:
    """Return BLEU of the best choices in hindsight, and of chance."""
    statistics, sentence = lists.statistics, lists.nbest.sentence
    draws, seed = evaluations.retrieval.bootstrap_samples, evaluations.retrieval.seed
    return {
        "oracle_bleu": float(bleu(statistics[oracle_rows(statistics, sentence)].sum(axis=0))),
        "random_bleu": float(random_bleu(statistics, sentence, draws, seed).mean()),
        "n_hypotheses": len(lists.nbest.text),
    }


def _by_seed(found: Mapping[Ranking, object]) -> dict[str, object]:
    """Put what is known of each seed under ``reranked``."""
    others = {ranking: each for ranking, each in found.items() if ranking in (OWN, CONTROL)}
    return others | {"reranked": {str(k): each for k, each in found.items() if k not in others}}
