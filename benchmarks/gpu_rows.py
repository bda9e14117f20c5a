"""How much benchmarks.gpu measures, and what a figure is."""

import statistics
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # what is missing, maybe torch, is said before it is imported
    import torch

HOST = "host"
"""The CPU as a device of its own: some work stays there whatever the device."""

PRODUCT = "matrix product"
"""What shows the peak that all shares are of."""


@dataclass(frozen=True)
class Sizes:
    """How much is measured.

    Attributes:
        sides: Of the square matrices whose product shows the device's peak.
        crop: Pixels of an image's side that the CNNs see.
        batches: Images that they see at a time.
        images: That captions are ranked for.
        captions_per_image: So many captions.
        borrowing: Captions that look for another.
        lent: Captions among which they look.
        block: Captions that look at a time.
        dim: Length of the vectors of all of them.
        time: Share of each measurement's seconds that it may take.
        recipe: Keys of the papers' recipes that are changed.
    """

    sides: tuple[int, ...]
    crop: int
    batches: tuple[int, ...]
    images: int
    captions_per_image: int
    borrowing: int
    lent: int
    block: int
    dim: int
    time: float = 1.0
    recipe: dict[str, object] = field(default_factory=dict)


FULL = Sizes(
    sides=(4096, 8192), crop=224, batches=(4, 32), images=5000, captions_per_image=5,
    borrowing=566_000, lent=145_000, block=2**15, dim=1024,
)  # fmt: skip
"""Ten-crop batches of 4 as in study multi30k; COCO's test images; its captions and Multi30k's."""

SMALL = Sizes(
    sides=(64, 128), crop=32, batches=(2,), images=40, captions_per_image=5, borrowing=300,
    lent=200, block=128, dim=32, time=0.02,
    recipe={"word_dim": 8, "hidden_dim": 16, "embed_dim": 16, "batch_size": 8},
)  # fmt: skip
"""A rehearsal of all of it, in seconds on a CPU."""


@dataclass(frozen=True)
class Row:
    """One figure.

    Attributes:
        what: What was measured.
        on: The device's type, or :data:`HOST`.
        precision: What was computed in.
        unit: Of the rates.
        rates: One per round.
        flops: Floating-point operations of one item; 0 where they are not counted.
        items: In the whole task; 0 where it has no end.
        note: What else is to be known.
    """

    what: str
    on: str
    precision: str
    unit: str
    rates: list[float]
    flops: float = 0
    items: int = 0
    note: str = ""

    @property
    def rate(self) -> float:
        """The median of all rounds."""
        return statistics.median(self.rates)

    @property
    def speed(self) -> float:
        """Floating-point operations per second."""
        return self.rate * self.flops

    @property
    def seconds(self) -> float | None:
        """That the whole task takes at this rate, if it has an end."""
        return self.items / self.rate if self.items else None


Measure = Callable[["torch.device", Sizes, float], Row]
"""From the device, the sizes and the seconds that it may take to a figure."""


@dataclass(frozen=True)
class Measurement:
    """Something to measure, the packages that it needs beside torch, and its time in seconds."""

    name: str
    packages: tuple[str, ...]
    seconds: float
    run: Measure
