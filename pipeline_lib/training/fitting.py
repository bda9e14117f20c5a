"""Training of a joint space by its recipe."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from torch import Tensor

from pipeline_lib.compute.arithmetic.mode import arithmetic
from pipeline_lib.compute.device import cores_for
from pipeline_lib.contract.reports import HIGHER_IS_BETTER, LOSS
from pipeline_lib.models.joint_space import JointSpace
from pipeline_lib.settings.recipes import Recipe
from pipeline_lib.training.examples import Examples
from pipeline_lib.training.learner import Learner
from pipeline_lib.training.loop import Course, Pace, Progress, train
from pipeline_lib.training.objectives import build_objective
from pipeline_lib.training.optimization import SCHEDULES, make_optimizer
from pipeline_lib.training.tasks import Objective, total

Validate = Callable[[JointSpace], dict[str, float]]
"""From a model to named scores on the validation split, with the keys of HIGHER_IS_BETTER."""


def fit(
    learner: Learner,
    examples: Examples,
    validate: Validate,
    seed: int,
    resume: Path,
    label: str,
    line: int = 0,
) -> Course:
    """Train a joint space in place by its recipe and leave it with its best weights.

    Args:
        learner: Untrained, on its device.
        examples: Training captions and features.
        validate: Scores a model on the validation split.
        seed: Of the order of batches.
        resume: See :func:`~pipeline_lib.training.loop.train`, as for the rest.
        label: What the progress bar names.
        line: Where the bar stands.

    Returns:
        The history, and what ended it.

    Raises:
        FloatingPointError: If the loss is NaN or infinite.
    """
    recipe = learner.recipe
    with arithmetic(recipe.precision), cores_for(recipe.batch_size * recipe.text_width):
        examples = examples.to(learner.device, learner.dtype)
        objective = build_objective(learner, examples, seed)
        return train(_Fitting(learner, objective, validate, seed), resume, label, line)


class _Fitting:
    """The work of a recipe: see loop.Work."""

    def __init__(
        self, learner: Learner, objective: Objective, validate: Validate, seed: int
    ) -> None:
        self.network, self.objective, self.seed = learner, objective, seed
        self.recipe, self._validate = learner.recipe, validate
        every = self.recipe.validate_every_updates
        # No methods of this object: it and they would hold each other, and the network and the
        # features on the device, until Python looks for such cycles, perhaps seeds later.
        updates = objective.updates_before, objective.updates_per_epoch
        self.pace = Pace(
            learning_rate=partial(_learning_rate, self.recipe, *updates),
            optimizer=partial(make_optimizer, self.recipe),
            clip_norm=self.recipe.clip_norm,
            epoch=partial(_epoch, *updates),
            updates_before=objective.updates_before,
            last_update=objective.updates_before
            + self.recipe.max_epochs * objective.updates_per_epoch,
            validate_every=objective.updates_per_epoch if every == "epoch" else every,
            patience=self.recipe.patience_validations,
            decays=getattr(self.recipe, "decays", 0),
            averaged=1,
        )

    def loss(
        self, progress: Progress, random: np.random.Generator
    ) -> tuple[Tensor, dict[str, Tensor]]:
        taken = progress.state.setdefault("taken", [0] * len(self.objective.tasks))
        number = self.objective.choose(random, progress.update, progress.history)
        task = self.objective.tasks[number]
        rows = task.stream[taken[number]]
        taken[number] += 1
        terms = task.terms(self.network.space, rows)
        loss = total(terms)
        shown = {f"{LOSS}{task.kind}": loss}
        if len(terms) > 1:
            shown |= {f"{LOSS}{task.kind}_{name}": term for name, term in terms.items()}
        items = len(rows) if task.per_item else 1
        return loss, {column: value.detach() / items for column, value in shown.items()}

    def after_update(self, progress: Progress) -> None:
        self.objective.after_update(self.network.space, progress.update, progress.state)

    def validate(self) -> tuple[float, dict[str, float]]:
        scores, by = self._validate(self.network.space), self.recipe.select_by
        return scores[by] if HIGHER_IS_BETTER[by] else -scores[by], scores


def _epoch(updates_before: int, updates_per_epoch: int, update: int) -> float:
    return max(update - updates_before, 0) / updates_per_epoch


def _learning_rate(
    recipe: Recipe, updates_before: int, updates_per_epoch: int, update: int, stalls: int
) -> float:
    if update < updates_before:
        return recipe.learning_rate
    epoch = _epoch(updates_before, updates_per_epoch, update)
    return recipe.learning_rate * SCHEDULES[recipe.schedule](recipe, epoch, stalls)
