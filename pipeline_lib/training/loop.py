"""The update loop: alternate tasks, validate, keep the best weights, stop when they stay best."""

import copy
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor
from tqdm import tqdm

from pipeline_lib.models.embedder import Embedder
from pipeline_lib.settings import Recipe
from pipeline_lib.training.checkpoints import load_checkpoint, save_checkpoint
from pipeline_lib.training.corpus import Corpus
from pipeline_lib.training.tasks import IMAGE_CAPTION, Task, build_tasks, choose_task

RECALL_SUM = "recall_sum"
Validate = Callable[[Embedder], dict[str, float]]
"""From a model to named scores on the validation split, :data:`RECALL_SUM` among them."""


@dataclass
class Progress:
    """How far a run is; all of it travels in the checkpoint.

    Attributes:
        update: Updates done.
        taken: Batches taken from each task's stream.
        validations_since_best: Validations since the best recall sum so far.
        best: That recall sum.
        history: One row per validation: update, epoch, mean losses, validation scores.
    """

    update: int = 0
    taken: list[int] = field(default_factory=list)
    validations_since_best: int = 0
    best: float = float("-inf")
    history: list[dict[str, float]] = field(default_factory=list)


def fit(
    model: Embedder, corpus: Corpus, validate: Validate, seed: int, resume: Path, label: str
) -> list[dict[str, float]]:
    """Train ``model`` in place by its recipe and leave it with its best weights.

    Early stopping as §3.1 of Kádár et al. 2019: no better sum of recalls for
    ``patience_validations`` validations, one every ``validate_every_updates`` updates.

    Args:
        model: Untrained, on its device.
        corpus: Training captions and features.
        validate: Scores a model on the validation split.
        seed: Of the order of batches.
        resume: Folder for the checkpoint, written at each validation; a run that finds one there
            continues it and ends with the same weights as an uninterrupted one.
        label: What the progress bar names.

    Returns:
        The history: one row per validation.

    Raises:
        FloatingPointError: If the loss is NaN or infinite.
    """
    corpus = corpus.to(model.device)
    run = _Run(model, build_tasks(corpus, model.recipe, seed), validate, seed, resume)
    run.resume_if_possible()
    with tqdm(initial=run.progress.update, total=run.last_update, unit="update", desc=label) as bar:
        while not run.finished:
            run.train_until_validation(bar)
            run.validate_and_keep(bar)
    model.load_state_dict(run.best_weights)
    return run.progress.history


class _Run:
    def __init__(
        self, model: Embedder, tasks: list[Task], validate: Validate, seed: int, resume: Path
    ) -> None:
        self.model, self.tasks, self.validate, self.seed = model, tasks, validate, seed
        self.recipe: Recipe = model.recipe
        self.checkpoint = resume / "checkpoint.pt"
        self.optimizer = torch.optim.Adam(
            model.parameters(), lr=self.recipe.learning_rate, fused=True
        )
        self.progress = Progress(taken=[0] * len(tasks))
        self.best_weights: dict[str, Tensor] = {}
        self.last_update = self.recipe.max_epochs * self._updates_per_epoch()

    def _updates_per_epoch(self) -> int:
        """Return the updates that pass once over all captions, caption–caption updates apart."""
        return sum(t.stream.batches_per_epoch for t in self.tasks if t.kind == IMAGE_CAPTION)

    @property
    def finished(self) -> bool:
        progress = self.progress
        patient = progress.validations_since_best < self.recipe.patience_validations
        return not patient or progress.update >= self.last_update

    def resume_if_possible(self) -> None:
        if self.checkpoint.is_file():
            state = load_checkpoint(self.checkpoint, self.model.device)
            self.model.load_state_dict(state["model"])
            self.optimizer.load_state_dict(state["optimizer"])
            self.best_weights = state["best_weights"]
            self.progress = Progress(**state["progress"])

    def train_until_validation(self, bar: tqdm) -> None:
        self.model.train()
        every = self.recipe.validate_every_updates
        stop = min(self.progress.update - self.progress.update % every + every, self.last_update)
        losses: dict[str, list[Tensor]] = defaultdict(list)
        while self.progress.update < stop:
            kind, loss = self._update()
            losses[kind].append(loss)
            bar.update()
        self.progress.history.append(
            {"update": stop, "epoch": round(stop / self._updates_per_epoch(), 3)}
            | {f"loss_{kind}": _mean(values, kind) for kind, values in sorted(losses.items())}
        )

    def _update(self) -> tuple[str, Tensor]:
        number = choose_task(
            self.tasks, self.recipe.caption_caption_probability, self.seed, self.progress.update
        )
        task = self.tasks[number]
        rows = task.stream[self.progress.taken[number]]
        self.optimizer.zero_grad()
        warming_up = self.progress.update < self.recipe.warmup_updates
        violations = "sum" if warming_up else self.recipe.violations
        loss = task.loss(self.model, rows, violations)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.recipe.clip_norm)
        self.optimizer.step()
        self.progress.taken[number] += 1
        self.progress.update += 1
        return task.kind, loss.detach() / len(rows)

    def validate_and_keep(self, bar: tqdm) -> None:
        self.model.eval()
        scores = self.validate(self.model)
        progress = self.progress
        progress.history[-1].update(scores)
        if scores[RECALL_SUM] > progress.best:
            progress.best, progress.validations_since_best = scores[RECALL_SUM], 0
            self.best_weights = copy.deepcopy(self.model.state_dict())
        else:
            progress.validations_since_best += 1
        bar.set_postfix_str(f"recall sum {scores[RECALL_SUM]:.1f}, best {progress.best:.1f}")
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
