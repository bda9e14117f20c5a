"""All languages in each update: Eq. 1-3 of Calixto et al. 2017; Pivot, Parallel of Gella et al."""

from itertools import combinations

import numpy as np
import torch
from torch import Tensor

from pipeline_lib.models.joint_space import JointSpace
from pipeline_lib.models.losses import Terms
from pipeline_lib.training.batches import ByImage, Stream
from pipeline_lib.training.examples import Examples, Sentences
from pipeline_lib.training.learner import Learner
from pipeline_lib.training.tasks import (
    Objective,
    Task,
    add,
    embed_images,
    embed_rows,
    images_of,
    paired,
    present,
    uniform_choice,
)

JOINT = "joint"

TIMES = {"once": 1, "both_orders": 2}
"""How often a pair of languages counts. Eq. 2 of Calixto et al. 2017 can be read either way; their
code sums each pair once."""


def joint(learner: Learner, examples: Examples, seed: int) -> Objective:
    """Make one task of each set, whose items are tuples of an image's captions."""
    sets = sorted({set_name for set_name, _ in examples.sentences})
    tasks = [_task(learner, examples, name, (seed, number)) for number, name in enumerate(sets)]
    per_epoch = sum(task.stream.batches_per_epoch for task in tasks)
    return Objective(tasks, uniform_choice(tasks), per_epoch)


def caption_tuples(languages: list[Sentences]) -> np.ndarray:
    """Pair caption ``k`` of an image in one language with its caption ``k`` in the others.

    An image makes as many tuples as it has captions in the language with most of them; one with
    fewer begins anew, one with none is -1. They need not be translations of one another.

    Returns:
        Caption indices ``int64 [tuples, languages]``.
    """
    images = [sentences.image_index.cpu().numpy() for sentences in languages]
    count = max(int(index.max()) for index in images) + 1
    by_image = [ByImage(index, count) for index in images]
    tuples = np.max([captions.count for captions in by_image], axis=0)
    image = np.repeat(np.arange(count), tuples)
    number = np.arange(len(image)) - np.repeat(np.cumsum(tuples) - tuples, tuples)
    columns = np.full((len(image), len(images)), -1)
    for column, captions in zip(columns.T, by_image, strict=True):
        count = captions.count[image]
        there = count > 0
        column[there] = captions.nth_of_each(image[there], number[there] % count[there])
    return columns


def _task(learner: Learner, examples: Examples, set_name: str, seed: tuple[int, int]) -> Task:
    recipe = learner.recipe
    languages = [language for name, language in examples.sentences if name == set_name]
    sentences = [examples.sentences[set_name, language] for language in languages]
    tuples = torch.from_numpy(caption_tuples(sentences))
    negatives = None if recipe.contrastive_terms == "all" else recipe.contrastive_terms
    between_sentences = (1 - recipe.beta) * TIMES[recipe.language_pairs]

    def terms(model: JointSpace, rows: Tensor) -> Terms:
        found: Terms = {}
        vectors = []
        for language, of_language, column in zip(languages, sentences, tuples[rows].T, strict=True):
            there = present(column)
            chosen = column[there]
            embedded, group = examples.features.new_empty(0), images_of(of_language, chosen)
            if len(there):
                embedded = embed_rows(model, of_language, chosen, language)
                images = embed_images(model, examples.features, group)
                batch = paired(model, images, embedded, group, negatives)
                add(found, learner.loss(batch), recipe.beta)
            vectors.append((there, embedded, group))
        for a, b in combinations(vectors, 2) if between_sentences else ():
            of_a, of_b = torch.isin(a[0], b[0]), torch.isin(b[0], a[0])
            if of_a.any():  # the tuples that have both languages (Eq. 2)
                batch = paired(model, a[1][of_a], b[1][of_b], a[2][of_a], negatives)
                add(found, learner.loss(batch), between_sentences)
        return found

    stream = Stream(len(tuples), recipe.batch_size, seed)
    return Task(JOINT, f"{set_name} {'-'.join(languages)}", stream, terms)
