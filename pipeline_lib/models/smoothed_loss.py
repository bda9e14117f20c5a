"""Cross-entropy over a large vocabulary with label smoothing, without a matrix of all logits.

A translator of small width spends most of its time here. The gradient is formed chunk by chunk in
the forward pass, while the chunk's logits are in the cache, in the type of the matrix products.
"""

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx, once_differentiable

from pipeline_lib.compute.device import summing_type

CHUNK = 256
"""Positions at a time."""


class SmoothedCrossEntropy(torch.autograd.Function):
    """From hidden states and output weights to the summed loss (Szegedy et al. 2016, §7)."""

    @staticmethod
    def forward(
        ctx: FunctionCtx,
        hidden: Tensor,
        weight: Tensor,
        targets: Tensor,
        smoothing: float,
        kind: torch.dtype,
    ) -> Tensor:
        """Compute the loss and, at once, its gradients.

        Args:
            ctx: Keeps the gradients.
            hidden: ``[positions, dim]``, at least in float32.
            weight: Output weights ``[words, dim]``, likewise; logits are ``hidden @ weight.T``.
            targets: Right words ``int64 [positions]``.
            smoothing: Share of the target probability that all words have equally.
            kind: Type of the matrix products.

        Returns:
            The sum over positions, a scalar of the type of ``hidden``.
        """
        # The target distribution is a constant plus one word, so that its part of the loss and of
        # the gradients needs no pass over the vocabulary.
        mean_word, sure = weight.mean(dim=0), 1 - smoothing
        low, words = hidden.to(kind), weight.to(kind)
        of_hidden = -smoothing * mean_word - sure * weight[targets]
        of_weight = (-smoothing / len(weight) * hidden.sum(dim=0)).repeat(len(weight), 1)
        of_weight.index_add_(0, targets, hidden, alpha=-sure)
        loss = (hidden * of_hidden).sum()
        for start in range(0, len(hidden), CHUNK):
            rows = slice(start, start + CHUNK)
            logits = low[rows] @ words.T
            top = logits.amax(dim=1, keepdim=True)
            powers = logits.sub_(top).exp_()
            total = powers.sum(dim=1, keepdim=True, dtype=summing_type(kind))
            loss += (total.log() + top).sum()
            of_hidden[rows] += (powers @ words) / total
            of_weight += powers.T @ (low[rows] / total).to(kind)
        ctx.save_for_backward(of_hidden, of_weight)
        return loss

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, gradient: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of ``hidden`` and ``weight``."""
        of_hidden, of_weight = ctx.saved_tensors
        return gradient * of_hidden, gradient * of_weight, None, None, None
