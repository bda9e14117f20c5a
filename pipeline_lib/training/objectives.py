"""What a recipe trains: one builder per objective of settings.recipes."""

from collections.abc import Callable

from pipeline_lib.models.joint_space import JointSpace
from pipeline_lib.settings.recipes import AnyRecipe
from pipeline_lib.training.alternating import alternating
from pipeline_lib.training.corpus import Corpus
from pipeline_lib.training.joint import joint
from pipeline_lib.training.mixed import mixed
from pipeline_lib.training.tasks import Objective
from pipeline_lib.training.two_branch import two_branch

BUILDERS: dict[str, Callable[[JointSpace, Corpus, AnyRecipe, int], Objective]] = {
    "alternating": alternating,
    "joint": joint,
    "mixed": mixed,
    "two_branch": two_branch,
}


def build_objective(model: JointSpace, corpus: Corpus, recipe: AnyRecipe, seed: int) -> Objective:
    """Return the tasks of ``recipe`` on ``corpus``; ``seed`` orders their batches."""
    return BUILDERS[recipe.objective](model, corpus, recipe, seed)
