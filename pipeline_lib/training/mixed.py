"""Batches that mix all languages: Eq. 1 and 4 of Mohammadshahi et al. 2019."""

import torch
from torch import Tensor

from pipeline_lib.models.joint_space import JointSpace
from pipeline_lib.models.losses import Terms
from pipeline_lib.settings.strict import NONE
from pipeline_lib.training.batches import Stream
from pipeline_lib.training.examples import Examples
from pipeline_lib.training.learner import Learner
from pipeline_lib.training.loop import State
from pipeline_lib.training.rotations import Aligner, start_rotations
from pipeline_lib.training.tasks import (
    IMAGE_CAPTION,
    Objective,
    Task,
    embed_images,
    embed_rows,
    images_of,
    paired,
    uniform_choice,
)


def mixed(learner: Learner, examples: Examples, seed: int) -> Objective:
    """Make one task of all captions of all sets; align the words every T updates, if asked to."""
    recipe = learner.recipe
    if recipe.fits_maps and recipe.initial == NONE:
        start_rotations(learner.space, examples, recipe)
    task = _task(learner, examples, (seed, 0))
    if not recipe.aligns_words:
        return Objective([task], uniform_choice([task]), task.stream.batches_per_epoch)
    aligner = Aligner(examples, recipe)

    def after_update(model: JointSpace, update: int, state: State) -> None:
        if update % recipe.alignment_every_updates == 0:
            aligner.step(model, state)

    return Objective(
        [task],
        uniform_choice([task]),
        task.stream.batches_per_epoch,
        after_update=after_update,
    )


def _task(learner: Learner, examples: Examples, seed: tuple[int, int]) -> Task:
    keys = list(examples.sentences)
    sizes = [len(examples.sentences[key]) for key in keys]
    source = torch.repeat_interleave(torch.tensor(sizes))
    row = torch.cat([torch.arange(size) for size in sizes])

    def terms(model: JointSpace, items: Tensor) -> Terms:
        vectors, image_index = [], []
        for number, key in enumerate(keys):
            rows = row[items[source[items] == number]]
            if len(rows):
                vectors.append(embed_rows(model, examples.sentences[key], rows, key[1]))
                image_index.append(images_of(examples.sentences[key], rows))
        group = torch.cat(image_index)
        images = embed_images(model, examples.features, group)
        return learner.loss(paired(model, images, torch.cat(vectors), group))

    stream = Stream(len(row), learner.recipe.batch_size, seed)
    return Task(IMAGE_CAPTION, "all captions", stream, terms)
