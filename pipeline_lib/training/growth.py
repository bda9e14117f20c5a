"""How a recipe grows: trained again on some of its photos, and on its first languages.

Each run is the recipe with less to learn from, scored on the same validation photos. Nothing that a
run learns from may know what it does without: word vectors are made anew of what is left. Captions
of photos that have no features are no photos, and stay.
"""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from pipeline_lib.contract.reports import RECALL_SUM, best_validation, read_rows
from pipeline_lib.corpora.selection import share_of
from pipeline_lib.running.publishing import publish
from pipeline_lib.settings.growth import Growth
from pipeline_lib.settings.text import LatentSemanticVectors
from pipeline_lib.text.latent_semantics import latent_semantic_vectors
from pipeline_lib.text.training_text import training_captions
from pipeline_lib.training.fitting import fit
from pipeline_lib.training.material import Material, of_seed
from pipeline_lib.training.seeds import Score

COLUMNS = ["seed", "photos", "languages", "language", RECALL_SUM]
"""Of the report: photos and languages that were learnt from, and the score of one of these."""

_TRAINING, _SCORES = "training", "scores.csv"
"""What a run has in its folder of work: until it ends, and afterwards."""


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


@dataclass(frozen=True)
class Growing:
    """Trains the runs of a recipe.

    Attributes:
        label: What progress bars name.
        whole: What the recipe itself learns from; its word vectors are made anew.
        options: Of the word vectors.
        drawing_seed: Of the shares of photos.
        score: Selects the best weights.
    """

    label: str
    whole: Material
    options: LatentSemanticVectors
    drawing_seed: int
    score: Score

    def identity(self, run: Run) -> list[object]:
        """Return all that the scores of a run depend on beside the code."""
        made_of = [self.options.model_dump(), self.drawing_seed, dict(self.whole.digests)]
        settings = of_seed(self.whole.recipe, run.seed).model_dump()
        return [settings, run.share, run.languages, *made_of, torch.__version__]

    def material(self, run: Run) -> Material:
        """Return what a run learns from.

        A share of the photos is drawn by the hashes of their ids, so that each share holds the
        smaller ones. It is passed over more often than all photos, so that updates are as many as
        the root of the share says: in as many passes few photos would be learnt too little, with
        as many updates by heart.
        """
        whole, photos = self.whole, training_photos(self.whole)
        kept = share_of(np.array(photos, object), run.share, self.drawing_seed)
        left_out = {*photos} - {*kept}
        pairs = whole.pairs[
            ~whole.pairs["image_id"].isin(left_out) & whole.pairs["language"].isin(run.languages)
        ]
        passes = run.share**-0.5
        epochs = round(whole.recipe.max_epochs * passes)
        changed = {"languages": [*run.languages], "seeds": [run.seed], "max_epochs": epochs}
        if whole.recipe.schedule == "steps":
            decays = whole.recipe.decay_epochs
            changed["decay_epochs"] = [round(epoch * passes) for epoch in decays]
        vectors = latent_semantic_vectors(training_captions(pairs), self.options)
        recipe = whole.recipe.model_copy(update=changed)
        return replace(whole, recipe=recipe, pairs=pairs, word_vectors=vectors)

    def __call__(self, numbered: tuple[int, Run, Path]) -> pd.DataFrame:
        """Return the scores of a run (:data:`COLUMNS`); train it if its folder has none.

        Args:
            numbered: The line of its progress bar, the run, and its folder of work.
        """
        line, run, folder = numbered
        if not (folder / _SCORES).is_file():
            material = self.material(run)
            history = self._history(material, run, folder, line)
            with publish(folder / _SCORES) as path:
                of_recipe(history, material).to_csv(path, index=False)
            shutil.rmtree(folder / _TRAINING)  # a checkpoint is large, and runs are many
        return read_rows(folder / _SCORES)

    def _history(self, material: Material, run: Run, folder: Path, line: int) -> pd.DataFrame:
        (folder / _TRAINING).mkdir(exist_ok=True)
        learner, train, val = material.start(run.seed)
        learner = learner.to_best_device()
        learnt = f"{run.share:.1%} of the photos, {' '.join(run.languages)}, seed {run.seed}"
        course = fit(
            learner,
            train,
            lambda space: self.score(space, val),
            run.seed,
            folder / _TRAINING,
            f"{self.label}: {learnt} on {learner.device.type} in {learner.precision}",
            line,
        )
        return pd.DataFrame(course.history).assign(seed=run.seed)


def of_recipe(history: pd.DataFrame, material: Material) -> pd.DataFrame:
    """Return the scores (:data:`COLUMNS`) of the weights that each seed of a recipe kept.

    Args:
        history: Validations of its seeds, as in training.csv; those of other seeds are left out.
        material: What it learnt from.
    """
    recipe, photos = material.recipe, len(training_photos(material))
    rows = [
        [seed, photos, len(recipe.languages), language, score]
        for seed, own in history.groupby("seed")
        if seed in recipe.seeds
        for language, score in _by_language(
            best_validation(own, recipe.select_by), recipe.languages
        )
    ]
    return pd.DataFrame(rows, columns=COLUMNS)


def _by_language(
    validation: Mapping[str, float], languages: Sequence[str]
) -> Iterator[tuple[str, float]]:
    """Yield the sum of recalls of each language, the mean over its sets."""
    for language in languages:
        own = [
            value
            for key, value in validation.items()
            if key.startswith(f"{RECALL_SUM}_") and key.endswith(f"_{language}")
        ]
        yield language, sum(own) / len(own)
