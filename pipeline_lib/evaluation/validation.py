"""Scores of a model while it trains: recalls on the validation captions it was given."""

import numpy as np

from pipeline_lib.evaluation.ranking import bidirectional_ranks
from pipeline_lib.evaluation.scores import SCORES
from pipeline_lib.models.joint_space import JointSpace
from pipeline_lib.training.corpus import Corpus
from pipeline_lib.training.loop import MEAN_RANK, RECALL_SUM


def validation_scores(model: JointSpace, corpus: Corpus) -> dict[str, float]:
    """Return the sum of six recalls (%, R@1, 5 and 10 both ways) per (set, language) and in all.

    The total selects the best weights (§3.1 of Kádár et al. 2019), or the mean rank does (the code
    of Calixto et al. 2017). A language's pool is the images that have captions in it.
    """
    images = model.embed_features(corpus.features).numpy()
    sums, mean_ranks = {}, []
    for (set_name, language), sentences in corpus.sentences.items():
        captions = model.embed_tokens(sentences.token_ids, sentences.lengths, language).numpy()
        pool, index = np.unique(sentences.image_index.cpu().numpy(), return_inverse=True)
        scores = SCORES[model.recipe.similarity]
        ranks = bidirectional_ranks(images[pool], captions, index, scores)
        recalls = [100 * np.mean(side <= k) for side in ranks for k in (1, 5, 10)]
        sums[f"{RECALL_SUM}_{set_name}_{language}"] = round(float(sum(recalls)), 2)
        mean_ranks += [float(side.mean()) for side in ranks]
    return {
        RECALL_SUM: round(sum(sums.values()), 2),
        MEAN_RANK: round(float(np.mean(mean_ranks)), 2),
        **sums,
    }
