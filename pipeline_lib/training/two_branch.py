"""The two-branch network's objective and MULE's parts of it (Eq. 1-4 of Kim et al. 2020)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import combinations

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pipeline_lib.models.joint_space import JointSpace
from pipeline_lib.models.losses import (
    Terms,
    neighbourhood_hinge,
    ranking_hinge,
    reverse_gradient,
)
from pipeline_lib.models.similarity import cosine, euclidean
from pipeline_lib.settings.objectives import TwoBranch
from pipeline_lib.settings.strict import NONE
from pipeline_lib.training import ranks
from pipeline_lib.training.batches import ByImage, Stream
from pipeline_lib.training.examples import Examples, Sentences
from pipeline_lib.training.learner import Learner
from pipeline_lib.training.loop import History
from pipeline_lib.training.tasks import (
    Objective,
    Task,
    embed_all,
    embed_images,
    select_rows,
)

Scores = Callable[[Tensor, Tensor], Tensor]
"""Similarities of all pairs of two sides: ``[n, dim], [m, dim] -> [n, m]``."""

TWO_BRANCH = "two_branch"
PRETRAINING = "pretraining"
CLASSIFIER = "language_classifier"


@dataclass(frozen=True)
class Chosen:
    """Some captions of a batch's images in one language.

    Attributes:
        token_ids: ``[captions, steps]``.
        lengths: ``[captions]``.
        image: Position of each caption's image in the batch ``[captions]``.
    """

    token_ids: Tensor
    lengths: Tensor
    image: Tensor


def adversary(recipe: TwoBranch) -> dict[str, nn.Module]:
    """Return the classifier that tells languages from averaged universal words, if it counts."""
    if not recipe.classifier_weight:
        return {}
    dim = recipe.word_dim if recipe.universal_dim == NONE else recipe.universal_dim
    return {CLASSIFIER: nn.Linear(dim, len(recipe.languages))}


def two_branch(learner: Learner, examples: Examples, seed: int) -> Objective:
    """Make a task of each set whose items are images, and one of pre-training before it."""
    sets = sorted({set_name for set_name, _ in examples.sentences})
    recipe = learner.recipe
    start = {name: p.detach().clone() for name, p in _words(learner.space).items()}
    tasks = [_task(learner, examples, name, (seed, i), start) for i, name in enumerate(sets)]
    per_epoch = sum(_updates_per_epoch(examples, name, recipe) for name in sets)
    before = recipe.pretraining_epochs * per_epoch
    pretraining = [
        _pretraining_task(examples, name, recipe, (seed, i))
        for i, name in enumerate(sets, start=len(sets))
    ]

    def choose(random: np.random.Generator, update: int, history: History) -> int:
        del history
        return int(random.integers(len(sets))) + (len(sets) if update < before else 0)

    return Objective([*tasks, *pretraining], choose, per_epoch, updates_before=before)


def choose_captions(
    sentences: Sentences, by_image: ByImage, images: Tensor, captions_per_image: int
) -> Chosen | None:
    """Draw captions of these images at random, by torch's generator.

    An image with fewer captions gives all it has; one with none is left out.

    Returns:
        The captions, or None if no image has one.
    """
    rows, image = map(torch.from_numpy, by_image.all_of(images.numpy()))
    if not len(rows):
        return None
    # In the order of the captions, so that what is drawn does not follow the order of the images.
    shuffled = rows.argsort()[torch.randperm(len(rows))]
    order = shuffled[image[shuffled].argsort(stable=True)]
    rows, image = rows[order], image[order]
    keep = torch.arange(len(rows)) - torch.searchsorted(image, image) < captions_per_image
    token_ids, lengths = select_rows(sentences, rows[keep])
    return Chosen(token_ids, lengths, image[keep].to(token_ids.device))


def _task(
    learner: Learner,
    examples: Examples,
    set_name: str,
    seed: tuple[int, int],
    start: Mapping[str, Tensor],
) -> Task:
    recipe = learner.recipe
    by_language, images = _languages_and_images(examples, set_name)

    def terms(model: JointSpace, rows: Tensor) -> Terms:
        batch = images[rows]
        chosen = _choose_all(by_language, batch, recipe)
        there = batch.to(examples.features.device)
        image_vectors = embed_images(model, examples.features, there)
        vectors = embed_all(
            model, {language: (item.token_ids, item.lengths) for language, item in chosen.items()}
        )
        total = sum(
            _matching(model, image_vectors, vectors[language], item.image, recipe)
            for language, item in chosen.items()
        ) / len(chosen)
        sides = {language: (vectors[language], item.image) for language, item in chosen.items()}
        if recipe.sentence_neighbourhood_weight:
            constraint = _neighbourhood(sides, recipe, model.scores)
            total = total + recipe.sentence_neighbourhood_weight * constraint
        if recipe.word_neighbourhood_weight or recipe.classifier_weight:
            averages = _averages(model, chosen)
            if recipe.word_neighbourhood_weight:
                constraint = _neighbourhood(averages, recipe, _word_scores(model))
                total = total + recipe.word_neighbourhood_weight * constraint
            if recipe.classifier_weight:
                classified = _classification(learner.layers[CLASSIFIER], averages, recipe)
                total = total + recipe.classifier_weight * classified
        if recipe.anchor_weight:
            total = total + recipe.anchor_weight * ranks.share(_moved(_words(model), start))
        return {"hinge": total}

    stream = Stream(len(images), recipe.batch_size, seed)
    return Task(TWO_BRANCH, f"{set_name} {'-'.join(by_language)}", stream, terms, per_item=False)


def _pretraining_task(
    examples: Examples, set_name: str, recipe: TwoBranch, seed: tuple[int, int]
) -> Task:
    """Make the task that aligns averaged universal word vectors alone; words stay."""
    by_language, images = _languages_and_images(examples, set_name)

    def terms(model: JointSpace, rows: Tensor) -> Terms:
        chosen = _choose_all(by_language, images[rows], recipe)
        words = _words(model)
        tuned = {name: p.requires_grad for name, p in words.items()}
        for p in words.values():
            p.requires_grad_(False)
        total = _neighbourhood(_averages(model, chosen), recipe, _word_scores(model))
        for name, p in words.items():
            p.requires_grad_(tuned[name])
        return {"hinge": total}

    stream = Stream(len(images), recipe.batch_size, seed)
    return Task(PRETRAINING, f"{set_name} pairs", stream, terms, per_item=False)


def _updates_per_epoch(examples: Examples, set_name: str, recipe: TwoBranch) -> int:
    """Count an epoch's updates as the authors do: over the captions of the largest language.

    A batch holds images, so that one with five captions comes five times in an epoch.
    """
    most = max(len(of) for (name, _), of in examples.sentences.items() if name == set_name)
    return max(1, most // recipe.batch_size)


def _languages_and_images(
    examples: Examples, set_name: str
) -> tuple[dict[str, tuple[Sentences, ByImage]], Tensor]:
    # Captions are drawn on the CPU: a GPU would have to be waited for in each update.
    captions = {
        language: (sentences, sentences.image_index.cpu())
        for (name, language), sentences in examples.sentences.items()
        if name == set_name
    }
    images = torch.cat([index for _, index in captions.values()]).unique()
    count = 1 + int(images.max())
    by_language = {
        language: (sentences, ByImage(index.numpy(), count))
        for language, (sentences, index) in captions.items()
    }
    return by_language, images


def _choose_all(
    by_language: Mapping[str, tuple[Sentences, ByImage]], images: Tensor, recipe: TwoBranch
) -> dict[str, Chosen]:
    drawn = {
        language: choose_captions(*captions, images, recipe.captions_per_image)
        for language, captions in by_language.items()
    }
    return {language: item for language, item in drawn.items() if item is not None}


def _matching(
    model: JointSpace, images: Tensor, captions: Tensor, image: Tensor, recipe: TwoBranch
) -> Tensor:
    """Rank images for each caption, captions for each image, and captions for each caption."""
    options, part = (recipe.margin, recipe.violations), ranks.own(image)
    to_images, to_captions = _scores(model, images, captions, image)
    own = to_images[torch.arange(len(part), device=part.device), part]
    to_image = F.one_hot(part, len(images)).bool()
    same = part[:, None] == image[None, :]
    of_captions = ranking_hinge(to_images, own, to_image, *options)
    total = recipe.caption_image_weight * ranks.mean(of_captions, len(image))
    of_images = ranking_hinge(to_captions, own, same, *options)
    total = total + recipe.image_caption_weight * ranks.mean(of_images, len(image))
    if recipe.same_language_weight:
        itself = ranks.own(torch.eye(len(image), dtype=torch.bool, device=image.device))
        among = model.scores(ranks.own(captions), captions)
        siblings = _in_parts(lambda: image.bincount()[image] > 1)
        total = total + recipe.same_language_weight * neighbourhood_hinge(
            among, same & ~itself, same, *options, siblings
        )
    return total


def _scores(
    model: JointSpace, images: Tensor, captions: Tensor, image: Tensor
) -> tuple[Tensor, Tensor]:
    """Compare this rank's captions with all images, and the images of these with all captions.

    Returns:
        ``[part, images]`` and ``[part, captions]``.
    """
    if ranks.count() == 1:
        scores = model.scores(images, captions)
        return scores.T, scores[image]
    part = ranks.part_of(len(image))
    return model.scores(images, captions[part]).T, model.scores(images[image[part]], captions)


def _in_parts(queries: Callable[[], Tensor]) -> int | None:
    """Return how many queries ``bool [queries]`` the ranks have, None if this one has all."""
    return None if ranks.count() == 1 else int(queries().sum())


def _neighbourhood(
    sides: Mapping[str, tuple[Tensor, Tensor]], recipe: TwoBranch, scores_of: Scores
) -> Tensor:
    """Return Eq. 1 between languages, averaged over their pairs and both directions."""
    terms = []
    for (a, a_image), (b, b_image) in combinations(sides.values(), 2):
        a_to_b, b_to_a = _both_ways(a, b, scores_of)
        for scores, queries, candidates in ((a_to_b, a_image, b_image), (b_to_a, b_image, a_image)):
            same = ranks.own(queries)[:, None] == candidates[None, :]
            known = _in_parts(partial(torch.isin, queries, candidates))
            options = recipe.margin, recipe.violations, known
            terms.append(neighbourhood_hinge(scores, same, same, *options))
    if not terms:  # one language only; a zero with a gradient, for pre-training has no other term
        return sum(vectors.sum() for vectors, _ in sides.values()) * 0
    return torch.stack(terms).mean()


def _both_ways(a: Tensor, b: Tensor, scores_of: Scores) -> tuple[Tensor, Tensor]:
    """Compare this rank's part of each side with all of the other; ``a`` is the upper one."""
    if ranks.count() == 1:
        scores = scores_of(a, b)
        return scores, scores.T
    return scores_of(ranks.own(a), b), scores_of(a, ranks.own(b)).T


def _word_scores(model: JointSpace) -> Scores:
    """Return how averages of words are compared: as sentences are, but they lie in no order."""
    return euclidean if model.architecture.similarity == "euclidean" else cosine


def _averages(model: JointSpace, chosen: Mapping[str, Chosen]) -> dict[str, tuple[Tensor, Tensor]]:
    average = model.sentence_encoder.average
    found = {}
    for language, item in chosen.items():
        token_ids, lengths = ranks.own(item.token_ids), ranks.own(item.lengths)
        vectors = F.normalize(average(token_ids, lengths, language), dim=1)
        found[language] = ranks.gather(vectors, len(item.image)), item.image
    return found


def _classification(
    classify: nn.Module, averages: Mapping[str, tuple[Tensor, Tensor]], recipe: TwoBranch
) -> Tensor:
    """Return the classifier's loss, whose gradient turns before the universal layer (Eq. 2, 4)."""
    vectors = torch.cat([vectors for vectors, _ in averages.values()])
    labels = torch.cat(
        [
            torch.full((len(vectors),), recipe.languages.index(language), device=vectors.device)
            for language, (vectors, _) in averages.items()
        ]
    )
    if ranks.count() == 1:
        return F.cross_entropy(classify(reverse_gradient(vectors)), labels)
    guesses = classify(reverse_gradient(ranks.own(vectors)))
    return F.cross_entropy(guesses, ranks.own(labels), reduction="sum") / len(labels)


def _moved(words: Mapping[str, Tensor], start: Mapping[str, Tensor]) -> Tensor:
    """Return half the squared distance of words from their start, averaged over languages."""
    distances = [(p - start[name]).square().sum() / 2 for name, p in words.items()]
    return torch.stack(distances).mean()


def _words(model: JointSpace) -> dict[str, Tensor]:
    return {name: table.weight for name, table in model.sentence_encoder.words.items()}
