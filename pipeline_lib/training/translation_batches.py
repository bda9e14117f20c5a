"""Batches of sentence pairs of similar length, with a bounded number of tokens."""

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import torch
from torch import Tensor

from pipeline_lib.models.translator import Translator, pad
from pipeline_lib.text.vocabulary import PAD


@dataclass(frozen=True)
class SentencePairs:
    """Encoded sentence pairs, end markers included.

    Attributes:
        source: Ids ``int64 [pairs, steps]``, padded at the end.
        target: Likewise; a row of it translates the row of ``source``.
    """

    source: Tensor
    target: Tensor

    def __len__(self) -> int:
        return len(self.source)

    @cached_property
    def lengths(self) -> np.ndarray:
        """Tokens of source and target ``int64 [pairs, 2]``."""
        return np.stack([(side != PAD).sum(1).numpy() for side in (self.source, self.target)], 1)

    def batch(self, rows: np.ndarray, device: torch.device) -> tuple[Tensor, Tensor]:
        """Return source and target of some pairs, as short as they allow, on ``device``."""
        longest, chosen = self.lengths[rows].max(axis=0), torch.from_numpy(rows)
        source, target = (
            side[chosen, :length].to(device)
            for side, length in zip((self.source, self.target), longest.tolist(), strict=True)
        )
        return source, target


def encode_pairs(translator: Translator, source: list[str], target: list[str]) -> SentencePairs:
    """Encode sentences and their translations."""
    return SentencePairs(*(pad(translator.encode(side)) for side in (source, target)))


class TokenBatches:
    """Shuffled batches, epoch after epoch; each is a function of its number alone.

    Pairs are sorted by length, equally long ones in a new random order each epoch, and cut so that
    neither side of a batch exceeds ``batch_tokens`` with its padding; then the batches are
    shuffled. Where the cuts fall depends on the lengths only, so that all epochs have as many.
    """

    def __init__(self, lengths: np.ndarray, batch_tokens: int, seed: int) -> None:
        """Plan batches for pairs of these lengths ``[pairs, 2]``."""
        self.lengths, self.seed = lengths, seed
        by_length = lengths[np.lexsort((lengths[:, 0], lengths[:, 1]))]
        self.starts = _cuts(by_length, batch_tokens)
        self._epoch = lru_cache(maxsize=1)(self._plan_epoch)

    @property
    def batches_per_epoch(self) -> int:
        """Updates in which every pair is seen once."""
        return len(self.starts)

    def __getitem__(self, number: int) -> np.ndarray:
        """Return batch ``number`` (from 0, without end) as rows ``int64 [batch]``."""
        epoch, position = divmod(number, self.batches_per_epoch)
        return self._epoch(epoch)[position]

    def _plan_epoch(self, epoch: int) -> list[np.ndarray]:
        random = np.random.default_rng([self.seed, epoch])
        chance = random.random(len(self.lengths))
        order = np.lexsort((chance, self.lengths[:, 0], self.lengths[:, 1]))
        batches = np.split(order, self.starts[1:])
        return [batches[number] for number in random.permutation(len(batches))]


def _cuts(lengths: np.ndarray, batch_tokens: int) -> list[int]:
    """Return where batches of sorted pairs begin; a pair longer than the bound stands alone."""
    starts, longest = [0], 0
    for place, length in enumerate(lengths.max(axis=1).tolist()):
        longest = max(longest, length)
        if place > starts[-1] and longest * (place + 1 - starts[-1]) > batch_tokens:
            starts.append(place)
            longest = length
    return starts
