"""How a recipe grows: trained again on some of its photos, and on its first languages.

Each run is the recipe with less to learn from, scored on the same validation photos. What it is to
do without, nothing tells it: word vectors are made anew from what is left. Captions of photos that
have no features are no photos, and stay.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

import pandas as pd

from pipeline_lib.corpora.selection import shuffled
from pipeline_lib.settings.growth import Growth
from pipeline_lib.settings.text import LatentSemanticVectors
from pipeline_lib.text.latent_semantics import latent_semantic_vectors
from pipeline_lib.text.training_text import training_captions
from pipeline_lib.training.fitting import RECALL_SUM
from pipeline_lib.training.material import Material

COLUMNS = ["seed", "photos", "languages", "language", RECALL_SUM]
"""Of the report: photos and languages that were learnt from, and the score of one of these."""


@dataclass(frozen=True)
class Run:
    """What is learnt from.

    Attributes:
        seed: Of the model.
        share: Of the training photos.
        languages: Those learnt.
    """

    seed: int
    share: float
    languages: tuple[str, ...]


def runs(growth: Growth, languages: Sequence[str]) -> list[Run]:
    """Return the runs of an entry: fewer photos, then fewer languages."""
    fewer = [(share, (*languages,)) for share in growth.photos]
    fewer += [(1.0, (*languages[:count],)) for count in range(1, len(languages))]
    return [Run(seed, *less) for less, seed in product(fewer, growth.seeds)]


def training_photos(material: Material) -> list[str]:
    """Return the ids of the training photos that have features, sorted."""
    known = material.pairs["image_id"].isin(material.features.image_ids)
    train = material.pairs["split"] == "train"
    return sorted(set(material.pairs.loc[train & known, "image_id"]))


def material_of(
    run: Run, whole: Material, options: LatentSemanticVectors, drawing_seed: int
) -> Material:
    """Return what a run learns from.

    A share of the photos is drawn by the hashes of their ids under ``drawing_seed``, so that each
    holds the smaller ones. It is passed over more often than all of them, so that the updates are
    as many as the share's root says: with as many as all photos have the few would be learnt by
    heart, in as many passes nothing would be.
    """
    photos = training_photos(whole)
    drawn = shuffled(pd.Series(photos).to_numpy(object), drawing_seed)
    left_out = set(drawn[round(run.share * len(drawn)) :])
    pairs = whole.pairs[
        ~whole.pairs["image_id"].isin(left_out) & whole.pairs["language"].isin(run.languages)
    ]
    epochs = round(whole.recipe.max_epochs * run.share**-0.5)
    changed = {"languages": [*run.languages], "seeds": [run.seed], "max_epochs": epochs}
    vectors = latent_semantic_vectors(training_captions(pairs), options)
    recipe = whole.recipe.model_copy(update=changed)
    return replace(whole, recipe=recipe, pairs=pairs, word_vectors=vectors)


def scored(
    validation: Mapping[str, float], seed: int, photos: int, languages: Sequence[str]
) -> pd.DataFrame:
    """Return the rows of one run (:data:`COLUMNS`).

    Args:
        validation: The one whose weights were kept, a row of training.csv.
        seed: Of the model.
        photos: Training photos.
        languages: Those learnt. The score of one is summed over its sets.
    """
    rows = []
    for language in languages:
        own = [
            value
            for key, value in validation.items()
            if key.startswith(f"{RECALL_SUM}_") and key.endswith(f"_{language}")
        ]
        rows.append([seed, photos, len(languages), language, sum(own) / len(own)])
    return pd.DataFrame(rows, columns=COLUMNS)
