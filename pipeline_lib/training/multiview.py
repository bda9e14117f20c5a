"""A photo and its captions of every language as views of one item, contrasted with each other.

An update takes some photos with one caption in each language that they have, and some photos of
which only captions are known. Each two views are contrasted: photos with captions of a language,
and captions of two languages. An item that has one of the two views alone is a negative still. Two
views are those of Radford et al. 2021; all pairs of more are the full graph of Tian et al. 2020
(§3.2).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from pipeline_lib.models.joint_space import JointSpace
from pipeline_lib.models.losses import Terms
from pipeline_lib.training.batches import ByImage, Stream
from pipeline_lib.training.examples import Examples, Sentences
from pipeline_lib.training.learner import Learner
from pipeline_lib.training.tasks import (
    Objective,
    Task,
    add,
    compared,
    embed_all,
    embed_images,
    select_rows,
    uniform_choice,
)

MULTIVIEW, IMAGE = "multiview", "image"


def multiview(learner: Learner, examples: Examples, seed: int) -> Objective:
    """Make one task, whose items are photos; an epoch passes over those that have features."""
    task = _task(learner, examples, seed)
    return Objective([task], uniform_choice([task]), task.stream.batches_per_epoch)


@dataclass(frozen=True)
class View:
    """What some items of a batch are in one modality or language.

    Attributes:
        items: Places in the batch, ascending ``[present]``.
        photos: Number of each item's photo ``[present]``.
        vectors: In the joint space ``[present, dim]``.
    """

    items: Tensor
    photos: Tensor
    vectors: Tensor


class Captions:
    """The captions of one language, by photo."""

    def __init__(self, sets: list[Sentences], photos: int) -> None:
        """Order the captions of one language, from one or more sets, by their photo."""
        longest = max(s.token_ids.shape[1] for s in sets)
        padded = [F.pad(s.token_ids, (0, longest - s.token_ids.shape[1])) for s in sets]
        index = torch.cat([s.image_index for s in sets])
        self.sentences = Sentences(torch.cat(padded), torch.cat([s.lengths for s in sets]), index)
        self.by_photo = ByImage(index.cpu().numpy(), photos)


def _task(learner: Learner, examples: Examples, seed: int) -> Task:
    recipe, seen = learner.recipe, len(examples.features)
    captions = captions_by_language(examples)
    described = np.flatnonzero(sum(each.by_photo.count for each in captions.values()))
    photos, text = described[described < seen], described[described >= seen]
    beside = min(recipe.text_photos, len(text))

    def terms(model: JointSpace, rows: Tensor) -> Terms:
        random = np.random.default_rng(int(torch.randint(2**62, ())))  # follows the update's seed
        more = random.choice(text, beside, replace=False)
        items = np.concatenate([photos[rows.numpy()], more])
        views = dict(_views(model, examples, captions, items, random))
        found: Terms = {}
        for a, b in combinations(views, 2):
            weight = 1.0 if a == IMAGE else recipe.caption_caption_weight
            if weight:
                add(found, _contrast(learner, model, views[a], views[b]), weight)
        return found

    stream = Stream(len(photos), recipe.batch_size, (seed, 0))
    return Task(MULTIVIEW, "-".join(captions), stream, terms, per_item=False)


def captions_by_language(examples: Examples) -> dict[str, Captions]:
    """Return the captions of each language, those of several sets as one."""
    by_language: dict[str, list[Sentences]] = {}
    for (_, language), sentences in examples.sentences.items():
        by_language.setdefault(language, []).append(sentences)
    photos = 1 + max(int(s.image_index.max()) for s in examples.sentences.values())
    return {language: Captions(by_language[language], photos) for language in sorted(by_language)}


def _views(
    model: JointSpace,
    examples: Examples,
    captions: dict[str, Captions],
    photos: np.ndarray,
    random: np.random.Generator,
) -> Iterator[tuple[str, View]]:
    """Yield the views of a batch that any of its photos have, the image first."""
    there = np.flatnonzero(photos < len(examples.features))
    seen = torch.from_numpy(photos[there]).to(examples.features.device)
    yield IMAGE, _view(there, photos, embed_images(model, examples.features, seen))
    present = {k: np.flatnonzero(each.by_photo.count[photos]) for k, each in captions.items()}
    present = {language: places for language, places in present.items() if len(places)}
    sentences = {
        language: select_rows(
            captions[language].sentences,
            torch.from_numpy(captions[language].by_photo.one_of_each(photos[places], random)),
        )
        for language, places in present.items()
    }
    for language, vectors in embed_all(model, sentences).items():
        yield language, _view(present[language], photos, vectors)


def _view(places: np.ndarray, photos: np.ndarray, vectors: Tensor) -> View:
    items, numbers = torch.from_numpy(places), torch.from_numpy(photos[places])
    return View(items.to(vectors.device), numbers.to(vectors.device), vectors)


def _contrast(learner: Learner, model: JointSpace, a: View, b: View) -> Terms:
    """Return the mean loss of the items that have both views; nothing if none has."""
    in_both, in_both_of_b = torch.isin(a.items, b.items), torch.isin(b.items, a.items)
    pairs = int(in_both.sum())
    if not pairs:
        return {}
    # Items with both views stand first and in one order, then those with one alone.
    rows, columns = (torch.argsort(~both, stable=True) for both in (in_both, in_both_of_b))
    of_a, of_b = (a.vectors[rows], a.photos[rows]), (b.vectors[columns], b.photos[columns])
    found = learner.loss(compared(model, of_a, of_b, pairs))
    return {name: term / pairs for name, term in found.items()}
