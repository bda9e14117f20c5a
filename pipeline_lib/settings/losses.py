"""The losses that an objective may train with: one class of keys each.

A loss is added here and, under the same name, in models/losses.py.
"""

from typing import Annotated, Literal

from pydantic import Field

from pipeline_lib.settings.strict import Count, Rate, Strict

LOWEST_TEMPERATURE = 0.01
"""The least that models.losses divides by."""


class Hinge(Strict):
    """Wrong candidates stay a margin below the right one.

    Attributes:
        margin: Between the similarity of the right candidate and of a wrong one, alpha.
        violations: Negatives that count: ``sum`` of all, the hardest (``max``), or the mean of so
            many of the hardest.
    """

    margin: Rate
    violations: Literal["sum", "max"] | Count


class InfoNCE(Strict):
    """The right candidate is the likeliest of the batch (van den Oord et al. 2018).

    Attributes:
        temperature: What similarities are divided by (at the start, if it is tuned); never less
            than :data:`LOWEST_TEMPERATURE`.
        tune_temperature: It learns with the rest, as in Radford et al. 2021.
    """

    temperature: Annotated[float, Field(ge=LOWEST_TEMPERATURE)]
    tune_temperature: bool


LOSSES: dict[str, type[Strict]] = {"hinge": Hinge, "infonce": InfoNCE}
