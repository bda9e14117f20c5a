"""A joint space with what only its training needs."""

from collections.abc import Mapping

from torch import nn

from pipeline_lib.compute.device import weight_type
from pipeline_lib.models.joint_space import JointSpace
from pipeline_lib.models.losses import LOSSES
from pipeline_lib.models.precise import PreciseModule
from pipeline_lib.settings import losses as settings
from pipeline_lib.settings.recipes import Recipe


class Learner(PreciseModule):
    """A joint space, its loss, and layers of its objective that embed nothing.

    All of it is tuned and kept in checkpoints; the joint space alone is what a recipe leaves.
    """

    def __init__(self, recipe: Recipe, space: JointSpace, layers: Mapping[str, nn.Module]) -> None:
        """Put a model behind its recipe.

        Args:
            recipe: How it learns.
            space: The model.
            layers: Of the objective, by name; their weights are not drawn yet.
        """
        super().__init__(recipe.precision)
        self.recipe, self.space = recipe, space
        keys = settings.LOSSES[recipe.loss].model_fields
        self.loss = LOSSES[recipe.loss](**{key: getattr(recipe, key) for key in keys})
        self.layers = nn.ModuleDict(layers)
        self.to(weight_type(recipe.precision))
