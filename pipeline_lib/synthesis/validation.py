"""BLEU of a translator on parallel text, and the n-best lists that re-ranking reads."""

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
from sacrebleu.metrics import BLEU

from pipeline_lib.evaluation.machine_translation.quality import translation_quality
from pipeline_lib.evaluation.reranking.nbest import NBest
from pipeline_lib.models.translator import Hypothesis, Translator
from pipeline_lib.scheduling.each import Each
from pipeline_lib.text.languages import WITHOUT_SPACES, two_letters


def bleu_tokenizer(language: str) -> str:
    """Return sacrebleu's name of the tokenizer for raw text of a language.

    Words are those of mteval (13a). Where no spaces stand between them these would be sentences,
    of which few are right: such a language is measured by its characters.
    """
    code = two_letters(language)
    if code == "zh":
        return "zh"
    return "char" if code in WITHOUT_SPACES else "13a"


def greedy_bleu(translator: Translator, pairs: pd.DataFrame) -> float:
    """Return BLEU in per cent of greedy translations of ``source`` against ``target``.

    Raises:
        FloatingPointError: If the translator's scores of words are no numbers.
    """
    found = translator.translate(pairs["source"].tolist(), beam=1, n_best=1, alpha=0)
    if not all(found):  # no word is better than another
        raise FloatingPointError("scores of words of the validation are no numbers")
    metric = BLEU(tokenize=bleu_tokenizer(translator.recipe.target_language))
    return metric.corpus_score(best_texts(found), [pairs["target"].tolist()]).score


def measure(
    translator: Translator,
    pairs: pd.DataFrame,
    each: Each | None = None,
    *,
    resamples: int,
    confidence: float,
    seed: int,
) -> dict[str, dict[str, object]]:
    """Return the quality of translations of each split but the training one.

    Args:
        translator: Searches as its recipe says.
        pairs: Rows of :func:`parallel.parallel_text`.
        each: See :meth:`Translator.translate`.
        resamples: See :func:`translation_quality.translation_quality`.
        confidence: Likewise.
        seed: Likewise.
    """
    recipe, found = translator.recipe, {}
    for split, rows in pairs[pairs["split"] != "train"].groupby("split"):
        hypotheses = translator.translate(
            rows["source"].tolist(),
            beam=recipe.beam,
            n_best=1,
            alpha=recipe.length_normalization,
            each=each,
        )
        found[split] = translation_quality(
            best_texts(hypotheses),
            rows["target"].tolist(),
            tokenize=bleu_tokenizer(recipe.target_language),
            resamples=resamples,
            confidence=confidence,
            seed=seed,
        )
    return found


def best_texts(hypotheses: Sequence[Sequence[Hypothesis]]) -> list[str]:
    """Return the text of the best translation of each sentence."""
    return [each[0].text for each in hypotheses]


def nbest_lists(
    translator: Translator,
    sentences: Sequence[str],
    tokenize: Callable[[str], list[str]],
    each: Each | None = None,
) -> NBest:
    """Return the recipe's ``n_best`` translations of each sentence, as tokens.

    The feature is the log-likelihood log p(Y|X) of §5 of Calixto et al. 2017, the score that of
    the search. The beam is at least as wide as the list is long.
    """
    recipe = translator.recipe
    found = translator.translate(
        sentences,
        beam=max(recipe.beam, recipe.n_best),
        n_best=recipe.n_best,
        alpha=recipe.length_normalization,
        each=each,
    )
    rows = [(number, each) for number, listed in enumerate(found) for each in listed]
    return NBest(
        sentence=np.array([number for number, _ in rows], np.int64),
        text=[" ".join(tokenize(each.text)) for _, each in rows],
        names=("log_likelihood",),
        features=np.array([[each.log_likelihood] for _, each in rows]),
        scores=np.array([each.score for _, each in rows]),
    )
