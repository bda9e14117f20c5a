"""params.yaml: n-best lists that are ranked anew with a recipe's similarities."""

from typing import Annotated, Literal

from pydantic import Field

from pipeline_lib.settings.strict import Count, Name, Rate, Seed, Several, Strict

Similarity = Literal["sentence", "image"]


class Reranking(Strict):
    """§5 of Calixto et al. 2017: weights found on validation lists, applied to test lists.

    Attributes:
        translator: Entry of ``translators`` whose n-best lists are ranked anew.
        dataset: The translator's data set.
        recipe: Recipe whose similarities are the new features.
        seeds: Which of its models: each ranks with weights of its own.
        pairs: Its pair set: none of its images may be in the translated test split, and none of its
            training images in the validation split.
        features: The images' features, or ``none``; where images are compared, only sentences are
            taken whose image has any.
        similarities: Of the hypothesis to the source sentence, s_s, and to the image, s_i.
        step_cap: Longest step of batch MIRA, C.
        decay: What a step of MIRA leaves of its background corpus.
        epochs: Passes of MIRA over the validation lists.
        order_seed: Of the order of the lists in these passes.
        meteor: Measure METEOR too, which needs Java and the dependency group ``meteor``.
    """

    translator: Name
    dataset: Name
    recipe: Name
    seeds: Several[Seed]
    pairs: Name
    features: Name
    similarities: Several[Similarity]
    step_cap: Rate
    decay: Annotated[float, Field(gt=0, le=1)]
    epochs: Count
    order_seed: Seed
    meteor: bool
