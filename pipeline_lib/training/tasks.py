"""What updates can train on: tasks, and the objective that chooses among them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor

from pipeline_lib.models.joint_space import JointSpace
from pipeline_lib.models.losses import Candidates, Terms
from pipeline_lib.training import ranks
from pipeline_lib.training.batches import Stream
from pipeline_lib.training.chunks import captions_at_once, in_chunks
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
            in two branches; over all photos with features, in ``multiview``).
        updates_before: Updates of pre-training, before the first epoch.
        after_update: Called with the model, the number of updates done and the state.
    """

    tasks: list[Task]
    choose: Callable[[np.random.Generator, int, History], int]
    updates_per_epoch: int
    updates_before: int = 0
    after_update: Callable[[JointSpace, int, State], None] = lambda _model, _update, _state: None


def embed_images(model: JointSpace, features: Tensor, rows: Tensor) -> Tensor:
    """Return the vectors of the images in some rows of the features ``[rows, dim]``."""
    with ranks.own_chance("image"):
        vectors = model.image_vectors(features[ranks.own(rows)])
    return ranks.gather(vectors, len(rows))


def embed_rows(model: JointSpace, sentences: Sentences, rows: Tensor, language: str) -> Tensor:
    """Return the vectors of some sentences ``[rows, dim]``."""
    part = ranks.own(rows)
    with ranks.own_chance(language):
        if len(part):
            vectors = _sentence_vectors(model, *select_rows(sentences, part), language)
        else:
            vectors = _no_vectors(model)
    return ranks.gather(vectors, len(rows))


def embed_all(
    model: JointSpace, sentences: Mapping[str, tuple[Tensor, Tensor]]
) -> dict[str, Tensor]:
    """Return the vectors of token ids and lengths of several languages ``[sentences, dim]``."""
    parts = {k: (ranks.own(ids), ranks.own(lengths)) for k, (ids, lengths) in sentences.items()}
    there = {language: part for language, part in parts.items() if len(part[1])}
    with ranks.own_chance("-".join(sentences)):
        if captions_at_once(model.architecture.precision) is None:
            vectors = model.sentence_vectors_of_all(there)
        else:
            vectors = {k: _sentence_vectors(model, *part, k) for k, part in there.items()}
    vectors |= {language: _no_vectors(model) for language in sentences.keys() - there.keys()}
    return {
        language: ranks.gather(vectors[language], len(lengths))
        for language, (_, lengths) in sentences.items()
    }


def _sentence_vectors(
    model: JointSpace, token_ids: Tensor, lengths: Tensor, language: str
) -> Tensor:
    most = captions_at_once(model.architecture.precision)
    if most is None:
        return model.sentence_vectors(token_ids, lengths, language)
    embed = partial(model.sentence_vectors, language=language)
    return in_chunks(embed, token_ids, lengths, most)


def _no_vectors(model: JointSpace) -> Tensor:
    dim = model.architecture.embed_dim
    return torch.empty(0, dim, dtype=model.dtype, device=model.device)


def select_rows(sentences: Sentences, rows: Tensor) -> tuple[Tensor, Tensor]:
    """Return token ids, padded to the longest of these sentences, and lengths."""
    lengths = sentences.lengths[rows]
    there = rows.to(sentences.token_ids.device)
    return sentences.token_ids[there, : int(lengths.max())], lengths


def paired(
    model: JointSpace, rows: Tensor, columns: Tensor, images: Tensor, negatives: int | None = None
) -> Candidates:
    """Return what a loss compares: vectors ``[pairs, dim]`` of two sides, an image of each pair."""
    return compared(model, (rows, images), (columns, images), len(images), negatives)


def compared(
    model: JointSpace,
    rows: tuple[Tensor, Tensor],
    columns: tuple[Tensor, Tensor],
    pairs: int,
    negatives: int | None = None,
) -> Candidates:
    """Return what a loss compares, of vectors ``[items, dim]`` and images ``[items]`` of two sides.

    The first ``pairs`` rows belong to the columns of their numbers.
    """
    (a, a_images), (b, b_images), part = rows, columns, ranks.part_of(pairs)
    if ranks.count() == 1:
        return Candidates(model.scores(a, b), a_images, b_images, pairs, negatives)
    scores, turned = model.scores(a[part], b), model.scores(a, b[part]).T
    return Candidates(scores, a_images, b_images, pairs, negatives, part, turned)


def images_of(sentences: Sentences, rows: Tensor) -> Tensor:
    """Return the row of each sentence's image in the features."""
    return sentences.image_index[rows.to(sentences.image_index.device)]


def present(rows: Tensor) -> Tensor:
    """Return where an index is one, -1 being none, as positions ``[present]``."""
    return torch.nonzero(rows >= 0)[:, 0]
