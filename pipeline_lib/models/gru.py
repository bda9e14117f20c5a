"""The recurrence of a GRU over a tree of prefixes, with its gradient.

The arithmetic is that of ``torch.nn.GRU`` (tests compare both). Matrix products run in the type of
the inputs, which may be bfloat16; states then are float32. The gradient of the recurrent weights is
one matrix product at the end, not one per step.
"""

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx, once_differentiable

from pipeline_lib.compute.arithmetic.kernels import kernels
from pipeline_lib.compute.arithmetic.mode import made_of_kernels
from pipeline_lib.compute.device import summing_type
from pipeline_lib.models.prefixes import PrefixTree


class GRUStates(torch.autograd.Function):
    """From the gate inputs of all prefixes to their states."""

    @staticmethod
    @made_of_kernels
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
            The state after each prefix ``[prefixes, dim]``, at least in float32.
        """
        dim, kind = weight.shape[1], inputs.dtype
        use = kernels(kind)
        weight, bias = weight.to(kind), bias.to(kind)
        recur = use.affine(weight.T, bias)
        states = torch.empty(len(inputs), dim, dtype=summing_type(kind))
        gates = torch.empty(len(inputs), 3 * dim, dtype=kind)
        before, recurrent = (torch.empty_like(gates[:, :dim]) for _ in range(2))
        for now, previous, parents in tree.steps():
            state = states.new_zeros(len(parents), dim)
            if previous.stop:
                state = states[previous][parents]
            before[now] = state
            hidden = recur(before[now])
            recurrent[now] = hidden[:, 2 * dim :]
            step, given = gates[now], inputs[now]
            switch = step[:, : 2 * dim]
            use.sigmoid_(torch.add(given[:, : 2 * dim], hidden[:, : 2 * dim], out=switch))
            reset, update, candidate = step.split(dim, dim=1)
            candidate.copy_(use.addcmul(given[:, 2 * dim :], reset, recurrent[now]))
            use.tanh_(candidate)
            states[now] = state.sub_(candidate).mul_(update).add_(candidate)
        ctx.save_for_backward(gates, recurrent, before, weight)
        ctx.tree = tree
        return states

    @staticmethod
    @once_differentiable
    @made_of_kernels
    def backward(ctx: FunctionCtx, gradient: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of ``inputs``, ``weight`` and ``bias``."""
        gates, recurrent, before, weight = ctx.saved_tensors
        dim, use = weight.shape[1], kernels(gates.dtype)
        times_weight = use.affine(weight, None)
        gradient = gradient.clone()
        of_inputs, of_hidden = torch.empty_like(gates), torch.empty_like(gates)
        for now, previous, parents in reversed(ctx.tree.steps()):
            reset, update, candidate = gates[now].split(dim, dim=1)
            state = gradient[now]
            g = state.to(gates.dtype)
            g_update = use.sigmoid_backward((before[now] - candidate).mul_(g), update)
            g_candidate = use.tanh_backward(use.addcmul(g, g, update, value=-1), candidate)
            g_reset = use.sigmoid_backward(g_candidate * recurrent[now], reset)
            torch.cat([g_reset, g_update, g_candidate], dim=1, out=of_inputs[now])
            of_hidden[now, : 2 * dim] = of_inputs[now, : 2 * dim]
            torch.mul(g_candidate, reset, out=of_hidden[now, 2 * dim :])
            if previous.stop:
                state.mul_(update).add_(times_weight(of_hidden[now]))
                gradient[previous].index_add_(0, parents, state)
        of_weight = use.product(of_hidden.T, before).to(gradient.dtype)
        return of_inputs, of_weight, use.column_sums(of_hidden), None
