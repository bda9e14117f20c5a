"""params.yaml: what the recipes are evaluated on."""

from typing import Annotated

from pydantic import Field

from pipeline_lib.settings.strict import (
    Ascending,
    Count,
    Language,
    Name,
    Seed,
    Sentence,
    Several,
    Strict,
)


class RetrievalEvaluation(Strict):
    """Image-text retrieval; its split and its confidence intervals are those of all tasks.

    Attributes:
        split: Whose images and captions are embedded.
        bootstrap_samples: Draws of the images, or of another unit, for one model's intervals.
        confidence: Level of the intervals.
        seed: Of draws and permutations.
        fold_images: Pools of twice as many images or more are also ranked in folds of about so
            many, as COCO's 5,000 test images are in five of 1,000.
    """

    split: str
    bootstrap_samples: Count
    confidence: Annotated[float, Field(gt=0, lt=1)]
    seed: Seed
    fold_images: Count

    @property
    def bootstrap(self) -> dict[str, float]:
        """The arguments of every function that makes intervals."""
        return {
            "resamples": self.bootstrap_samples,
            "confidence": self.confidence,
            "seed": self.seed,
        }


class ScoredSet(Strict):
    """A file of scored sentence pairs, see corpora.scored_pairs.

    Attributes:
        file: Below the folder of the sets.
        language: Of its sentences.
    """

    file: str
    language: Language


class StsEvaluation(Strict):
    """Semantic textual similarity.

    Attributes:
        source: Folder of the scored sets.
        sets: Scored sets by name.
    """

    source: str
    sets: dict[Name, ScoredSet]


class WordTranslationEvaluation(Strict):
    """Word translation by the test fold of a lexicon.

    Attributes:
        lexicon: Entry of ``lexicons``, or ``none``.
        csls_neighbours: Neighbours that tell how dense a word's surroundings are.
    """

    lexicon: Name
    csls_neighbours: Count


class ProbeEvaluation(Strict):
    """Hubs, and recall by kind of caption.

    Attributes:
        neighbours: How many vectors are near another one, k of N_k.
        caption_length: Bins of captions by their number of tokens: the first number of each bin but
            the lowest.
        rarest_word: Bins by how often training has a caption's rarest word, in the same form.
    """

    neighbours: Count
    caption_length: Ascending
    rarest_word: Ascending


class Significance(Strict):
    """Intervals of means over seeds, and tests of two recipes, or of what re-ranking gains.

    Attributes:
        draws: How many joint draws of seeds and images, or sentences. The smallest possible p is
            1 / (draws + 1), and the correction multiplies it by the number of tests.
    """

    draws: Count


class Comparison(Strict):
    """Recipes that answer one question, tested against a baseline on the queries they share.

    Attributes:
        question: The question, as a title.
        baseline: Recipe that the others are tested against.
        recipes: The others.
    """

    question: Sentence
    baseline: Name
    recipes: Several[Name]


class Evaluations(Strict):
    """The tasks that recipes are measured on, and that have settings.

    Attributes:
        retrieval: Photos by captions and captions by photos.
        sts: Sentence similarity.
        word_translation: Words by their translations.
        probes: What is asked of embeddings besides.
        significance: Tests of differences.
    """

    retrieval: RetrievalEvaluation
    sts: StsEvaluation
    word_translation: WordTranslationEvaluation
    probes: ProbeEvaluation
    significance: Significance

    @property
    def drawn(self) -> dict[str, float]:
        """The arguments of every function that draws seeds and images, or sentences."""
        return {**self.retrieval.bootstrap, "resamples": self.significance.draws}
