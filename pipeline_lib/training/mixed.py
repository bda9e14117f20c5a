"""Batches that mix all languages: Eq. 1 and 4 of Mohammadshahi et al. 2019."""

import numpy as np
import torch
from torch import Tensor

from pipeline_lib.models.joint_space import JointSpace
from pipeline_lib.models.losses import bidirectional_hinge
from pipeline_lib.settings.recipes import MixedRecipe
from pipeline_lib.settings.strict import NONE
from pipeline_lib.training.corpus import Corpus
from pipeline_lib.training.rotations import Aligner, start_rotations
from pipeline_lib.training.tasks import (
    IMAGE_CAPTION,
    Objective,
    State,
    Task,
    embed_rows,
    images_of,
    plan_batches,
    uniform_choice,
)


def mixed(model: JointSpace, corpus: Corpus, recipe: MixedRecipe, seed: int) -> Objective:
    """Make one task of all captions of all sets; align the words every T updates, if asked to."""
    if recipe.orthogonal_map and recipe.initial == NONE:
        start_rotations(model, corpus, recipe)
    task = _task(corpus, recipe, (seed, 0))
    every = recipe.alignment_every_updates
    if every == "never":
        return Objective([task], uniform_choice([task]), task.stream.batches_per_epoch)
    aligner = Aligner(corpus, recipe)

    def after_update(model: JointSpace, update: int, state: State) -> None:
        if update % every == 0:
            aligner.step(model, state)

    return Objective(
        [task],
        uniform_choice([task]),
        task.stream.batches_per_epoch,
        after_update=after_update,
    )


def _task(corpus: Corpus, recipe: MixedRecipe, seed: tuple[int, int]) -> Task:
    keys = list(corpus.sentences)
    sizes = [len(corpus.sentences[key]) for key in keys]
    source = torch.repeat_interleave(torch.tensor(sizes))
    row = torch.cat([torch.arange(size) for size in sizes])

    def loss(model: JointSpace, items: Tensor) -> Tensor:
        vectors, image_index = [], []
        for number, key in enumerate(keys):
            rows = row[items[source[items] == number]]
            if len(rows):
                vectors.append(embed_rows(model, corpus.sentences[key], rows, key[1]))
                image_index.append(images_of(corpus.sentences[key], rows))
        group = torch.cat(image_index)
        scores = model.scores(model.image_vectors(corpus.features[group]), torch.cat(vectors))
        return bidirectional_hinge(scores, group, recipe.margin, recipe.violations)

    lengths = np.concatenate([corpus.sentences[key].lengths.numpy() for key in keys])
    return Task(IMAGE_CAPTION, "all captions", plan_batches(lengths, recipe, seed), loss)
