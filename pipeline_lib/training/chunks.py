"""Batches that do not fit in memory: captions are embedded some at a time, there and back.

A contrastive loss needs the vectors of the whole batch, but not all that the layers below keep for
their gradients (Gao et al. 2021, "Scaling Deep Contrastive Learning Batch Size under Memory Limited
Setup"). So that is kept of no chunk, and computed once more, with the same dropout, when its
gradient is. ``POLYVIEW_TRAIN_CAPTIONS=n`` in the environment asks for chunks of n captions; in the
precision f64, whose bits are those of whole batches, nothing does.
"""

import os
from collections.abc import Callable

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from pipeline_lib.compute.arithmetic.mode import F64
from pipeline_lib.settings.strict import Precision, SettingsError

VARIABLE = "POLYVIEW_TRAIN_CAPTIONS"


def captions_at_once(precision: Precision) -> int | None:
    """Return how many captions of a language are embedded at once, None if all are.

    Raises:
        SettingsError: If the environment asks for no number.
    """
    text = os.environ.get(VARIABLE)
    if text is None or precision == F64:
        return None
    if not text.isdecimal() or int(text) < 1:
        raise SettingsError(f"{VARIABLE}: expected a number of captions, 1 or more, found {text}")
    return int(text)


def in_chunks(
    embed: Callable[[Tensor, Tensor], Tensor], token_ids: Tensor, lengths: Tensor, most: int
) -> Tensor:
    """Embed token ids ``[captions, steps]`` and lengths ``[captions]``, at most so many at once."""
    if len(lengths) <= most:
        return embed(token_ids, lengths)
    chunks = zip(token_ids.split(most), lengths.split(most), strict=True)
    vectors = [
        checkpoint(embed, ids[:, : int(own.max())], own, use_reentrant=False) for ids, own in chunks
    ]
    return torch.cat(vectors)
