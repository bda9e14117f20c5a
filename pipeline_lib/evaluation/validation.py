"""Scores of a model while it trains: recalls on the validation captions, and how words align."""

from collections.abc import Mapping, Sequence

import numpy as np

from pipeline_lib.contract.recalls import recalls
from pipeline_lib.contract.reports import MEAN_RANK, RECALL_SUM
from pipeline_lib.evaluation.retrieval.ranking import bidirectional_ranks
from pipeline_lib.evaluation.retrieval.scores import SCORES
from pipeline_lib.evaluation.words.ranks import (
    CORRECTIONS,
    gold_pairs,
    unit_rows,
    word_translation_ranks,
)
from pipeline_lib.models.joint_space import JointSpace
from pipeline_lib.training.examples import Examples

WordPairs = Mapping[tuple[str, str], Sequence[tuple[str, str]]]
"""Pairs (word, translation) by (source language, target language)."""


def validation_scores(model: JointSpace, examples: Examples, tested: WordPairs) -> dict[str, float]:
    """Score a model by images and captions, and by words if any translations are given.

    The sum of all recalls selects the best weights (§3.1 of Kádár et al. 2019), or the mean rank
    does (the code of Calixto et al. 2017). A language's pool is the images that have captions in
    it. R@1 and the words' precision make figure 2 of Mohammadshahi et al. 2019.

    Args:
        model: In evaluation mode.
        examples: The validation captions and their images.
        tested: Translations, of which those between words of the model are tested.

    Returns:
        ``recall_sum`` and ``mean_rank`` of all pools; of each (set, language) ``recall_sum_...``,
        the sum of six recalls (%, R@1, 5 and 10 both ways), and ``image_to_text_r1_...``; of each
        (source, target) ``word_translation_p1_...``, the share (%) of words whose nearest neighbour
        translates them. A vocabulary that pools the languages has none of these: which of its words
        are of which language, it does not say.

    Raises:
        FloatingPointError: If weights that are numbers give vectors that are none.
    """
    images = _finite(model.embed_features(examples.features).numpy())
    sums, first, mean_ranks = {}, {}, []
    for (set_name, language), sentences in examples.sentences.items():
        captions = model.embed_tokens(sentences.token_ids, sentences.lengths, language)
        captions = _finite(captions.numpy())
        pool, index = np.unique(sentences.image_index.cpu().numpy(), return_inverse=True)
        scores = SCORES[model.architecture.similarity]
        ranks = bidirectional_ranks(images[pool], captions, index, scores)
        found = [share for side in ranks for share in recalls(side)]
        sums[f"{RECALL_SUM}_{set_name}_{language}"] = round(sum(found), 2)
        first[f"image_to_text_r1_{set_name}_{language}"] = round(found[0], 2)
        mean_ranks += [float(side.mean()) for side in ranks]
    return {
        RECALL_SUM: round(sum(sums.values()), 2),
        MEAN_RANK: round(float(np.mean(mean_ranks)), 2),
        **sums,
        **first,
        **_word_precisions(model, tested),
    }


def _finite(vectors: np.ndarray) -> np.ndarray:
    if not np.isfinite(vectors).all():
        raise FloatingPointError("vectors of the validation are no numbers or infinite")
    return vectors


def _word_precisions(model: JointSpace, tested: WordPairs) -> dict[str, float]:
    if len(model.vocabulary.tables) == 1:
        return {}  # each word would be its own nearest neighbour
    words = {language: model.embed_words(language) for pair in tested for language in pair}
    precisions = {}
    for (source, target), pairs in tested.items():
        gold = gold_pairs(words[source][0], words[target][0], pairs)
        if len(gold):
            vectors = [unit_rows(words[language][1]) for language in (source, target)]
            correction = CORRECTIONS["nearest_neighbour"](*vectors, 1)
            ranks = word_translation_ranks(*vectors, gold, correction)
            precisions[f"word_translation_p1_{source}_{target}"] = round(_percent(ranks <= 1), 2)
    return precisions


def _percent(hits: np.ndarray) -> float:
    return 100 * float(np.mean(hits))
