"""Training of a translator: warm-up, early stopping on BLEU, averaged checkpoints."""

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

from pipeline_lib.arithmetic import arithmetic
from pipeline_lib.device import cores_for
from pipeline_lib.models.translator import Translator
from pipeline_lib.training.checkpoints import load_checkpoint, save_checkpoint
from pipeline_lib.training.translation_batches import SentencePairs, TokenBatches

Validate = Callable[[Translator], float]
"""From a translator to a score on the validation split; higher is better."""

Weights = dict[str, Tensor]
ADAM_BETAS = (0.9, 0.98)
"""As in §5.3 of Vaswani et al. 2017."""


@dataclass
class Progress:
    """How far a run is; all of it travels in the checkpoint.

    Attributes:
        update: Updates done.
        validations_since_best: Validations since the best one so far.
        history: One row per validation.
        kept: Scores and weights of the best validations, best first.
    """

    update: int = 0
    validations_since_best: int = 0
    history: list[dict[str, float]] = field(default_factory=list)
    kept: list[tuple[float, Weights]] = field(default_factory=list)


def fit_translator(
    translator: Translator, pairs: SentencePairs, validate: Validate, resume: Path, label: str
) -> list[dict[str, float]]:
    """Train ``translator`` in place by its recipe; leave it with averaged weights, in eval mode.

    Args:
        translator: Untrained, on its device.
        pairs: Training sentences.
        validate: Scores a translator on the validation split.
        resume: Folder for the checkpoint, written at each validation; a run that finds one there
            continues it and ends with the same weights as an uninterrupted one.
        label: What the progress bar names.

    Returns:
        The history: one row per validation.

    Raises:
        FloatingPointError: If the loss is NaN or infinite.
    """
    numbers = translator.recipe.batch_tokens * translator.network.words.embedding_dim
    with arithmetic(translator.recipe.precision), cores_for(numbers):
        return _fit(translator, pairs, validate, resume, label)


def _fit(
    translator: Translator, pairs: SentencePairs, validate: Validate, resume: Path, label: str
) -> list[dict[str, float]]:
    run = _Run(translator, pairs, validate, resume / "checkpoint.pt")
    run.resume_if_possible()
    total = translator.recipe.max_updates
    with tqdm(initial=run.progress.update, total=total, unit="update", desc=label) as bar:
        while not run.finished:
            run.train_until_validation(bar)
            run.validate_and_keep(bar)
    translator.load_state_dict(average_weights([weights for _, weights in run.progress.kept]))
    translator.eval()
    return run.progress.history


def average_weights(checkpoints: list[Weights]) -> Weights:
    """Return the mean of the weights of several checkpoints."""
    return {
        name: torch.stack([weights[name] for weights in checkpoints]).mean(dim=0)
        for name in checkpoints[0]
    }


def warmup_factor(update: int, warmup_updates: int) -> float:
    """Return the share of the highest learning rate at an update, counted from 0.

    It rises linearly, then falls with the inverse square root (§5.3 of Vaswani et al. 2017).
    """
    step = (update + 1) / warmup_updates
    return min(step, step**-0.5)


class _Run:
    def __init__(
        self, translator: Translator, pairs: SentencePairs, validate: Validate, checkpoint: Path
    ) -> None:
        self.translator, self.pairs, self.validate = translator, pairs, validate
        self.recipe, self.checkpoint = translator.recipe, checkpoint
        self.batches = TokenBatches(pairs.lengths, self.recipe.batch_tokens, self.recipe.seed)
        self.optimizer = torch.optim.Adam(translator.parameters(), betas=ADAM_BETAS, fused=True)
        self.progress = Progress()

    @property
    def finished(self) -> bool:
        progress = self.progress
        patient = progress.validations_since_best < self.recipe.patience_validations
        return not patient or progress.update >= self.recipe.max_updates

    def resume_if_possible(self) -> None:
        if state := load_checkpoint(self.checkpoint, self.translator.device):
            self.translator.load_state_dict(state["translator"])
            self.optimizer.load_state_dict(state["optimizer"])
            self.progress = Progress(**state["progress"])

    def train_until_validation(self, bar: tqdm) -> None:
        self.translator.train()
        progress, every = self.progress, self.recipe.validate_every_updates
        stop = min(progress.update - progress.update % every + every, self.recipe.max_updates)
        losses = []
        while progress.update < stop:
            losses.append(self._update())
            bar.update()
        epoch = round(stop / self.batches.batches_per_epoch, 3)
        progress.history.append({"update": stop, "epoch": epoch, "loss": _mean(losses)})

    def _update(self) -> Tensor:
        progress, recipe = self.progress, self.recipe
        # All chance of an update follows from its number: dropout on every device too.
        random = np.random.default_rng([recipe.seed, progress.update])
        torch.manual_seed(int(random.integers(2**62)))
        factor = warmup_factor(progress.update, recipe.warmup_updates)
        for group in self.optimizer.param_groups:
            group["lr"] = recipe.learning_rate * factor
        self.optimizer.zero_grad()
        rows = self.batches[progress.update]
        loss = self.translator.loss(*self.pairs.batch(rows, self.translator.device))
        loss.backward()
        if recipe.clip_norm != "none":
            torch.nn.utils.clip_grad_norm_(self.translator.parameters(), recipe.clip_norm)
        self.optimizer.step()
        progress.update += 1
        return loss.detach()

    def validate_and_keep(self, bar: tqdm) -> None:
        self.translator.eval()
        progress, score = self.progress, self.validate(self.translator)
        progress.history[-1]["bleu"] = round(score, 4)
        is_best = not progress.kept or score > progress.kept[0][0]
        progress.validations_since_best = 0 if is_best else progress.validations_since_best + 1
        progress.kept.append((score, copy.deepcopy(self.translator.state_dict())))
        progress.kept.sort(key=lambda item: -item[0])
        del progress.kept[self.recipe.averaged_checkpoints :]
        bar.set_postfix_str(f"BLEU {score:.2f}, best {progress.kept[0][0]:.2f}")
        save_checkpoint(
            self.checkpoint,
            {
                "translator": self.translator.state_dict(),
                "optimizer": self.optimizer.state_dict(),
                "progress": vars(progress),
            },
        )


def _mean(losses: list[Tensor]) -> float:
    mean = float(torch.stack(losses).mean())
    if not np.isfinite(mean):
        raise FloatingPointError(
            f"the translator's loss is {mean}: lower learning_rate, set clip_norm, or use "
            "precision f32"
        )
    return round(mean, 6)
