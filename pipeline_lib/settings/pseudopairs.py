"""params.yaml: pseudopairs, captions borrowed from other images (Kádár et al. 2019, §2.2)."""

from typing import Annotated, Literal

from pydantic import Field

from pipeline_lib.settings.strict import Count, Language, Name, Seed, Several, Strict


class Nearest(Strict):
    """The caption with the highest cosine: the paper's rule."""

    rule: Literal["nearest"]


class Csls(Strict):
    """The highest cosine after taking off how close both captions are to others (CSLS).

    Attributes:
        neighbours: Nearest captions of the other side whose mean cosine is taken off.
    """

    rule: Literal["csls"]
    neighbours: Count


class OneToOne(Strict):
    """The best pairs first, in which no caption is lent more often than ``reuse_cap``.

    Attributes:
        neighbours: Captions that each caption may borrow from; without a free one it borrows
            nothing.
        reuse_cap: How often a caption is lent at most.
    """

    rule: Literal["one_to_one"]
    neighbours: Count
    reuse_cap: Count


Retrieval = Annotated[Nearest | Csls | OneToOne, Field(discriminator="rule")]


class Side(Strict):
    """Training captions of one pair set in one language.

    Attributes:
        pairs: The pair set; of its rows those that it added itself, not those of its ``plus``.
        language: Of the captions.
        facts: File of the facts that each caption states, as a generated world has it
            (truth.jsonl), or the empty data/facts/none.jsonl.
    """

    pairs: Name
    language: Language
    facts: str


class Pseudopairs(Strict):
    """Captions of one side written under the images of the other, chosen by a trained teacher.

    Attributes:
        teacher: Recipe of the model whose sentence vectors are compared.
        seeds: Which of its models: that of each seed borrows for the learners of this seed.
        images_of: Each caption here borrows one for its image.
        captions_of: The captions that are lent.
        retrieval: Which caption is borrowed.
        filter: Which share of the pairs is kept, by the score that the retrieval maximises.
        plus: Pair set to add, or ``none``.
        compare_with: Pseudopairs whose captions are compared with these, or ``none``.
    """

    teacher: Name
    seeds: Several[Seed]
    images_of: Side
    captions_of: Side
    retrieval: Retrieval
    filter: Literal["none", "keep_top_quarter", "remove_bottom_quarter"]
    plus: Name
    compare_with: Name
