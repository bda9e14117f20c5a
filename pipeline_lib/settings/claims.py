"""params.yaml: what papers claim, and the rows of this study that decide it."""

from typing import Literal, NamedTuple

from pydantic import Field

from pipeline_lib.settings.strict import Name, Sentence, Strict


class Measure(NamedTuple):
    """A figure (reporting.figures.KEY) that claims compare, less its recipe and item."""

    task: str
    variant: str
    metric: str
    form: str = "+.1f"


MEASURES = {
    "sum_of_recalls": Measure("retrieval", "", "sum_of_recalls"),
    "caption_retrieval": Measure("sentence_retrieval", "first", "r1"),
    "translation_retrieval": Measure("sentence_retrieval", "exact", "r1"),
    "sts": Measure("sts", "all", "pearson", "+.3f"),
    "sts_unseen": Measure("sts", "without_overlap", "pearson", "+.3f"),
    "word_translation": Measure("word_translation", "nearest_neighbour", "p1"),
    "bleu": Measure("reranking", "", "bleu"),
    "bleu_over_control": Measure("reranking", "control", "bleu"),
}
"""Measures by the name that claims give. ``bleu`` is of entries of ``rerankings``, and of their
translators' own choices under the names of entries of ``translators``; ``bleu_over_control`` has in
their place what is chosen without the similarities, by weights that are tuned as well."""


class Compared(Strict):
    """A row, and the one that it is said to differ from.

    Attributes:
        row: Recipe, re-ranking or translator.
        against: Another one.
    """

    row: Name
    against: Name


class Claim(Strict):
    """One main claim of a paper, or what we ask besides.

    Attributes:
        paper: Entry of papers.yaml.
        claim: What it says, in a sentence.
        printed: The paper's figures and their place; ``none`` for what it does not ask.
        measure: In which figure they are compared (:data:`MEASURES`).
        expected: Whether ``row`` is said to have more than ``against``, or less.
        compared: Rows by what is measured: a language, a pair of them (``en-de``), a scored set.
    """

    paper: str
    claim: Sentence
    printed: Sentence
    measure: Literal[tuple(MEASURES)]
    expected: Literal["more", "less"]
    compared: dict[str, Compared] = Field(min_length=1)
