"""Optimizers and schedules of the learning rate, by their names in a recipe.

One is added by a function here, and by its keys under the same name in settings/optimization.py.
"""

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn

from pipeline_lib.compute.arithmetic.functions import cos, power
from pipeline_lib.settings.recipes import Recipe

ADAM_BETAS = (0.9, 0.999)
"""Those of Kingma & Ba 2015, which no paper changes."""

_EPSILON = 1e-8

_FIRST_SHARE = 1e-2
"""Of an epoch: the first update of a warm-up is not lost to a rate of 0."""


def tuned_parameters(network: nn.Module) -> list[nn.Parameter]:
    """Return what an optimizer moves."""
    return [parameter for parameter in network.parameters() if parameter.requires_grad]


def adam(network: nn.Module, betas: tuple[float, float] = ADAM_BETAS) -> torch.optim.Optimizer:
    """Return Adam over all that is tuned."""
    return torch.optim.Adam(tuned_parameters(network), betas=betas, fused=True)


class RowwiseAdamW(torch.optim.Optimizer):
    """AdamW in which the rows of word tables learn one by one.

    A word that an update does not read keeps its vector and its moments, and counts no step: a
    rare one is not moved by what it did long ago, and an update costs the words of its batch. Other
    parameters learn as torch.optim.AdamW's; only matrices decay.
    """

    def __init__(
        self, tables: Iterable[Tensor], others: Iterable[Tensor], weight_decay: float
    ) -> None:
        """Take word tables ``[words, dim]``, and all other parameters."""
        others = list(others)
        groups = [
            {"params": list(tables), "rowwise": True, "weight_decay": 0.0},
            {"params": [p for p in others if p.ndim > 1], "weight_decay": weight_decay},
            {"params": [p for p in others if p.ndim < 2], "weight_decay": 0.0},
        ]
        super().__init__([group for group in groups if group["params"]], {"rowwise": False})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:
        """Move every parameter that has a gradient."""
        del closure
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    state = self.state[parameter] or self._start(parameter, group["rowwise"])
                    move = _move_rows if group["rowwise"] else _move
                    move(parameter, parameter.grad, state, group["lr"], group["weight_decay"])

    def _start(self, parameter: Tensor, rowwise: bool) -> dict[str, Tensor]:
        shares = (len(parameter), 1) if rowwise else ()
        self.state[parameter] = {
            "mean": torch.zeros_like(parameter),
            "square": torch.zeros_like(parameter),
            "mean_share": parameter.new_zeros(shares),
            "square_share": parameter.new_zeros(shares),
        }
        return self.state[parameter]


def _move(
    values: Tensor, gradient: Tensor, state: dict[str, Tensor], rate: float, decay: float
) -> None:
    """Take one step of AdamW (algorithm 2 of Loshchilov & Hutter 2019), in place.

    What a moment lacks for its zero start is the share that no gradient has filled yet.
    """
    powers = {"mean": gradient, "square": gradient**2}
    for (name, raised), beta in zip(powers.items(), ADAM_BETAS, strict=True):
        state[name].mul_(beta).add_(raised, alpha=1 - beta)
        state[f"{name}_share"].mul_(beta).add_(1 - beta)
    root = (state["square"] / state["square_share"]).sqrt_().add_(_EPSILON)
    step = state["mean"].div(state["mean_share"]).div_(root).mul_(rate)
    values.mul_(1 - rate * decay).sub_(step)


def _move_rows(
    table: Tensor, gradient: Tensor, state: dict[str, Tensor], rate: float, decay: float
) -> None:
    rows, values = _read_rows(gradient)
    moved, own = table[rows], {name: numbers[rows] for name, numbers in state.items()}
    _move(moved, values, own, rate, decay)
    table.index_copy_(0, rows, moved)
    for name, numbers in own.items():
        state[name].index_copy_(0, rows, numbers)


def _read_rows(gradient: Tensor) -> tuple[Tensor, Tensor]:
    """Return the rows of a table that an update read ``[rows]``, and their gradients."""
    if gradient.is_sparse:
        gradient = gradient.coalesce()
        return gradient.indices()[0], gradient.values()
    rows = torch.nonzero((gradient != 0).any(dim=1))[:, 0]
    return rows, gradient[rows]


def make_optimizer(recipe: Recipe, network: nn.Module) -> torch.optim.Optimizer:
    """Return the optimizer that a recipe names, over all of a network that is tuned."""
    return OPTIMIZERS[recipe.optimizer](network, recipe)


def _adamw(network: nn.Module, recipe: Recipe) -> torch.optim.Optimizer:
    tables = [each.weight for each in network.modules() if isinstance(each, nn.Embedding)]
    tuned = [table for table in tables if table.requires_grad]
    known = set(map(id, tuned))
    others = [p for p in tuned_parameters(network) if id(p) not in known]
    return RowwiseAdamW(tuned, others, recipe.weight_decay)


def _steps(recipe: Recipe, epoch: float, _stalls: int) -> float:
    return power(recipe.decay_factor, bisect_right(sorted(recipe.decay_epochs), epoch))


def _stall(recipe: Recipe, _epoch: float, stalls: int) -> float:
    return power(recipe.decay_factor, stalls)


def _cosine(recipe: Recipe, epoch: float, _stalls: int) -> float:
    warmup = recipe.warmup_epochs
    if epoch < warmup:
        return (epoch + _FIRST_SHARE) / (warmup + _FIRST_SHARE)
    angle = math.pi * (epoch - warmup) / (recipe.max_epochs - warmup)
    return (1 + float(cos(torch.tensor(angle, dtype=torch.float64)))) / 2


OPTIMIZERS: dict[str, Callable[[nn.Module, Recipe], torch.optim.Optimizer]] = {
    "adam": lambda network, _recipe: adam(network),
    "adamw": _adamw,
}
"""From a network and its recipe to what moves its weights."""

SCHEDULES: dict[str, Callable[[Recipe, float, int], float]] = {
    "steps": _steps,
    "stall": _stall,
    "cosine": _cosine,
}
"""From a recipe, the epochs done and the stalls so far to the share of its learning rate."""
