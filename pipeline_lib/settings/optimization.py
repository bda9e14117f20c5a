"""How weights follow gradients, and how the learning rate goes: one class of keys each.

An optimizer or a schedule is added here and, under the same name, in training/optimization.py.
"""

from collections.abc import Iterator
from typing import Annotated, ClassVar

from pydantic import Field

from pipeline_lib.settings.strict import Ascending, Rate, Strict, Whole

Decay = Annotated[float, Field(gt=0, lt=1)]


class Optimizer(Strict):
    """What every optimizer says of itself."""

    takes_sparse: ClassVar[bool] = False
    """Whether it reads gradients of some words alone, such as those of the text encoder bag."""


class Adam(Optimizer):
    """Adam (Kingma & Ba 2015); it has no keys of its own."""


class AdamW(Optimizer):
    """AdamW (Loshchilov & Hutter 2019); each word learns in the updates that read it, alone.

    Attributes:
        weight_decay: Share of a matrix that each update takes off, times the learning rate.
    """

    takes_sparse: ClassVar[bool] = True

    weight_decay: Rate


class Steps(Strict):
    """The learning rate falls at given epochs.

    Attributes:
        decay_epochs: Epochs after which it is multiplied by ``decay_factor``.
        decay_factor: See there.
    """

    decay_epochs: Ascending
    decay_factor: Decay


class Stall(Strict):
    """The learning rate falls when validation stalls; training goes on from the best weights.

    Attributes:
        decay_factor: It is multiplied by this after ``patience_validations`` without a new best.
        decays: How often; the stall after the last one ends training.
    """

    decay_factor: Decay
    decays: Whole


class Cosine(Strict):
    """The learning rate rises linearly, then falls to 0 as a cosine does, over ``max_epochs``.

    Attributes:
        warmup_epochs: Epochs in which it rises.
    """

    warmup_epochs: Rate

    def problems(self) -> Iterator[str]:
        """Yield what the keys contradict."""
        if self.warmup_epochs >= self.max_epochs:
            yield (
                f"warmup_epochs: expected fewer than max_epochs, {self.max_epochs}, "
                f"found {self.warmup_epochs}"
            )


OPTIMIZERS: dict[str, type[Strict]] = {"adam": Adam, "adamw": AdamW}
SCHEDULES: dict[str, type[Strict]] = {"steps": Steps, "stall": Stall, "cosine": Cosine}
