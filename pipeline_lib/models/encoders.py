"""Encoders of images and of sentences into the joint space."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pipeline_lib.models.recurrent import SentenceGRU
from pipeline_lib.settings import Recipe
from pipeline_lib.text.vocabulary import Vocabulary

WORD_INIT = 0.1
"""Word vectors start uniform in ±0.1, as in all code bases of the VSE lineage."""


class ImageEncoder(nn.Module):
    """One affine map from CNN features to the joint space (§3.1 of Kádár et al. 2019)."""

    def __init__(self, feature_dim: int, recipe: Recipe, generator: torch.Generator) -> None:
        """Make the layer: Xavier-uniform weights, zero bias."""
        super().__init__()
        self.normalize_features = recipe.normalize_features
        self.linear = nn.Linear(feature_dim, recipe.embed_dim)
        nn.init.xavier_uniform_(self.linear.weight, generator=generator)
        nn.init.zeros_(self.linear.bias)

    def forward(self, features: Tensor) -> Tensor:
        """Map features ``[images, feature_dim]`` to vectors ``[images, embed_dim]``."""
        if self.normalize_features:
            features = F.normalize(features, dim=1)
        return self.linear(features)


class SentenceEncoder(nn.Module):
    """Word vectors and a GRU whose final state is the sentence (§3.1 of Kádár et al. 2019).

    All languages share the GRU. With a pooled vocabulary they share word vectors too, so that a
    form that occurs in two languages has one vector.
    """

    def __init__(self, vocabulary: Vocabulary, recipe: Recipe, generator: torch.Generator) -> None:
        """Make word vectors (one table, or one per language) and the GRU."""
        super().__init__()
        self.pooled = recipe.vocabulary == "pooled"
        tables = recipe.languages[:1] if self.pooled else recipe.languages
        self.words = nn.ModuleDict(
            {
                language: nn.Embedding(vocabulary.size(language), recipe.word_dim)
                for language in tables
            }
        )
        self.recurrent = SentenceGRU(recipe.word_dim, recipe.embed_dim, recipe.precision)
        for table in self.words.values():
            nn.init.uniform_(table.weight, -WORD_INIT, WORD_INIT, generator=generator)
        bound = recipe.embed_dim**-0.5  # PyTorch's own initialisation, drawn from our generator
        for weight in self.recurrent.gru.parameters():
            nn.init.uniform_(weight, -bound, bound, generator=generator)

    def forward(self, token_ids: Tensor, lengths: Tensor, language: str) -> Tensor:
        """Encode ``token_ids [sentences, steps]`` of one language to ``[sentences, embed_dim]``."""
        table = next(iter(self.words.values())) if self.pooled else self.words[language]
        return self.recurrent(table, token_ids, lengths)
