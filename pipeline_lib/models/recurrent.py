"""A GRU over sentences of different lengths that does no work for padding.

PyTorch's packed GRU runs step by step on the CPU and adds up the weights' gradient at each step;
its padded GRU is fused but computes every pad. Here sentences are sorted by length, step ``t``
updates only those that are longer than ``t``, and the gradient of the recurrent weights is one
matrix product at the end. The arithmetic is that of ``torch.nn.GRU`` (tests compare both); the
matrix products may run in bfloat16, the state stays float32. On CUDA cuDNN's packed GRU is used.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.autograd.function import FunctionCtx, once_differentiable
from torch.nn import functional as F

PRECISIONS = {"f32": torch.float32, "bf16": torch.bfloat16}


@dataclass(frozen=True)
class Packing:
    """How padded sentences are laid out step after step, longest sentence first.

    Attributes:
        order: Rows in the order of falling length ``[sentences]``.
        inverse: Where each row went ``[sentences]``.
        sizes: How many sentences have a word at each step.
    """

    order: Tensor
    inverse: Tensor
    sizes: list[int]

    @classmethod
    def of(cls, lengths: Tensor) -> "Packing":
        """Lay out sentences of these lengths ``[sentences]``, each at least 1."""
        ordered, order = lengths.sort(descending=True, stable=True)
        steps = torch.arange(int(ordered[0]))
        sizes = (ordered[None, :].cpu() > steps[:, None]).sum(dim=1).tolist()
        return cls(order, order.argsort(), sizes)

    def flatten(self, token_ids: Tensor) -> Tensor:
        """Return the ids of all words ``[words]``, step after step, from ``[sentences, steps]``."""
        columns = token_ids[self.order].T
        return torch.cat([columns[step, :size] for step, size in enumerate(self.sizes)])


class FinalStates(torch.autograd.Function):
    """The recurrence of a GRU: from gate inputs of all words to each sentence's final state."""

    @staticmethod
    def forward(
        ctx: FunctionCtx, inputs: Tensor, weight: Tensor, bias: Tensor, sizes: list[int]
    ) -> Tensor:
        """Run the recurrence.

        Args:
            ctx: Keeps what the backward pass needs.
            inputs: ``W_i x + b_i`` of every word, ``[words, 3 dim]``, laid out as ``Packing``; its
                type is that of the matrix products.
            weight: Recurrent weights ``[3 dim, dim]``: reset, update and candidate, as in PyTorch.
            bias: Recurrent bias ``[3 dim]``.
            sizes: Sentences that have a word at each step.

        Returns:
            Final states ``float32 [sentences, dim]``, longest sentence first.
        """
        dim, words, kind = weight.shape[1], len(inputs), inputs.dtype
        weight, bias = weight.to(kind), bias.to(kind)
        state = torch.zeros(sizes[0], dim, device=inputs.device)
        gates = torch.empty(words, 3 * dim, dtype=kind, device=inputs.device)
        before, recurrent = (torch.empty_like(gates[:, :dim]) for _ in range(2))
        start = 0
        for size in sizes:
            now = slice(start, start + size)
            start += size
            live = state[:size]
            before[now] = live
            hidden = torch.addmm(bias, before[now], weight.T)
            recurrent[now] = hidden[:, 2 * dim :]
            step, given = gates[now], inputs[now]
            switch = step[:, : 2 * dim]
            torch.add(given[:, : 2 * dim], hidden[:, : 2 * dim], out=switch).sigmoid_()
            reset, update, candidate = step.split(dim, dim=1)
            torch.addcmul(given[:, 2 * dim :], reset, recurrent[now], out=candidate).tanh_()
            live.sub_(candidate).mul_(update).add_(candidate)
        ctx.save_for_backward(gates, recurrent, before, weight)
        ctx.sizes = sizes
        return state

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, gradient: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of ``inputs``, ``weight`` and ``bias``."""
        gates, recurrent, before, weight = ctx.saved_tensors
        dim = weight.shape[1]
        gradient = gradient.clone()
        of_inputs, of_hidden = torch.empty_like(gates), torch.empty_like(gates)
        end = len(gates)
        for size in reversed(ctx.sizes):
            now = slice(end - size, end)
            end -= size
            reset, update, candidate = gates[now].split(dim, dim=1)
            live = gradient[:size]
            g = live.to(gates.dtype)
            g_update = torch.ops.aten.sigmoid_backward((before[now] - candidate).mul_(g), update)
            g_candidate = torch.ops.aten.tanh_backward(g.addcmul(g, update, value=-1), candidate)
            g_reset = torch.ops.aten.sigmoid_backward(g_candidate * recurrent[now], reset)
            torch.cat([g_reset, g_update, g_candidate], dim=1, out=of_inputs[now])
            of_hidden[now, : 2 * dim] = of_inputs[now, : 2 * dim]
            torch.mul(g_candidate, reset, out=of_hidden[now, 2 * dim :])
            live.mul_(update).add_(of_hidden[now] @ weight)
        return of_inputs, (of_hidden.T @ before).float(), of_hidden.float().sum(dim=0), None


class SentenceGRU(nn.Module):
    """Words to one vector per sentence: the final state of a one-layer forward GRU."""

    def __init__(self, word_dim: int, dim: int, precision: str) -> None:
        """Make the layer with PyTorch's own parameter layout (``self.gru``).

        Args:
            word_dim: Size of word vectors.
            dim: Size of the state.
            precision: Type of the matrix products: a key of :data:`PRECISIONS`.
        """
        super().__init__()
        self.gru = nn.GRU(word_dim, dim, batch_first=True)
        self.kind = PRECISIONS[precision]

    def forward(self, words: nn.Embedding, token_ids: Tensor, lengths: Tensor) -> Tensor:
        """Encode sentences.

        Args:
            words: Word vectors.
            token_ids: ``[sentences, steps]``, padded at the end with any id.
            lengths: Words per sentence ``[sentences]``, each at least 1.

        Returns:
            Final states ``float32 [sentences, dim]``, in the order given.
        """
        if token_ids.is_cuda:
            return self._cudnn(words, token_ids, lengths)
        packing = Packing.of(lengths)
        # A batch repeats its words (1,600 tokens, some 450 types): project each type once.
        types, occurrence = packing.flatten(token_ids).unique(return_inverse=True)
        project = self.gru.weight_ih_l0.to(self.kind), self.gru.bias_ih_l0.to(self.kind)
        inputs = F.embedding(occurrence, F.linear(words(types).to(self.kind), *project))
        recurrence = self.gru.weight_hh_l0, self.gru.bias_hh_l0
        return FinalStates.apply(inputs, *recurrence, packing.sizes)[packing.inverse]

    def _cudnn(self, words: nn.Embedding, token_ids: Tensor, lengths: Tensor) -> Tensor:
        packed = nn.utils.rnn.pack_padded_sequence(
            words(token_ids), lengths.cpu(), batch_first=True, enforce_sorted=False
        )
        enabled = self.kind != torch.float32
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=enabled):
            _, state = self.gru(packed)
        return state[0].float()
