"""The update loop of all training: validate, keep the best weights, stop when they stay best."""

import copy
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor, nn
from tqdm import tqdm

from pipeline_lib.compute.forks import keep_freed_memory
from pipeline_lib.training import ranks
from pipeline_lib.training.checkpoints import load_checkpoint, save_checkpoint
from pipeline_lib.training.optimization import tuned_parameters

History = list[dict[str, float]]
"""One row per validation: update, epoch, mean of each loss, validation scores."""

State = dict[str, list[float]]
"""What the work keeps from update to update beside its weights."""

Weights = dict[str, Tensor]

CHECKPOINT = "checkpoint.pt"
"""The file of an unfinished run, in its folder of work."""


class Course(NamedTuple):
    """How a run went.

    Attributes:
        history: One row per validation.
        ended: Whether validation had stalled, or the most updates were done.
    """

    history: History
    ended: Literal["stalled", "cap"]


@dataclass
class Progress:
    """How far a run is; all of it travels in the checkpoint.

    Attributes:
        update: Updates done.
        validations_since_best: Validations since the best one so far, or since the last stall.
        stalls: Stalls after which training went on.
        history: One row per validation.
        kept: Scores and weights of the best validations, best first.
        state: What the work keeps.
    """

    update: int = 0
    validations_since_best: int = 0
    stalls: int = 0
    history: History = field(default_factory=list)
    kept: list[tuple[float, Weights]] = field(default_factory=list)
    state: State = field(default_factory=dict)


@dataclass(frozen=True)
class Pace:
    """How fast a network learns, and for how long.

    Attributes:
        learning_rate: The optimizer's, from the number of the update (from 0) and of stalls.
        optimizer: Makes of the network what moves its weights.
        clip_norm: Bound on the gradient's norm, or ``none``.
        epoch: Passes over the data, from the number of updates done.
        updates_before: Updates of pre-training, whose validations neither count nor are kept.
        last_update: Training ends after so many updates at the latest.
        validate_every: Updates between two validations.
        patience: Validation stalls after so many without a new best.
        decays: Stalls after which training goes on from the best weights; the next one ends it.
        averaged: The final weights are the mean of those of the so many best validations.
    """

    learning_rate: Callable[[int, int], float]
    optimizer: Callable[[nn.Module], torch.optim.Optimizer]
    clip_norm: float | Literal["none"]
    epoch: Callable[[int], float]
    updates_before: int
    last_update: int
    validate_every: int
    patience: int
    decays: int
    averaged: int


class Work(Protocol):
    """What the loop trains.

    Attributes:
        network: All that is tuned.
        pace: How fast, and for how long.
        seed: Of all chance.
    """

    network: nn.Module
    pace: Pace
    seed: int

    def loss(
        self, progress: Progress, random: np.random.Generator
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Return the loss of the next update, a scalar, and what of it the history shows.

        Each column of the history is the mean over the updates that give it.
        """

    def after_update(self, progress: Progress) -> None:
        """Do what follows an update; ``progress`` counts it."""

    def validate(self) -> tuple[float, dict[str, float]]:
        """Return the score that selects weights (higher is better), and columns of the history."""


def train(work: Work, resume: Path, label: str, line: int = 0) -> Course:
    """Train a network in place; leave it with its best weights, in evaluation mode.

    Early stopping as §3.1 of Kádár et al. 2019: no better score for so many validations. Where the
    rate falls then, the best weights go on with a new optimizer, as in §3 of Denkowski & Neubig
    2017.

    Args:
        work: What is trained, on its device.
        resume: Folder for the checkpoint, written at each validation; a run that finds one there
            continues it and ends with the same weights as an uninterrupted one.
        label: What the progress bar names.
        line: Where the bar stands, counted from those of seeds that train at the same time.

    Returns:
        The history, and what ended it.

    Raises:
        FloatingPointError: If the loss is NaN or infinite.
    """
    keep_freed_memory()
    run = _Run(work, resume / CHECKPOINT)
    run.resume_if_possible()
    done, last = run.progress.update, work.pace.last_update
    silent = not ranks.is_first()
    with tqdm(
        initial=done, total=last, unit="update", desc=label, position=line, disable=silent
    ) as bar:
        while not run.finished:
            run.train_until_validation(bar)
            run.validate_and_keep(bar)
    work.network.load_state_dict(average_weights([kept for _, kept in run.progress.kept]))
    work.network.eval()
    return Course(run.progress.history, "stalled" if run.stalled else "cap")


def average_weights(checkpoints: list[Weights]) -> Weights:
    """Return the mean of the weights of several checkpoints."""
    if len(checkpoints) == 1:  # whole numbers among them have no mean
        return checkpoints[0]
    return {
        name: torch.stack([weights[name] for weights in checkpoints]).mean(dim=0)
        for name in checkpoints[0]
    }


class _Run:
    def __init__(self, work: Work, checkpoint: Path) -> None:
        self.work, self.network, self.pace = work, work.network, work.pace
        ranks.synchronize_normalization(self.network)
        self.checkpoint, self.progress = checkpoint, Progress()
        self.tuned = tuned_parameters(self.network)
        self.optimizer = self.pace.optimizer(self.network)

    @property
    def finished(self) -> bool:
        return self.stalled or self.progress.update >= self.pace.last_update

    @property
    def stalled(self) -> bool:
        return self.progress.validations_since_best >= self.pace.patience

    def resume_if_possible(self) -> None:
        device = self.tuned[0].device if ranks.count() == 1 else torch.device("cpu")
        if state := ranks.from_first(lambda: load_checkpoint(self.checkpoint, device)):
            self.network.load_state_dict(state["network"])
            self.optimizer.load_state_dict(state["optimizer"])
            self.progress = Progress(**state["progress"])

    def train_until_validation(self, bar: tqdm) -> None:
        self.network.train()
        ranks.same_weights(self.network)
        every, update = self.pace.validate_every, self.progress.update
        stop = min(update - update % every + every, self.pace.last_update)
        losses: dict[str, list[Tensor]] = defaultdict(list)
        while self.progress.update < stop:
            for column, loss in self._update().items():
                losses[column].append(loss)
            bar.update()
        means = {column: _mean(values, column) for column, values in sorted(losses.items())}
        _check_finite(self.tuned)
        epoch = self.pace.epoch(stop)
        # That of pre-training alone is 0 (contract.reports.best_validation).
        row = {"update": stop, "epoch": round(epoch, 3) or epoch}
        self.progress.history.append(row | means)

    def _update(self) -> dict[str, Tensor]:
        progress, pace = self.progress, self.pace
        # All chance of an update follows from its number: dropout and draws on every device too.
        random = np.random.default_rng([self.work.seed, progress.update])
        ranks.start_update(int(random.integers(2**62)))
        for group in self.optimizer.param_groups:
            group["lr"] = pace.learning_rate(progress.update, progress.stalls)
        self.optimizer.zero_grad()
        loss, shown = self.work.loss(progress, random)
        loss.backward()
        ranks.sum_gradients(self.tuned)
        if pace.clip_norm != "none":
            torch.nn.utils.clip_grad_norm_(self.tuned, pace.clip_norm)
        self.optimizer.step()
        progress.update += 1
        self.work.after_update(progress)
        return shown

    def validate_and_keep(self, bar: tqdm) -> None:
        self.network.eval()
        score, columns = ranks.from_first(self._validated)
        self.progress.history[-1].update(columns)
        if self.progress.update > self.pace.updates_before:
            self._keep(score)
            best = self.progress.kept[0][0]  # of ranks minus the mean: higher is better
            bar.set_postfix_str(f"score {abs(score):.2f}, best {abs(best):.2f}")
        if self.stalled and self.progress.stalls < self.pace.decays:
            self._go_on_from_best()
        state = {"network": self.network.state_dict(), "optimizer": self.optimizer.state_dict()}
        if ranks.is_first():
            save_checkpoint(self.checkpoint, {**state, "progress": vars(self.progress)})

    def _validated(self) -> tuple[float, dict[str, float]]:
        try:
            return self.work.validate()
        except FloatingPointError as error:  # of weights that are large, and numbers still
            _give_up(str(error))

    def _keep(self, score: float) -> None:
        progress, kept = self.progress, self.progress.kept
        place = sum(other >= score for other, _ in kept)
        progress.validations_since_best = progress.validations_since_best + 1 if place else 0
        if place < self.pace.averaged:
            kept.insert(place, (score, copy.deepcopy(self.network.state_dict())))
            del kept[self.pace.averaged :]

    def _go_on_from_best(self) -> None:
        self.progress.stalls += 1
        self.progress.validations_since_best = 0
        self.network.load_state_dict(self.progress.kept[0][1])
        self.optimizer = self.pace.optimizer(self.network)


def _mean(losses: list[Tensor], column: str) -> float:
    mean = float(ranks.total(torch.stack(losses).mean()))
    if not np.isfinite(mean):
        _give_up(f"{column} is {mean}")
    return round(mean, 6)


def _check_finite(weights: list[Tensor]) -> None:
    """Raise if the last update broke a weight: its own loss was of before."""
    if not all(bool(weight.isfinite().all()) for weight in weights):
        _give_up("a weight is no number or infinite")


def _give_up(found: str) -> None:
    if ranks.is_first():  # once for all: the others end with it
        raise FloatingPointError(
            f"{found}: lower learning_rate, lower or set clip_norm, and train in f32 where "
            "precision is bf16"
        )
