"""What a recipe trains, by the name of its objective.

An objective is added by a builder here, and by its keys under the same name in
settings/objectives.py.
"""

from collections.abc import Callable

from torch import nn

from pipeline_lib.settings.recipes import Recipe
from pipeline_lib.training.alternating import alternating
from pipeline_lib.training.examples import Examples
from pipeline_lib.training.joint import joint
from pipeline_lib.training.learner import Learner
from pipeline_lib.training.mixed import mixed
from pipeline_lib.training.multiview import multiview
from pipeline_lib.training.tasks import Objective
from pipeline_lib.training.two_branch import adversary, two_branch

BUILDERS: dict[str, Callable[[Learner, Examples, int], Objective]] = {
    "alternating": alternating,
    "joint": joint,
    "mixed": mixed,
    "multiview": multiview,
    "two_branch": two_branch,
}
"""Each makes tasks of a learner, its examples, and the seed that orders their batches."""

LAYERS: dict[str, Callable[[Recipe], dict[str, nn.Module]]] = {"two_branch": adversary}
"""Layers that an objective tunes beside the model, of those that have any."""


def build_objective(learner: Learner, examples: Examples, seed: int) -> Objective:
    """Return the tasks of a learner's recipe; ``seed`` orders their batches."""
    return BUILDERS[learner.recipe.objective](learner, examples, seed)


def objective_layers(recipe: Recipe) -> dict[str, nn.Module]:
    """Return the layers that a recipe's objective tunes beside the model."""
    return LAYERS[recipe.objective](recipe) if recipe.objective in LAYERS else {}
