"""What the seeds of a recipe learn from, and what the model of each depends on."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import torch

from pipeline_lib.contract.features import Features
from pipeline_lib.contract.tables import pairs_of_seed
from pipeline_lib.models.initialization import VectorsByLanguage
from pipeline_lib.models.joint_space import LEARNT
from pipeline_lib.running.publishing import file_sha256
from pipeline_lib.settings.recipes import Recipe
from pipeline_lib.settings.strict import NONE
from pipeline_lib.text.vocabulary import Vocabulary
from pipeline_lib.training.examples import Examples, build_examples, build_vocabulary
from pipeline_lib.training.learner import Learner
from pipeline_lib.training.preparation import folder_of, initial_vocabulary, start_learner


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
        digests: SHA-256 of the files it was read from, by path; captions count by their content.
    """

    recipe: Recipe
    pairs: pd.DataFrame
    features: Features
    lexicon: pd.DataFrame
    word_vectors: VectorsByLanguage
    models: Path
    digests: Mapping[str, str]

    def identity(self, seed: int) -> list[object]:
        """Return all that the model of a seed depends on beside the code, and nothing else.

        How tokens and features were made is in them, not here: photos that have moved, or are read
        in smaller batches, train nothing anew where their features are the same.
        """
        pairs = _digest_of_rows(pairs_of_seed(self.pairs, seed).drop(columns="seed"))
        new = self.recipe.initial == NONE
        initial = None if new else _learnt(folder_of(self.models, seed))
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

    def start(self, seed: int) -> tuple[Learner, Examples, Examples]:
        """Return what a seed starts from, and its training and validation examples."""
        vocabulary = self.vocabulary(seed)
        train, val = (self.examples(split, seed, vocabulary) for split in ("train", "val"))
        return self.learner(seed, vocabulary, train.features.shape[1]), train, val


def _digest_of_rows(table: pd.DataFrame) -> str:
    """Return the SHA-256 of a table as JSON, of which no more than some rows are in memory."""
    digest = hashlib.sha256(b"[")
    for start in range(0, len(table), _ROWS):
        rows = table.iloc[start : start + _ROWS].to_json(orient="values")
        digest.update(b"," * (start > 0) + rows[1:-1].encode())
    digest.update(b"]")
    return digest.hexdigest()


_ROWS = 50_000


def _learnt(model: Path) -> dict[str, str]:
    """Return digests of what a model has learnt, and not of how its inputs were made."""
    return {path.name: file_sha256(path) for path in sorted(model.iterdir()) if path.name in LEARNT}


def of_seed(recipe: Recipe, seed: int) -> Recipe:
    """Return the recipe of the model of one seed."""
    return recipe.model_copy(update={"seeds": [seed]})
