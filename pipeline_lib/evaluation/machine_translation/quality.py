"""Quality of translations against references: BLEU, TER and chrF by sacrebleu."""

from collections.abc import Sequence

import numpy as np
from sacrebleu.metrics import BLEU, CHRF, TER

from pipeline_lib.evaluation.machine_translation.bleu import bleu, bleu_statistics
from pipeline_lib.evaluation.significance import bootstrap_interval, bootstrap_totals


def translation_quality(
    hypotheses: Sequence[str],
    references: Sequence[str],
    *,
    tokenize: str,
    resamples: int,
    confidence: float,
    seed: int,
) -> dict[str, object]:
    """Score translations of a corpus (Post 2018).

    Args:
        hypotheses: Translations ``[segments]``.
        references: One reference each ``[segments]``.
        tokenize: sacrebleu's tokenizer for BLEU; ``none`` for text that is tokenised.
        resamples: Bootstrap draws of the segments.
        confidence: Level of the intervals, such as 0.95.
        seed: Seed of the draws.

    Returns:
        ``bleu``, ``ter`` and ``chrf`` in per cent, each with ``..._signature``, the first two with
        ``..._interval``, and ``n_segments``. JSON-serialisable.
    """
    texts = hypotheses, references
    parted = tuple(_words(each, tokenize) for each in texts)
    metrics = {
        "bleu": (BLEU(tokenize=tokenize, force=True), texts),
        "ter": (_edit_rate(tokenize), parted),
        "chrf": (CHRF(), texts),
    }
    found: dict[str, object] = {"n_segments": len(hypotheses)}
    for name, (metric, (made, expected)) in metrics.items():
        found[name] = metric.corpus_score(made, [expected]).score
        found[f"{name}_signature"] = str(metric.get_signature())
    if tokenize == "char":
        found["ter_signature"] += "|split:char"
    counted = {
        "bleu": (bleu, bleu_statistics(hypotheses, references, tokenize)),
        "ter": (ter, ter_statistics(hypotheses, references, tokenize)),
    }
    draws = {
        name: score(bootstrap_totals(statistics, resamples, seed))
        for name, (score, statistics) in counted.items()
    }
    bounds = {name: bootstrap_interval(each, confidence).tolist() for name, each in draws.items()}
    return {**found, **{f"{name}_interval": bound for name, bound in bounds.items()}}


def ter_statistics(
    hypotheses: Sequence[str], references: Sequence[str], tokenize: str
) -> np.ndarray:
    """Return the edits of each segment and the length of its reference ``[segments, 2]``.

    ``tokenize`` as in :func:`translation_quality`.
    """
    metric = _edit_rate(tokenize)
    parted = (_words(texts, tokenize) for texts in (hypotheses, references))
    found = (
        metric.sentence_score(hypothesis, [reference])
        for hypothesis, reference in zip(*parted, strict=True)
    )
    return np.array([(score.num_edits, score.ref_length) for score in found]).reshape(-1, 2)


def _edit_rate(tokenize: str) -> TER:
    """Return sacrebleu's TER: of words, or of characters where no spaces part the words.

    A whole sentence of raw Chinese would be one word, and one edit.
    """
    chinese = tokenize == "zh"
    return TER(normalized=chinese, asian_support=chinese)


def _words(texts: Sequence[str], tokenize: str) -> Sequence[str]:
    """Return texts with blanks between all characters, where sacrebleu's TER parts only Han."""
    return [" ".join("".join(text.split())) for text in texts] if tokenize == "char" else texts


def ter(totals: np.ndarray) -> np.ndarray:
    """Return translation edit rate in per cent of summed statistics (Snover et al. 2006)."""
    return 100 * totals[..., 0] / totals[..., 1]
