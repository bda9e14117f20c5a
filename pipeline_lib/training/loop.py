"""The update loop: alternate tasks, validate, keep the best weights, stop when they stay best."""

import copy
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

from pipeline_lib.arithmetic import arithmetic
from pipeline_lib.device import cores_for
from pipeline_lib.models.joint_space import JointSpace
from pipeline_lib.training.checkpoints import load_checkpoint, save_checkpoint
from pipeline_lib.training.corpus import Corpus
from pipeline_lib.training.objectives import build_objective
from pipeline_lib.training.tasks import History, Objective, State

RECALL_SUM, MEAN_RANK = "recall_sum", "mean_rank"
HIGHER_IS_BETTER = {RECALL_SUM: True, MEAN_RANK: False}
Validate = Callable[[JointSpace], dict[str, float]]
"""From a model to named scores on the validation split, with the keys of HIGHER_IS_BETTER."""


@dataclass
class Progress:
    """How far a run is; all of it travels in the checkpoint.

    Attributes:
        update: Updates done.
        taken: Batches taken from each task's stream.
        validations_since_best: Validations since the best one so far.
        best: Its score, negated where lower is better.
        history: One row per validation.
        state: What the objective keeps.
    """

    update: int = 0
    taken: list[int] = field(default_factory=list)
    validations_since_best: int = 0
    best: float = float("-inf")
    history: History = field(default_factory=list)
    state: State = field(default_factory=dict)


def fit(
    model: JointSpace,
    corpus: Corpus,
    validate: Validate,
    seed: int,
    resume: Path,
    label: str,
    line: int = 0,
) -> History:
    """Train ``model`` in place by its recipe and leave it with its best weights.

    Early stopping as §3.1 of Kádár et al. 2019: no better score for ``patience_validations``
    validations, one every ``validate_every_updates`` updates.

    Args:
        model: Untrained, on its device.
        corpus: Training captions and features.
        validate: Scores a model on the validation split.
        seed: Of the order of batches.
        resume: Folder for the checkpoint, written at each validation; a run that finds one there
            continues it and ends with the same weights as an uninterrupted one.
        label: What the progress bar names.
        line: Where the bar stands, counted from those of seeds that train at the same time.

    Returns:
        The history: one row per validation.

    Raises:
        FloatingPointError: If the loss is NaN or infinite.
    """
    recipe = model.recipe
    with arithmetic(recipe.precision), cores_for(recipe.batch_size * recipe.hidden_dim):
        corpus = corpus.to(model.device, model.dtype)
        run = _Run(model, build_objective(model, corpus, recipe, seed), validate, seed, resume)
        run.resume_if_possible()
        done, last = run.progress.update, run.last_update
        with tqdm(initial=done, total=last, unit="update", desc=label, position=line) as bar:
            while not run.finished:
                run.train_until_validation(bar)
                run.validate_and_keep(bar)
        model.load_state_dict(run.best_weights)
    return run.progress.history


class _Run:
    def __init__(
        self, model: JointSpace, objective: Objective, validate: Validate, seed: int, resume: Path
    ) -> None:
        self.model, self.objective, self.validate, self.seed = model, objective, validate, seed
        self.recipe = model.recipe
        self.checkpoint = resume / "checkpoint.pt"
        self.tuned = [p for p in model.parameters() if p.requires_grad]
        self.optimizer = torch.optim.Adam(self.tuned, lr=self.recipe.learning_rate, fused=True)
        self.progress = Progress(taken=[0] * len(objective.tasks))
        self.best_weights: dict[str, Tensor] = {}
        epochs = self.recipe.max_epochs * objective.updates_per_epoch
        self.last_update = objective.updates_before + epochs
        every = self.recipe.validate_every_updates
        self.validate_every = objective.updates_per_epoch if every == "epoch" else every

    def epoch(self, update: int) -> float:
        return max(update - self.objective.updates_before, 0) / self.objective.updates_per_epoch

    @property
    def finished(self) -> bool:
        progress = self.progress
        patient = progress.validations_since_best < self.recipe.patience_validations
        return not patient or progress.update >= self.last_update

    def resume_if_possible(self) -> None:
        if state := load_checkpoint(self.checkpoint, self.model.device):
            self.model.load_state_dict(state["model"])
            self.optimizer.load_state_dict(state["optimizer"])
            self.best_weights = state["best_weights"]
            self.progress = Progress(**state["progress"])

    def train_until_validation(self, bar: tqdm) -> None:
        self.model.train()
        every, update = self.validate_every, self.progress.update
        stop = min(update - update % every + every, self.last_update)
        losses: dict[str, list[Tensor]] = defaultdict(list)
        while self.progress.update < stop:
            kind, loss = self._update()
            losses[kind].append(loss)
            bar.update()
        means = {f"loss_{kind}": _mean(values, kind) for kind, values in sorted(losses.items())}
        self.progress.history.append({"update": stop, "epoch": round(self.epoch(stop), 3)} | means)

    def _update(self) -> tuple[str, Tensor]:
        progress, recipe = self.progress, self.recipe
        # All chance of an update follows from its number: dropout and draws on every device too.
        random = np.random.default_rng([self.seed, progress.update])
        torch.manual_seed(int(random.integers(2**62)))
        number = self.objective.choose(random, progress.update, progress.history)
        task = self.objective.tasks[number]
        rows = task.stream[progress.taken[number]]
        for group in self.optimizer.param_groups:
            group["lr"] = self._learning_rate(progress.update)
        self.optimizer.zero_grad()
        loss = task.loss(self.model, rows)
        loss.backward()
        if recipe.clip_norm != "none":
            torch.nn.utils.clip_grad_norm_(self.tuned, recipe.clip_norm)
        self.optimizer.step()
        progress.taken[number] += 1
        progress.update += 1
        self.objective.after_update(self.model, progress.update, progress.state)
        return task.kind, loss.detach() / (len(rows) if task.per_item else 1)

    def _learning_rate(self, update: int) -> float:
        decays = bisect_right(sorted(self.recipe.decay_epochs), self.epoch(update))
        return self.recipe.learning_rate * self.recipe.decay_factor**decays

    def validate_and_keep(self, bar: tqdm) -> None:
        self.model.eval()
        scores = self.validate(self.model)
        progress = self.progress
        progress.history[-1].update(scores)
        by = self.recipe.select_by
        score = scores[by] if HIGHER_IS_BETTER[by] else -scores[by]
        if score > progress.best:
            progress.best, progress.validations_since_best = score, 0
            self.best_weights = copy.deepcopy(self.model.state_dict())
        else:
            progress.validations_since_best += 1
        bar.set_postfix_str(f"{by} {scores[by]:.1f}, best {abs(progress.best):.1f}")
        save_checkpoint(
            self.checkpoint,
            {
                "model": self.model.state_dict(),
                "optimizer": self.optimizer.state_dict(),
                "best_weights": self.best_weights,
                "progress": vars(progress),
            },
        )


def _mean(losses: list[Tensor], kind: str) -> float:
    mean = float(torch.stack(losses).mean())
    if mean != mean or mean in (float("inf"), float("-inf")):
        raise FloatingPointError(
            f"the {kind} loss is {mean}: lower learning_rate or clip_norm, or use precision f32"
        )
    return round(mean, 6)
