"""All languages in each update: Eq. 1-3 of Calixto et al. 2017; Pivot, Parallel of Gella et al."""

from itertools import permutations

import numpy as np
import torch
from torch import Tensor

from pipeline_lib.models.joint_space import JointSpace
from pipeline_lib.models.losses import bidirectional_hinge
from pipeline_lib.settings.recipes import JointRecipe
from pipeline_lib.training.corpus import Corpus, Sentences
from pipeline_lib.training.tasks import (
    Objective,
    Task,
    embed_rows,
    images_of,
    plan_batches,
    present,
    uniform_choice,
)

JOINT = "joint"


def joint(model: JointSpace, corpus: Corpus, recipe: JointRecipe, seed: int) -> Objective:
    """Make one task of each set, whose items are tuples of an image's captions."""
    del model
    sets = sorted({set_name for set_name, _ in corpus.sentences})
    tasks = [_task(corpus, name, recipe, (seed, number)) for number, name in enumerate(sets)]
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
    per_image = np.stack([np.bincount(index, minlength=count) for index in images], axis=1)
    tuples = per_image.max(axis=1)
    image = np.repeat(np.arange(count), tuples)
    number = np.arange(len(image)) - np.repeat(np.cumsum(tuples) - tuples, tuples)
    columns = []
    for index, own in zip(images, per_image.T, strict=True):
        order, first = np.argsort(index, kind="stable"), np.cumsum(own) - own
        position = first[image] + number % np.maximum(own[image], 1)
        there = own[image] > 0
        columns.append(np.where(there, order[np.where(there, position, 0)], -1))
    return np.stack(columns, axis=1)


def _task(corpus: Corpus, set_name: str, recipe: JointRecipe, seed: tuple[int, int]) -> Task:
    languages = [language for name, language in corpus.sentences if name == set_name]
    sentences = [corpus.sentences[set_name, language] for language in languages]
    tuples = torch.from_numpy(caption_tuples(sentences))
    terms = None if recipe.contrastive_terms == "all" else recipe.contrastive_terms
    options = recipe.margin, recipe.violations, terms

    def loss(model: JointSpace, rows: Tensor) -> Tensor:
        total, vectors = corpus.features.new_zeros(()), []
        for language, of_language, column in zip(languages, sentences, tuples[rows].T, strict=True):
            there = present(column)
            chosen = column[there]
            embedded, group = corpus.features.new_empty(0), images_of(of_language, chosen)
            if len(there):
                embedded = embed_rows(model, of_language, chosen, language)
                images = model.image_vectors(corpus.features[group])
                scores = model.scores(images, embedded)
                total = total + recipe.beta * bidirectional_hinge(scores, group, *options)
            vectors.append((there, embedded, group))
        if recipe.beta < 1:
            for a, b in permutations(vectors, 2):
                total = total + (1 - recipe.beta) * _sentence_sentence(model, a, b, options)
        return total

    lengths = sum(
        np.where(column < 0, 0, of_language.lengths.numpy()[column])
        for of_language, column in zip(sentences, tuples.numpy().T, strict=True)
    )
    return Task(
        JOINT, f"{set_name} {'-'.join(languages)}", plan_batches(lengths, recipe, seed), loss
    )


def _sentence_sentence(
    model: JointSpace,
    a: tuple[Tensor, Tensor, Tensor],
    b: tuple[Tensor, Tensor, Tensor],
    options: tuple,
) -> Tensor:
    """Rank the sentences of the tuples that have both languages (Eq. 2)."""
    of_a, of_b = torch.isin(a[0], b[0]), torch.isin(b[0], a[0])
    if not of_a.any():
        return torch.zeros((), dtype=model.dtype, device=model.device)
    scores = model.scores(a[1][of_a], b[1][of_b])
    return bidirectional_hinge(scores, a[2][of_a], *options)
