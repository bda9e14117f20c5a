"""Training of a translator: warm-up, early stopping on BLEU, averaged checkpoints."""

import math
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from torch import Tensor

from pipeline_lib.compute.arithmetic.mode import arithmetic
from pipeline_lib.compute.device import cores_for
from pipeline_lib.models.translator import Translator
from pipeline_lib.training.loop import History, Pace, Progress, train
from pipeline_lib.training.optimization import adam
from pipeline_lib.training.translation_batches import SentencePairs, TokenBatches

Validate = Callable[[Translator], float]
"""From a translator to a score on the validation split; higher is better."""

ADAM_BETAS = (0.9, 0.98)
"""As in §5.3 of Vaswani et al. 2017."""


def fit_translator(
    translator: Translator, pairs: SentencePairs, validate: Validate, resume: Path, label: str
) -> History:
    """Train ``translator`` in place by its recipe; leave it with averaged weights, in eval mode.

    Args:
        translator: Untrained, on its device.
        pairs: Training sentences.
        validate: Scores a translator on the validation split.
        resume: See :func:`~pipeline_lib.training.loop.train`.
        label: What the progress bar names.

    Returns:
        The history: one row per validation.

    Raises:
        FloatingPointError: If the loss is NaN or infinite.
    """
    numbers = translator.recipe.batch_tokens * translator.network.words.embedding_dim
    with arithmetic(translator.recipe.precision), cores_for(numbers):
        return train(_Fitting(translator, pairs, validate), resume, label).history


def warmup_factor(update: int, warmup_updates: int) -> float:
    """Return the share of the highest learning rate at an update, counted from 0.

    It rises linearly, then falls with the inverse square root (§5.3 of Vaswani et al. 2017).
    """
    step = (update + 1) / warmup_updates
    return min(step, 1 / math.sqrt(step))


class _Fitting:
    """The work of a translator's recipe: see loop.Work."""

    def __init__(self, translator: Translator, pairs: SentencePairs, validate: Validate) -> None:
        recipe = translator.recipe
        self.network, self.pairs, self._validate = translator, pairs, validate
        self.seed = recipe.seed
        self.batches = TokenBatches(pairs.lengths, recipe.batch_tokens, recipe.seed)
        self.pace = Pace(
            learning_rate=lambda update, _stalls: (
                recipe.learning_rate * warmup_factor(update, recipe.warmup_updates)
            ),
            optimizer=partial(adam, betas=ADAM_BETAS),
            clip_norm=recipe.clip_norm,
            epoch=lambda update: update / self.batches.batches_per_epoch,
            updates_before=0,
            last_update=recipe.max_updates,
            validate_every=recipe.validate_every_updates,
            patience=recipe.patience_validations,
            decays=0,
            averaged=recipe.averaged_checkpoints,
        )

    def loss(
        self, progress: Progress, random: np.random.Generator
    ) -> tuple[Tensor, dict[str, Tensor]]:
        del random
        rows = self.batches[progress.update]
        loss = self.network.loss(*self.pairs.batch(rows, self.network.device))
        return loss, {"loss": loss.detach()}

    def after_update(self, progress: Progress) -> None:
        del progress

    def validate(self) -> tuple[float, dict[str, float]]:
        score = self._validate(self.network)
        return score, {"bleu": round(score, 4)}
