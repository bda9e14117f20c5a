"""The recurrence of an LSTM over a tree of prefixes, with its gradient: see ``gru``."""

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx, once_differentiable

from pipeline_lib.compute.arithmetic.kernels import kernels
from pipeline_lib.compute.arithmetic.mode import made_of_kernels
from pipeline_lib.compute.device import summing_type
from pipeline_lib.models.prefixes import PrefixTree


class LSTMStates(torch.autograd.Function):
    """From the gate inputs of all prefixes to their states."""

    @staticmethod
    @made_of_kernels
    def forward(
        ctx: FunctionCtx, inputs: Tensor, weight: Tensor, bias: Tensor, tree: PrefixTree
    ) -> Tensor:
        """Run the recurrence.

        Args:
            ctx: Keeps what the backward pass needs.
            inputs: ``W_i x + b_i`` of every prefix's last word ``[prefixes, 4 dim]``.
            weight: Recurrent weights ``[4 dim, dim]``: input, forget, cell and output gates, as in
                PyTorch.
            bias: Recurrent bias ``[4 dim]``.
            tree: The prefixes.

        Returns:
            The state after each prefix ``[prefixes, dim]``, at least in float32.
        """
        dim, kind = weight.shape[1], inputs.dtype
        use = kernels(kind)
        weight, bias = weight.to(kind), bias.to(kind)
        recur = use.affine(weight.T, bias)
        states = torch.empty(len(inputs), dim, dtype=summing_type(kind))
        cells, cells_before = torch.empty_like(states), torch.zeros_like(states)
        gates = torch.empty(len(inputs), 4 * dim, dtype=kind)
        before = torch.zeros(len(inputs), dim, dtype=kind)
        for now, previous, parents in tree.steps():
            if previous.stop:
                before[now] = states[previous][parents]
                cells_before[now] = cells[previous][parents]
            step = gates[now]
            torch.add(recur(before[now]), inputs[now], out=step)
            use.gates_(step.view(-1, 4, dim))
            add, keep, new, show = step.split(dim, dim=1)
            cells[now] = cells_before[now] * keep + add * new
            states[now] = use.tanh_(cells[now].clone()) * show
        ctx.save_for_backward(gates, cells, cells_before, before, weight)
        ctx.tree = tree
        return states

    @staticmethod
    @once_differentiable
    @made_of_kernels
    def backward(ctx: FunctionCtx, gradient: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of ``inputs``, ``weight`` and ``bias``."""
        gates, cells, cells_before, before, weight = ctx.saved_tensors
        dim, kind = weight.shape[1], gates.dtype
        use = kernels(kind)
        times_weight = use.affine(weight, None)
        gradient, of_cells = gradient.clone(), torch.zeros_like(cells)
        of_gates = torch.empty_like(gates)
        for now, previous, parents in reversed(ctx.tree.steps()):
            add, keep, new, show = gates[now].split(dim, dim=1)
            shown = use.tanh_(cells[now].clone())
            g = of_cells[now] + use.tanh_backward(gradient[now] * show, shown)
            parts = [
                use.sigmoid_backward((g * new).to(kind), add),
                use.sigmoid_backward((g * cells_before[now]).to(kind), keep),
                use.tanh_backward((g * add).to(kind), new),
                use.sigmoid_backward((gradient[now] * shown).to(kind), show),
            ]
            torch.cat(parts, dim=1, out=of_gates[now])
            if previous.stop:
                of_before = times_weight(of_gates[now]).to(gradient.dtype)
                gradient[previous].index_add_(0, parents, of_before)
                of_cells[previous].index_add_(0, parents, g * keep)
        of_weight = use.product(of_gates.T, before).to(gradient.dtype)
        return of_gates, of_weight, use.column_sums(of_gates), None
