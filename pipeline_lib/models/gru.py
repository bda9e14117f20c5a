"""The recurrence of a GRU over a tree of prefixes, with its gradient.

The arithmetic is that of ``torch.nn.GRU`` (tests compare both). Matrix products run in the type of
the inputs, which may be bfloat16; states stay float32. The gradient of the recurrent weights is one
matrix product at the end, not one per step.
"""

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx, once_differentiable

from pipeline_lib.models.prefixes import PrefixTree


class GRUStates(torch.autograd.Function):
    """From the gate inputs of all prefixes to their states."""

    @staticmethod
    def forward(
        ctx: FunctionCtx, inputs: Tensor, weight: Tensor, bias: Tensor, tree: PrefixTree
    ) -> Tensor:
        """Run the recurrence.

        Args:
            ctx: Keeps what the backward pass needs.
            inputs: ``W_i x + b_i`` of every prefix's last word ``[prefixes, 3 dim]``.
            weight: Recurrent weights ``[3 dim, dim]``: reset, update and candidate, as in PyTorch.
            bias: Recurrent bias ``[3 dim]``.
            tree: The prefixes.

        Returns:
            The state after each prefix, ``float32 [prefixes, dim]``.
        """
        dim, kind = weight.shape[1], inputs.dtype
        weight, bias = weight.to(kind), bias.to(kind)
        states = torch.empty(len(inputs), dim)
        gates = torch.empty(len(inputs), 3 * dim, dtype=kind)
        before, recurrent = (torch.empty_like(gates[:, :dim]) for _ in range(2))
        for now, previous, parents in tree.steps():
            state = states[previous][parents] if previous.stop else torch.zeros(len(parents), dim)
            before[now] = state
            hidden = torch.addmm(bias, before[now], weight.T)
            recurrent[now] = hidden[:, 2 * dim :]
            step, given = gates[now], inputs[now]
            switch = step[:, : 2 * dim]
            torch.add(given[:, : 2 * dim], hidden[:, : 2 * dim], out=switch).sigmoid_()
            reset, update, candidate = step.split(dim, dim=1)
            torch.addcmul(given[:, 2 * dim :], reset, recurrent[now], out=candidate).tanh_()
            states[now] = state.sub_(candidate).mul_(update).add_(candidate)
        ctx.save_for_backward(gates, recurrent, before, weight)
        ctx.tree = tree
        return states

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, gradient: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of ``inputs``, ``weight`` and ``bias``."""
        gates, recurrent, before, weight = ctx.saved_tensors
        dim = weight.shape[1]
        gradient = gradient.clone()
        of_inputs, of_hidden = torch.empty_like(gates), torch.empty_like(gates)
        for now, previous, parents in reversed(ctx.tree.steps()):
            reset, update, candidate = gates[now].split(dim, dim=1)
            state = gradient[now]
            g = state.to(gates.dtype)
            g_update = torch.ops.aten.sigmoid_backward((before[now] - candidate).mul_(g), update)
            g_candidate = torch.ops.aten.tanh_backward(g.addcmul(g, update, value=-1), candidate)
            g_reset = torch.ops.aten.sigmoid_backward(g_candidate * recurrent[now], reset)
            torch.cat([g_reset, g_update, g_candidate], dim=1, out=of_inputs[now])
            of_hidden[now, : 2 * dim] = of_inputs[now, : 2 * dim]
            torch.mul(g_candidate, reset, out=of_hidden[now, 2 * dim :])
            if previous.stop:
                state.mul_(update).add_(of_hidden[now] @ weight)
                gradient[previous].index_add_(0, parents, state)
        return of_inputs, (of_hidden.T @ before).float(), of_hidden.float().sum(dim=0), None
