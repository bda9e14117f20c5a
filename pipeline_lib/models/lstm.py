"""The recurrence of an LSTM over a tree of prefixes, with its gradient: see ``gru``."""

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx, once_differentiable

from pipeline_lib.models.prefixes import PrefixTree


class LSTMStates(torch.autograd.Function):
    """From the gate inputs of all prefixes to their states."""

    @staticmethod
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
            The state after each prefix, ``float32 [prefixes, dim]``.
        """
        dim, kind = weight.shape[1], inputs.dtype
        weight, bias = weight.to(kind), bias.to(kind)
        states, cells = torch.empty(len(inputs), dim), torch.empty(len(inputs), dim)
        cells_before = torch.zeros(len(inputs), dim)
        gates = torch.empty(len(inputs), 4 * dim, dtype=kind)
        before = torch.zeros(len(inputs), dim, dtype=kind)
        for now, previous, parents in tree.steps():
            if previous.stop:
                before[now] = states[previous][parents]
                cells_before[now] = cells[previous][parents]
            step = gates[now]
            torch.addmm(bias, before[now], weight.T, out=step).add_(inputs[now])
            step[:, : 2 * dim].sigmoid_()
            step[:, 2 * dim : 3 * dim].tanh_()
            step[:, 3 * dim :].sigmoid_()
            add, keep, new, show = step.split(dim, dim=1)
            cells[now] = cells_before[now] * keep + add * new
            states[now] = cells[now].tanh() * show
        ctx.save_for_backward(gates, cells, cells_before, before, weight)
        ctx.tree = tree
        return states

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, gradient: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of ``inputs``, ``weight`` and ``bias``."""
        gates, cells, cells_before, before, weight = ctx.saved_tensors
        dim, kind = weight.shape[1], gates.dtype
        gradient, of_cells = gradient.clone(), torch.zeros_like(cells)
        of_gates = torch.empty_like(gates)
        for now, previous, parents in reversed(ctx.tree.steps()):
            add, keep, new, show = gates[now].split(dim, dim=1)
            shown = cells[now].tanh()
            g = of_cells[now] + torch.ops.aten.tanh_backward(gradient[now] * show, shown)
            backward = torch.ops.aten.sigmoid_backward
            parts = [
                backward((g * new).to(kind), add),
                backward((g * cells_before[now]).to(kind), keep),
                torch.ops.aten.tanh_backward((g * add).to(kind), new),
                backward((gradient[now] * shown).to(kind), show),
            ]
            torch.cat(parts, dim=1, out=of_gates[now])
            if previous.stop:
                gradient[previous].index_add_(0, parents, (of_gates[now] @ weight).float())
                of_cells[previous].index_add_(0, parents, g * keep)
        return of_gates, (of_gates.T @ before).float(), of_gates.float().sum(dim=0), None
