"""How untrained weights are drawn; every draw comes from the generator given.

A recipe's words are drawn by :func:`set_words`, whatever its ``initialization``: with
``word_vectors: random`` there are vectors of no word, and all are drawn as unknown ones.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

import numpy as np
import torch
from torch import nn

from pipeline_lib.contract.problems import ContractError
from pipeline_lib.models.encoders import TextEncoder
from pipeline_lib.text.vocabulary import SPECIALS, Vocabulary

Layer = TypeVar("Layer", bound=nn.Module)

WORD_BOUND = 0.1
"""Word vectors start uniform in ±0.1, as in all code bases of the VSE lineage, until
:func:`set_words` draws them anew."""

NORMAL_DEVIATION = 0.01
"""Of non-recurrent matrices (§4 of Calixto et al. 2017)."""

UNKNOWN_DEVIATION = 0.05
"""Of words without a pretrained vector, as in the code of Mohammadshahi et al. 2019."""

VectorsByLanguage = Mapping[str, tuple[list[str], np.ndarray]]
"""Words and their vectors ``float32 [words, dim]``, by language."""


def xavier(module: nn.Module, generator: torch.Generator) -> None:
    """Draw affine maps Xavier-uniform, words in ±.1, recurrent layers as PyTorch does."""
    for layer in _layers(module, nn.Linear):
        nn.init.xavier_uniform_(layer.weight, generator=generator)
        _zero(layer.bias)
    for table in _layers(module, nn.Embedding):
        nn.init.uniform_(table.weight, -WORD_BOUND, WORD_BOUND, generator=generator)
    for layer in _layers(module, nn.RNNBase):
        bound = 1 / math.sqrt(layer.hidden_size)
        for weight in layer.parameters():
            nn.init.uniform_(weight, -bound, bound, generator=generator)


def normal(module: nn.Module, generator: torch.Generator) -> None:
    """Draw matrices from N(0, .01), recurrent ones orthogonal, biases 0 (Calixto et al. 2017)."""
    for layer in _layers(module, nn.Linear):
        nn.init.normal_(layer.weight, std=NORMAL_DEVIATION, generator=generator)
        _zero(layer.bias)
    for table in _layers(module, nn.Embedding):
        nn.init.normal_(table.weight, std=NORMAL_DEVIATION, generator=generator)
    for layer in _layers(module, nn.RNNBase):
        nn.init.normal_(layer.weight_ih_l0, std=NORMAL_DEVIATION, generator=generator)
        for gate in layer.weight_hh_l0.data.split(layer.hidden_size):
            nn.init.orthogonal_(gate, generator=generator)
        nn.init.zeros_(layer.bias_ih_l0)
        nn.init.zeros_(layer.bias_hh_l0)


INITIALIZATIONS: dict[str, Callable[[nn.Module, torch.Generator], None]] = {
    "xavier": xavier,
    "normal": normal,
}


@torch.no_grad()
def set_words(
    sentences: TextEncoder,
    vocabulary: Vocabulary,
    vectors: VectorsByLanguage,
    generator: torch.Generator,
) -> None:
    """Start words from pretrained vectors; those without one are drawn from N(0, .05).

    A pooled table takes a form's vector from the first language that has it.

    Raises:
        ContractError: If the vectors' size is not that of the words.
    """
    for table in vocabulary.tables:
        weight = sentences.word_table(table.languages[0]).weight
        nn.init.normal_(weight, std=UNKNOWN_DEVIATION, generator=generator)
        known: dict[str, np.ndarray] = {}
        for language in table.languages:
            words, matrix = vectors.get(language, ([], np.empty((0, weight.shape[1]))))
            if matrix.shape[1] != weight.shape[1]:
                raise ContractError(
                    f"word vectors of {language}: expected word_dim {weight.shape[1]}, found "
                    f"{matrix.shape[1]}. Set word_dim of the recipe to the vectors' size."
                )
            for word, vector in zip(words, matrix, strict=True):
                known.setdefault(word, vector)
        entries = table.entries
        rows = [i for i, word in enumerate(entries) if word in known]
        if rows:
            found = np.stack([known[entries[i]] for i in rows]).astype(np.float32)
            weight[torch.tensor(rows) + len(SPECIALS)] = torch.from_numpy(found).to(weight)


def _layers(module: nn.Module, kind: type[Layer]) -> Iterator[Layer]:
    return (layer for layer in module.modules() if isinstance(layer, kind))


def _zero(bias: nn.Parameter | None) -> None:
    if bias is not None:
        nn.init.zeros_(bias)
