"""What one update can train on: a batch of images and captions, or of captions in two languages."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import torch
from torch import Tensor

from pipeline_lib.models.embedder import Embedder
from pipeline_lib.models.losses import bidirectional_hinge
from pipeline_lib.settings import Recipe
from pipeline_lib.training.batches import Stream, sentence_pairs
from pipeline_lib.training.corpus import Corpus, Sentences

IMAGE_CAPTION = "image_caption"
CAPTION_CAPTION = "caption_caption"


@dataclass(frozen=True)
class Task:
    """One data set to draw batches from.

    Attributes:
        kind: :data:`IMAGE_CAPTION` or :data:`CAPTION_CAPTION`.
        name: Set and language(s), for the log.
        stream: Its batches.
        loss: From the model, a batch of item indices and the violations that count to a scalar.
    """

    kind: str
    name: str
    stream: Stream
    loss: Callable[[Embedder, Tensor, str], Tensor]


def build_tasks(corpus: Corpus, recipe: Recipe, seed: int) -> list[Task]:
    """Make a task of each (set, language), and of each language pair of a set where c2c is on."""
    tasks = [
        _image_caption_task(corpus, key, recipe, (seed, number))
        for number, key in enumerate(corpus.sentences)
    ]
    if recipe.caption_caption_probability == 0:
        return tasks
    pairs = [(a, b) for a, b in combinations(corpus.sentences, 2) if a[0] == b[0]]
    for number, (a, b) in enumerate(pairs, start=len(tasks)):
        task = _caption_caption_task(corpus, a, b, recipe, (seed, number))
        tasks.extend([task] if task else [])
    return tasks


def choose_task(tasks: list[Task], probability: float, seed: int, update: int) -> int:
    """Return the index of the task that an update trains.

    Caption–caption with the given probability, else image–caption; then one of that kind's data
    sets uniformly (§2 of Kádár et al. 2019).
    """
    random = np.random.default_rng([seed, update])
    kind = CAPTION_CAPTION if random.random() < probability else IMAGE_CAPTION
    eligible = [number for number, task in enumerate(tasks) if task.kind == kind]
    return int(random.choice(eligible))


def _image_caption_task(
    corpus: Corpus, key: tuple[str, str], recipe: Recipe, seed: tuple[int, int]
) -> Task:
    sentences, language = corpus.sentences[key], key[1]

    def loss(model: Embedder, rows: Tensor, violations: str) -> Tensor:
        captions, image_index = _embed(model, sentences, rows, language)
        images = model.image_vectors(corpus.features[image_index])
        scores = model.scores(images, captions)
        return bidirectional_hinge(scores, image_index, recipe.margin, violations)

    stream = _stream(sentences.lengths.numpy(), recipe, seed)
    return Task(IMAGE_CAPTION, f"{key[0]} {language}", stream, loss)


def _caption_caption_task(
    corpus: Corpus,
    a_key: tuple[str, str],
    b_key: tuple[str, str],
    recipe: Recipe,
    seed: tuple[int, int],
) -> Task | None:
    a, b = corpus.sentences[a_key], corpus.sentences[b_key]
    pairs = sentence_pairs(a, b)
    if not len(pairs):  # the two languages describe disjoint images
        return None
    index = torch.from_numpy(pairs)

    def loss(model: Embedder, rows: Tensor, violations: str) -> Tensor:
        chosen = index[rows]
        a_vectors, image_index = _embed(model, a, chosen[:, 0], a_key[1])
        b_vectors, _ = _embed(model, b, chosen[:, 1], b_key[1])
        scores = model.scores(a_vectors, b_vectors)
        return bidirectional_hinge(scores, image_index, recipe.margin, violations)

    lengths = a.lengths.numpy()[pairs[:, 0]] + b.lengths.numpy()[pairs[:, 1]]
    name = f"{a_key[0]} {a_key[1]}-{b_key[1]}"
    return Task(CAPTION_CAPTION, name, _stream(lengths, recipe, seed), loss)


def _embed(
    model: Embedder, sentences: Sentences, rows: Tensor, language: str
) -> tuple[Tensor, Tensor]:
    """Return the sentences' vectors and their images, padded to the batch's own longest."""
    lengths = sentences.lengths[rows]
    there = rows.to(sentences.token_ids.device)
    token_ids = sentences.token_ids[there, : int(lengths.max())]
    return model.sentence_vectors(token_ids, lengths, language), sentences.image_index[there]


def _stream(lengths: np.ndarray, recipe: Recipe, seed: tuple[int, int]) -> Stream:
    return Stream(lengths, recipe.batch_size, recipe.length_window_batches, seed)
