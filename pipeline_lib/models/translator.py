"""The translator: a network, its subwords and its search; saved and loaded here."""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from pydantic import TypeAdapter
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from pipeline_lib.compute.arithmetic.mode import arithmetic
from pipeline_lib.compute.device import TYPES, cores_for, weight_type
from pipeline_lib.compute.forks import on_all_cores
from pipeline_lib.contract.digests import check_sums, reading, write_sums
from pipeline_lib.models.beam_search import beam_search
from pipeline_lib.models.precise import PreciseModule
from pipeline_lib.models.smoothed_loss import SmoothedCrossEntropy
from pipeline_lib.models.translator_gru import AttentionGRUNetwork
from pipeline_lib.models.translator_transformer import TransformerNetwork
from pipeline_lib.scheduling.each import Each
from pipeline_lib.settings.synthesis import AnyTranslator
from pipeline_lib.text.subwords import Subwords
from pipeline_lib.text.vocabulary import END, PAD, START

NETWORKS = {"transformer": TransformerNetwork, "gru_attention": AttentionGRUNetwork}

_LONGEST_RATIO, _LONGEST_MORE = 2, 10
"""A translation has at most 2 x + 10 subwords for x in the source: a guard against endless ones."""


@dataclass(frozen=True)
class Hypothesis:
    """One translation of a sentence.

    Attributes:
        text: The translation.
        log_likelihood: Natural logarithm of its probability; None where it is not known.
        score: What the hypotheses of a sentence are ordered by; None likewise.
    """

    text: str
    log_likelihood: float | None
    score: float | None


class Search(NamedTuple):
    """A batch of sentences to translate, as ids, and how: see :meth:`Translator.translate`."""

    ids: list[list[int]]
    beam: int
    n_best: int
    alpha: float


class Translator(PreciseModule):
    """A network that writes sentences of one language for sentences of another."""

    def __init__(self, recipe: AnyTranslator, subwords: Subwords) -> None:
        """Make an untrained translator; its weights follow from the recipe's seed."""
        super().__init__(recipe.precision)
        self.recipe, self.subwords = recipe, subwords
        with arithmetic(recipe.precision):
            self.network = NETWORKS[recipe.architecture](recipe, len(subwords))
            self.to(weight_type(recipe.precision))
            initialize(self.network, torch.Generator().manual_seed(recipe.seed))

    def loss(self, source: Tensor, target: Tensor) -> Tensor:
        """Return the mean label-smoothed cross-entropy per target word.

        Args:
            source: Ids ``[sentences, steps]``, ended and padded.
            target: Ids ``[sentences, steps]``, ended and padded.
        """
        kind, words = TYPES[self.precision], self.network.words.weight
        begun = torch.cat([torch.full_like(target[:, :1], START), target[:, :-1]], dim=1)
        with torch.autocast(self.device.type, torch.bfloat16, enabled=kind == torch.bfloat16):
            hidden = self.network.hidden(self.network.encode(source), begun)
        real = target != PAD
        summed = SmoothedCrossEntropy.apply(
            hidden[real].to(words.dtype), words, target[real], self.recipe.label_smoothing, kind
        )
        return summed / real.sum()

    def translate(
        self,
        sentences: Sequence[str],
        *,
        beam: int,
        n_best: int,
        alpha: float,
        batch_hypotheses: int = 512,
        each: Each | None = None,
    ) -> list[list[Hypothesis]]:
        """Translate any number of sentences, in eval mode.

        Args:
            sentences: Texts in the source language.
            beam: See :func:`beam_search.beam_search`.
            n_best: Translations per sentence at most.
            alpha: Exponent of the length penalty.
            batch_hypotheses: So many are open at once. Sentences are taken in the order of their
                length, so that a batch is short or long as one.
            each: Does the batches elsewhere by :func:`searching`; all cores do them here if None.

        Returns:
            The best translations of each sentence, best first.
        """
        self.eval()
        ids = self.encode(sentences)
        lengths = np.array([len(each) for each in ids])
        order, size = np.argsort(lengths, kind="stable").tolist(), max(batch_hypotheses // beam, 1)
        batches = [order[start : start + size] for start in range(0, len(order), size)]
        searches = [Search([ids[row] for row in rows], beam, n_best, alpha) for rows in batches]
        at_once = None if self.device.type == "cpu" else 1
        lists = each(searches) if each else on_all_cores(self.search, searches, at_once)
        found = dict(zip(chain.from_iterable(batches), chain.from_iterable(lists), strict=True))
        return [found[row] for row in range(len(ids))]

    def encode(self, sentences: Sequence[str]) -> list[list[int]]:
        """Return the ids of each sentence, end marker included."""
        return [[*ids, END] for ids in self.subwords.encode(sentences)]

    @torch.inference_mode()
    def search(self, search: Search) -> list[list[Hypothesis]]:
        """Translate one batch; return the best translations of each sentence, best first."""
        ids, beam, n_best, alpha = search
        longest = torch.tensor([_LONGEST_RATIO * len(each) + _LONGEST_MORE for each in ids])
        numbers = len(ids) * beam * self.network.words.embedding_dim
        with arithmetic(self.recipe.precision), cores_for(numbers):
            best = beam_search(
                self.network,
                pad(ids).to(self.device),
                beam=beam,
                n_best=n_best,
                alpha=alpha,
                longest=longest,
            )
        counts = best.scores.isfinite().sum(dim=1).tolist()
        words = best.words.flatten(0, 1).tolist()
        texts = self.subwords.decode([_before_end(each) for each in words])
        numbers = best.log_likelihoods.flatten().tolist(), best.scores.flatten().tolist()
        listed = [Hypothesis(*each) for each in zip(texts, *numbers, strict=True)]
        return [listed[row * n_best :][:count] for row, count in enumerate(counts)]

    def save(self, folder: Path) -> None:
        """Write weights.safetensors, recipe.json and subwords.model into a new folder."""
        folder.mkdir(parents=True)
        weights = {name: value.contiguous().cpu() for name, value in self.state_dict().items()}
        save_file(weights, folder / "weights.safetensors")
        text = json.dumps(self.recipe.model_dump(), indent=1, sort_keys=True)
        (folder / "recipe.json").write_text(text + "\n", encoding="utf-8")
        (folder / "subwords.model").write_bytes(self.subwords.model)
        write_sums(folder)

    @classmethod
    def load(cls, folder: Path) -> "Translator":
        """Read a translator that :meth:`save` wrote.

        Raises:
            ContractError: If the folder holds none, or another than its digests say.
        """
        folder = Path(folder)
        check_sums(folder, ("weights.safetensors", "recipe.json", "subwords.model"))
        with reading(folder / "recipe.json", "the settings, subwords and weights of a translator"):
            recipe = json.loads((folder / "recipe.json").read_text(encoding="utf-8"))
            subwords = Subwords((folder / "subwords.model").read_bytes())
            translator = cls(TypeAdapter(AnyTranslator).validate_python(recipe), subwords)
            translator.load_state_dict(load_file(folder / "weights.safetensors"))
        return translator.eval()


def searching(folder: Path) -> Callable[[Search], list[list[Hypothesis]]]:
    """Return the search of a translator that was saved: what workers elsewhere load."""
    return Translator.load(folder).to_best_device().search


def pad(ids: Sequence[Sequence[int]]) -> Tensor:
    """Return ids of sentences as one matrix ``int64 [sentences, longest]``, padded at the end."""
    matrix = np.full((len(ids), max(map(len, ids), default=0)), PAD)
    for row, each in enumerate(ids):
        matrix[row, : len(each)] = each
    return torch.from_numpy(matrix)


@torch.no_grad()
def initialize(network: nn.Module, generator: torch.Generator) -> None:
    """Draw matrices Xavier-uniform, subwords from N(0, 1/dim), recurrent layers as PyTorch does."""
    for layer in network.modules():
        if isinstance(layer, nn.Linear):
            nn.init.xavier_uniform_(layer.weight, generator=generator)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)
        elif isinstance(layer, nn.Embedding):
            deviation = 1 / math.sqrt(layer.embedding_dim)
            nn.init.normal_(layer.weight, std=deviation, generator=generator)
        elif isinstance(layer, nn.GRU | nn.GRUCell):
            bound = 1 / math.sqrt(layer.hidden_size)
            for weight in layer.parameters():
                nn.init.uniform_(weight, -bound, bound, generator=generator)


def _before_end(ids: list[int]) -> list[int]:
    return ids[: ids.index(END)] if END in ids else []
