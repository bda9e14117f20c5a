"""What updates can train on: tasks, and the objective that chooses among them."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from pipeline_lib.models.joint_space import JointSpace
from pipeline_lib.models.losses import Terms
from pipeline_lib.training.batches import Stream
from pipeline_lib.training.examples import Sentences
from pipeline_lib.training.loop import History, State

IMAGE_CAPTION = "image_caption"


@dataclass(frozen=True)
class Task:
    """One source of batches and the loss of a batch.

    Attributes:
        kind: Under which its mean loss is logged.
        name: Set and language(s).
        stream: Its batches.
        terms: From the model and a batch of item indices to the parts of the loss.
        per_item: The loss is a sum over items, and logged as their mean.
    """

    kind: str
    name: str
    stream: Stream
    terms: Callable[[JointSpace, Tensor], Terms]
    per_item: bool = True

    def loss(self, model: JointSpace, rows: Tensor) -> Tensor:
        """Return the loss of a batch, a scalar."""
        return total(self.terms(model, rows))


def total(terms: Terms) -> Tensor:
    """Return the loss that some terms make."""
    return sum(terms.values())


def add(found: Terms, more: Terms, weight: float) -> None:
    """Add weighted terms to those of the same names in ``found``."""
    for name, term in more.items():
        found[name] = found.get(name, 0) + weight * term


def uniform_choice(tasks: list[Task]) -> Callable[[np.random.Generator, int, History], int]:
    """Return a rule that chooses any of the tasks, whatever has happened."""
    return lambda random, _update, _history: int(random.integers(len(tasks)))


@dataclass(frozen=True)
class Objective:
    """All tasks of a recipe, and when which is trained.

    Attributes:
        tasks: The tasks.
        choose: From a random generator, the number of the update (from 0) and the history so far
            to the index of the task to train.
        updates_per_epoch: Updates that pass once over all captions (of the language with the most,
            where a batch holds images).
        updates_before: Updates of pre-training, before the first epoch.
        after_update: Called with the model, the number of updates done and the state.
    """

    tasks: list[Task]
    choose: Callable[[np.random.Generator, int, History], int]
    updates_per_epoch: int
    updates_before: int = 0
    after_update: Callable[[JointSpace, int, State], None] = lambda _model, _update, _state: None


def embed_rows(model: JointSpace, sentences: Sentences, rows: Tensor, language: str) -> Tensor:
    """Return the vectors of some sentences ``[rows, dim]``."""
    return model.sentence_vectors(*select_rows(sentences, rows), language)


def select_rows(sentences: Sentences, rows: Tensor) -> tuple[Tensor, Tensor]:
    """Return token ids, padded to the longest of these sentences, and lengths."""
    lengths = sentences.lengths[rows]
    there = rows.to(sentences.token_ids.device)
    return sentences.token_ids[there, : int(lengths.max())], lengths


def images_of(sentences: Sentences, rows: Tensor) -> Tensor:
    """Return the row of each sentence's image in the features."""
    return sentences.image_index[rows.to(sentences.image_index.device)]


def present(rows: Tensor) -> Tensor:
    """Return where an index is one, -1 being none, as positions ``[present]``."""
    return torch.nonzero(rows >= 0)[:, 0]
