"""params.yaml: recipes that are trained again on less, to see how they grow."""

from typing import Annotated

from pydantic import Field

from pipeline_lib.settings.strict import Name, Seed, Several, Strict

Share = Annotated[float, Field(gt=0, lt=1)]


class Growth(Strict):
    """Less to learn from for the recipe whose name this entry has.

    It is trained on shares of its training photos in all its languages, and on all photos in its
    first language, its first two, and so on.

    Attributes:
        pairs: The recipe's pair set, of its languages alone.
        features: The recipe's features.
        word_vectors: The recipe's word vectors, made anew for each run. They must be latent
            semantic ones of its pair set: others may know what a run is to do without.
        photos: Shares of the training photos. All of them are the recipe itself.
        seeds: One run of each, of the recipe's seeds.
    """

    pairs: Name
    features: Name
    word_vectors: Name
    photos: Several[Share]
    seeds: Several[Seed]
