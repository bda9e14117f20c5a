"""The model that a run starts from: new, or one that another recipe trained."""

from pathlib import Path

import torch

from pipeline_lib.contract.problems import ContractError
from pipeline_lib.models.initialization import WordVectors
from pipeline_lib.models.joint_space import JointSpace
from pipeline_lib.settings.recipes import AnyRecipe
from pipeline_lib.settings.strict import NONE
from pipeline_lib.text.vocabulary import Vocabulary


def initial_vocabulary(recipe: AnyRecipe, models: Path) -> Vocabulary | None:
    """Return the vocabulary of the recipe that this one continues, or None if it starts anew.

    Args:
        recipe: The recipe to train.
        models: Folder of the models of ``recipe.initial``, one per seed.
    """
    if recipe.initial == NONE:
        return None
    return JointSpace.load(_folder(models, recipe.seeds[0])).vocabulary


def start_model(
    recipe: AnyRecipe,
    vocabulary: Vocabulary,
    feature_dim: int,
    seed: int,
    word_vectors: WordVectors | None,
    models: Path,
) -> JointSpace:
    """Return the model that training starts from, on the CPU.

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
    model = JointSpace(recipe, vocabulary, feature_dim, seed, word_vectors)
    if recipe.initial == NONE:
        return model
    weights = JointSpace.load(_folder(models, seed)).state_dict()
    here = {name: tuple(value.shape) for name, value in model.state_dict().items()}
    there = {name: tuple(value.shape) for name, value in weights.items()}
    if here != there:
        differing = sorted(k for k in here.keys() | there.keys() if here.get(k) != there.get(k))
        raise ContractError(
            f"initial: {recipe.initial} has other layers: {', '.join(differing)}. "
            "Give both the same sizes, languages and vocabulary, or set initial: none."
        )
    model.load_state_dict(weights)
    return model


def parameter_counts(model: JointSpace) -> dict[str, int]:
    """Return how many numbers training tunes: in all, in the image branch, in the language ones.

    Words are counted apart, as papers leave them out (Kim et al. 2020, "Parameter Comparison").
    """
    words = _count(model.sentence_encoder.words)
    return {
        "all": _count(model),
        "image_branch": _count(model.image_encoder),
        "words": words,
        "language_branches": _count(model.sentence_encoder) - words,
    }


def _count(module: torch.nn.Module) -> int:
    return sum(p.numel() for p in module.parameters() if p.requires_grad)


def _folder(models: Path, seed: int) -> Path:
    own = models / f"seed-{seed}"
    return own if own.is_dir() else min(models.glob("seed-*"), key=_seed)


def _seed(folder: Path) -> int:
    return int(folder.name.removeprefix("seed-"))
