"""What a run starts from: its captions, and a model, new or one that another recipe trained."""

from pathlib import Path

import torch

from pipeline_lib.compute.arithmetic.mode import arithmetic
from pipeline_lib.contract.problems import ContractError
from pipeline_lib.models.initialization import (
    INITIALIZATIONS,
    VectorsByLanguage,
    set_words,
    xavier,
)
from pipeline_lib.models.joint_space import JointSpace
from pipeline_lib.settings.recipes import Recipe
from pipeline_lib.settings.strict import NONE
from pipeline_lib.text.vocabulary import Vocabulary
from pipeline_lib.training.learner import Learner
from pipeline_lib.training.objectives import objective_layers


def initial_vocabulary(recipe: Recipe, models: Path, seed: int) -> Vocabulary | None:
    """Return the vocabulary of the model that this one continues, or None if it starts anew.

    Args:
        recipe: The recipe to train.
        models: Folder of the models of ``recipe.initial``, one per seed.
        seed: Of the model.
    """
    if recipe.initial == NONE:
        return None
    return JointSpace.load(folder_of(models, seed)).vocabulary


def start_learner(
    recipe: Recipe,
    vocabulary: Vocabulary,
    feature_dim: int,
    seed: int,
    word_vectors: VectorsByLanguage | None,
    models: Path,
) -> Learner:
    """Return what training starts from, on the CPU.

    Args:
        recipe: The recipe to train.
        vocabulary: Of its training captions, or of the recipe that it continues.
        feature_dim: Size of image features.
        seed: Of the initial weights. A continued recipe gives its weights of the same seed, or of
            its first one if it has no such.
        word_vectors: What words start from, or None.
        models: Folder of the models of ``recipe.initial``.

    Raises:
        ContractError: If the continued model has other layers or sizes.
    """
    learner = new_learner(recipe, vocabulary, feature_dim, seed, word_vectors)
    if recipe.initial == NONE:
        return learner
    weights = JointSpace.load(folder_of(models, seed)).state_dict()
    here = {name: tuple(value.shape) for name, value in learner.space.state_dict().items()}
    there = {name: tuple(value.shape) for name, value in weights.items()}
    if here != there:
        differing = sorted(k for k in here.keys() | there.keys() if here.get(k) != there.get(k))
        raise ContractError(
            f"initial: {recipe.initial} has other layers: {', '.join(differing)}. "
            "Give both the same sizes, languages and vocabulary, or set initial: none."
        )
    learner.space.load_state_dict(weights)
    return learner


def new_learner(
    recipe: Recipe,
    vocabulary: Vocabulary,
    feature_dim: int,
    seed: int,
    word_vectors: VectorsByLanguage | None = None,
) -> Learner:
    """Return an untrained model behind its recipe, its weights drawn from ``seed``.

    Words that ``word_vectors`` lacks are drawn, all like the other weights if it is None. Layers
    that no initialization knows, of parts that others add, have what PyTorch draws from the seed.
    """
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        space = JointSpace(recipe.architecture, vocabulary, feature_dim)
        learner = Learner(recipe, space, objective_layers(recipe))
    generator = torch.Generator().manual_seed(seed)
    with arithmetic(recipe.precision):
        INITIALIZATIONS[recipe.initialization](space, generator)
        xavier(learner.layers, generator)
        if word_vectors is not None:
            set_words(space.sentence_encoder, vocabulary, word_vectors, generator)
    return learner


def parameter_counts(learner: Learner) -> dict[str, int]:
    """Return how many numbers training tunes: in all, in the image branch, in the language ones.

    Words are counted apart, as papers leave them out (Kim et al. 2020, "Parameter Comparison").
    """
    encoder = learner.space.sentence_encoder
    words = _count(encoder.words)
    return {
        "all": _count(learner),
        "image_branch": _count(learner.space.image_encoder),
        "words": words,
        "language_branches": _count(encoder) - words,
    }


def _count(module: torch.nn.Module) -> int:
    return sum(p.numel() for p in module.parameters() if p.requires_grad)


def folder_of(models: Path, seed: int) -> Path:
    """Return the model of a seed in a recipe's folder, or of its first one if it has no such."""
    own = models / f"seed-{seed}"
    return own if own.is_dir() else min(models.glob("seed-*"), key=_seed)


def _seed(folder: Path) -> int:
    return int(folder.name.removeprefix("seed-"))
