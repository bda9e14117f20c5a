"""One set and language per update, or one pair of languages (§2 of Kádár et al. 2019)."""

from itertools import combinations

import numpy as np
import torch
from torch import Tensor

from pipeline_lib.contract.reports import LOSS
from pipeline_lib.models.joint_space import JointSpace
from pipeline_lib.models.losses import Terms
from pipeline_lib.settings.objectives import Alternating
from pipeline_lib.training.batches import Stream, sentence_pairs
from pipeline_lib.training.examples import Examples
from pipeline_lib.training.learner import Learner
from pipeline_lib.training.loop import History
from pipeline_lib.training.tasks import (
    IMAGE_CAPTION,
    Objective,
    Task,
    embed_images,
    embed_rows,
    images_of,
    paired,
)

CAPTION_CAPTION = "caption_caption"


def alternating(learner: Learner, examples: Examples, seed: int) -> Objective:
    """Make a task of each (set, language), and of each two of different languages where c2c is on.

    Two sets pair by the images that both describe, so that pseudopairs meet the captions that they
    were made for.
    """
    recipe = learner.recipe
    image_tasks = [
        _image_caption_task(learner, examples, key, (seed, number))
        for number, key in enumerate(examples.sentences)
    ]
    per_epoch = sum(task.stream.batches_per_epoch for task in image_tasks)
    tasks = [*image_tasks]
    if recipe.caption_caption_probability:
        pairs = [(a, b) for a, b in combinations(examples.sentences, 2) if a[1] != b[1]]
        made = (
            _caption_caption_task(learner, examples, a, b, (seed, number))
            for number, (a, b) in enumerate(pairs, start=len(tasks))
        )
        tasks += [task for task in made if task]

    def choose(random: np.random.Generator, update: int, history: History) -> int:
        del update
        ready = len(tasks) > len(image_tasks) and caption_caption_is_on(recipe, history)
        if random.random() < recipe.caption_caption_probability and ready:
            return int(random.integers(len(image_tasks), len(tasks)))
        return int(random.integers(len(image_tasks)))

    return Objective(tasks, choose, per_epoch)


def caption_caption_is_on(recipe: Alternating, history: History) -> bool:
    """Return whether the image-caption loss has been low enough at a validation so far.

    With the hardest negative a space collapsed into one point costs twice the margin per pair.
    Caption-caption updates that begin near there pull it back in: in the authors' code they begin
    at 49.0 per batch of 128, of 51.2.
    """
    bound = recipe.caption_caption_below_loss
    if bound == "none":
        return True
    return any(row[f"{LOSS}{IMAGE_CAPTION}"] < bound for row in history)


def _image_caption_task(
    learner: Learner, examples: Examples, key: tuple[str, str], seed: tuple[int, int]
) -> Task:
    sentences, language = examples.sentences[key], key[1]

    def terms(model: JointSpace, rows: Tensor) -> Terms:
        image_index = images_of(sentences, rows)
        images = embed_images(model, examples.features, image_index)
        captions = embed_rows(model, sentences, rows, language)
        return learner.loss(paired(model, images, captions, image_index))

    stream = Stream(len(sentences), learner.recipe.batch_size, seed)
    return Task(IMAGE_CAPTION, f"{key[0]} {language}", stream, terms)


def _caption_caption_task(
    learner: Learner,
    examples: Examples,
    a_key: tuple[str, str],
    b_key: tuple[str, str],
    seed: tuple[int, int],
) -> Task | None:
    if learner.recipe.compares_turned(a_key[1], b_key[1]):
        a_key, b_key = b_key, a_key  # sets are in the order of their names
    a, b = examples.sentences[a_key], examples.sentences[b_key]
    pairs = sentence_pairs(a, b)
    if not len(pairs):  # the two languages describe disjoint images
        return None
    index = torch.from_numpy(pairs)

    def terms(model: JointSpace, rows: Tensor) -> Terms:
        a_rows, b_rows = index[rows].T
        of_a = embed_rows(model, a, a_rows, a_key[1])
        of_b = embed_rows(model, b, b_rows, b_key[1])
        return learner.loss(paired(model, of_a, of_b, images_of(a, a_rows)))

    name = f"{a_key[0]} {a_key[1]}-{b_key[0]} {b_key[1]}"
    stream = Stream(len(pairs), learner.recipe.batch_size, seed)
    return Task(CAPTION_CAPTION, name, stream, terms)
