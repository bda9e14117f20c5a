"""One recipe with all that its evaluation reads."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

import numpy as np
import pandas as pd

from pipeline_lib.contract.tables import pairs_of_seed
from pipeline_lib.evaluation.retrieval.pools import RankedPool, rank_pools
from pipeline_lib.evaluation.retrieval.ranking import Scores
from pipeline_lib.evaluation.retrieval.scores import SCORES
from pipeline_lib.evaluation.vectors import Embeddings, Labelled
from pipeline_lib.settings.evaluations import Evaluations
from pipeline_lib.settings.recipes import Recipe
from pipeline_lib.text.training_text import training_sentences


@dataclass(frozen=True)
class Evaluated:
    """A recipe, its models' vectors, and the data that they are measured on.

    Attributes:
        recipe: What was trained.
        settings: Of all tasks.
        pools: The kind of caption that is ranked, by language of the recipe.
        embeddings: Vectors by seed.
        captions: Captions of the evaluated split (contract.tables.CAPTIONS).
        pairs: Captions that the recipe was trained and validated on (contract.tables.PAIRS).
        scored: Scored pairs of each STS set in one of the recipe's languages, by name.
        lexicon: Of word translation (contract.lexicons.LEXICON).
    """

    recipe: Recipe
    settings: Evaluations
    pools: Mapping[str, str]
    embeddings: Mapping[int, Embeddings]
    captions: pd.DataFrame
    pairs: pd.DataFrame
    scored: Mapping[str, pd.DataFrame]
    lexicon: pd.DataFrame

    @property
    def scores(self) -> Scores:
        """The recipe's similarity of all pairs of some vectors and some others."""
        return SCORES[self.recipe.similarity]

    def sentence_scores(self, source: str, target: str) -> Scores:
        """Return the scores of all pairs of some sentences of one language and some of another.

        They are compared the way round in which they were in training, if that compares any.
        """
        if not self.recipe.compares_turned(source, target):
            return self.scores
        return lambda queries, candidates: np.ascontiguousarray(self.scores(candidates, queries).T)

    @property
    def bootstrap(self) -> dict[str, float]:
        """The arguments of every function that makes intervals."""
        return self.settings.retrieval.bootstrap

    @cached_property
    def ranked(self) -> dict[int, dict[str, RankedPool]]:
        """Ranks of image-text retrieval, by seed and language."""
        return {
            seed: rank_pools(vectors, self.captions, self.pools, self.scores)
            for seed, vectors in sorted(self.embeddings.items())
        }

    @cached_property
    def training_words(self) -> dict[int, dict[str, Counter[str]]]:
        """How often each word occurs in a seed's training captions, by seed and language."""
        return {
            seed: {
                language: Counter(chain.from_iterable(sentences))
                for language, sentences in training_sentences(self.pairs_of(seed)).items()
            }
            for seed in self.embeddings
        }

    def pairs_of(self, seed: int) -> pd.DataFrame:
        """Return the captions of one seed: pseudopairs differ."""
        return pairs_of_seed(self.pairs, seed)

    def words(self, seed: int, language: str) -> Labelled:
        """Return the words of a language's training captions that have a vector, and the vectors.

        A pooled vocabulary has the words of its other languages too, which are left out.
        """
        words, vectors = self.embeddings[seed].words[language]
        kept = np.array([word in self.training_words[seed][language] for word in words], bool)
        return words[kept], vectors[kept]
