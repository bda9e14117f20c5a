"""What a run starts from: its captions, and a model, new or one that another recipe trained."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import torch

from pipeline_lib.arithmetic import arithmetic
from pipeline_lib.contract.features import Features
from pipeline_lib.contract.problems import ContractError
from pipeline_lib.contract.tables import pairs_of_seed
from pipeline_lib.models.initialization import (
    INITIALIZATIONS,
    VectorsByLanguage,
    set_words,
    xavier,
)
from pipeline_lib.models.joint_space import JointSpace
from pipeline_lib.publishing import tree_sha256
from pipeline_lib.settings.recipes import Recipe
from pipeline_lib.settings.strict import NONE
from pipeline_lib.text.vocabulary import Vocabulary
from pipeline_lib.training.examples import Examples, build_examples, build_vocabulary
from pipeline_lib.training.learner import Learner
from pipeline_lib.training.objectives import objective_layers


@dataclass(frozen=True)
class Material:
    """What the seeds of a recipe learn from.

    Attributes:
        recipe: How they learn.
        pairs: Captions of all seeds (contract.tables.PAIRS).
        features: Of their images.
        lexicon: Translations (contract.lexicons.LEXICON), perhaps none.
        word_vectors: What words start from, by language; of no language where they are drawn.
        models: Folder of the models of ``recipe.initial``.
        digests: Of the files behind features, lexicon and word vectors.
    """

    recipe: Recipe
    pairs: pd.DataFrame
    features: Features
    lexicon: pd.DataFrame
    word_vectors: VectorsByLanguage
    models: Path
    digests: Mapping[str, str]

    def identity(self, seed: int) -> list[object]:
        """Return all that the model of a seed depends on beside the code, and nothing else."""
        captions = pairs_of_seed(self.pairs, seed).drop(columns="seed").to_json(orient="values")
        pairs = hashlib.sha256(captions.encode()).hexdigest()
        new = self.recipe.initial == NONE
        initial = None if new else tree_sha256(_folder(self.models, seed))
        settings = of_seed(self.recipe, seed).model_dump()
        return [settings, pairs, initial, dict(self.digests), torch.__version__]

    def vocabulary(self, seed: int) -> Vocabulary:
        """Return the words of a seed's captions, or those of the model that it continues."""
        continued = initial_vocabulary(self.recipe, self.models, seed)
        return continued or build_vocabulary(pairs_of_seed(self.pairs, seed), self.recipe)

    def examples(self, split: str, seed: int, vocabulary: Vocabulary) -> Examples:
        """Return a seed's captions of one split and their images."""
        pairs = pairs_of_seed(self.pairs, seed)
        return build_examples(pairs, split, self.features, vocabulary, self.recipe, self.lexicon)

    def learner(self, seed: int, vocabulary: Vocabulary, feature_dim: int) -> Learner:
        """Return what a seed starts from: see :func:`start_learner`."""
        return start_learner(
            self.recipe, vocabulary, feature_dim, seed, self.word_vectors, self.models
        )


def of_seed(recipe: Recipe, seed: int) -> Recipe:
    """Return the recipe of the model of one seed."""
    return recipe.model_copy(update={"seeds": [seed]})


def initial_vocabulary(recipe: Recipe, models: Path, seed: int) -> Vocabulary | None:
    """Return the vocabulary of the model that this one continues, or None if it starts anew.

    Args:
        recipe: The recipe to train.
        models: Folder of the models of ``recipe.initial``, one per seed.
        seed: Of the model.
    """
    if recipe.initial == NONE:
        return None
    return JointSpace.load(_folder(models, seed)).vocabulary


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
    weights = JointSpace.load(_folder(models, seed)).state_dict()
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

    Words that ``word_vectors`` lacks are drawn, all like the other weights if it is None.
    """
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


def _folder(models: Path, seed: int) -> Path:
    own = models / f"seed-{seed}"
    return own if own.is_dir() else min(models.glob("seed-*"), key=_seed)


def _seed(folder: Path) -> int:
    return int(folder.name.removeprefix("seed-"))
