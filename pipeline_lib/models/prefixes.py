"""The sentences of a batch as a tree of prefixes, so that a recurrent layer reads each one once.

PyTorch's padded layers compute every pad; its packed ones run step by step on the CPU and add up
the weights' gradient at each step. Here step ``t`` holds the different prefixes of ``t + 1`` words:
no pad is computed, and sentences that begin alike ("<start> a man in a ...") share their states
until they part. That is exact: a forward layer's state depends on the prefix alone.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor


@dataclass(frozen=True)
class PrefixTree:
    """All prefixes of some sentences, step after step.

    Attributes:
        tokens: Last word of each prefix ``int64 [prefixes]``.
        parents: For each step, where its prefixes without their last word stand among those of
            the step before ``int64 [prefixes of the step]``.
        whole: The prefix that is the whole sentence ``int64 [sentences]``.
    """

    tokens: Tensor
    parents: list[Tensor]
    whole: Tensor

    @classmethod
    def of(cls, token_ids: Tensor, lengths: Tensor) -> "PrefixTree":
        """Find the prefixes of ``token_ids [sentences, steps]``; each length is at least 1."""
        ids, lengths = token_ids.cpu().numpy(), lengths.cpu().numpy()
        prefix, whole = np.zeros(len(ids), np.int64), np.empty(len(ids), np.int64)
        base, start = int(ids.max()) + 1, 0
        tokens, parents = [], []
        for step in range(int(lengths.max())):
            live = np.flatnonzero(lengths > step)
            found, prefix[live] = np.unique(
                prefix[live] * base + ids[live, step], return_inverse=True
            )
            parents.append(torch.from_numpy(found // base))
            tokens.append(found % base)
            ended = lengths == step + 1
            whole[ended] = start + prefix[ended]
            start += len(found)
        return cls(torch.from_numpy(np.concatenate(tokens)), parents, torch.from_numpy(whole))

    def steps(self) -> list[tuple[slice, slice, Tensor]]:
        """Return, for each step, its prefixes, those of the step before, and their parents."""
        ends = np.cumsum([0, 0, *map(len, self.parents)])
        return [
            (slice(now, end), slice(before, now), parents)
            for before, now, end, parents in zip(
                ends, ends[1:], ends[2:], self.parents, strict=False
            )
        ]
