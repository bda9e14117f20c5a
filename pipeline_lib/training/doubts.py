"""Runs that ended and taught nothing: at chance level, collapsed, or without a part of the plan."""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from pipeline_lib.contract.recalls import CHANCE_DEVIATIONS, PERFECT_RECALL_SUM, chance_recall_sums
from pipeline_lib.contract.reports import LOSS, RECALL_SUM, best_validation
from pipeline_lib.settings.recipes import Recipe
from pipeline_lib.settings.strict import NONE
from pipeline_lib.training.alternating import CAPTION_CAPTION
from pipeline_lib.training.batches import batch_sizes
from pipeline_lib.training.examples import Examples
from pipeline_lib.training.loop import History
from pipeline_lib.training.tasks import IMAGE_CAPTION

_COLLAPSED = 0.99
"""Share of the loss of one point, above which a space is one."""


def doubts(history: History, recipe: Recipe, training: Examples, validation: Examples) -> list[str]:
    """Return what is doubtful in a training that ended, as sentences; empty if nothing is."""
    return [
        *_chance(history, recipe, validation),
        *_collapse(history, recipe, training),
        *_absent(history, recipe),
    ]


def _chance(history: History, recipe: Recipe, validation: Examples) -> Iterator[str]:
    chance, deviation = chance_recall_sums(
        (len(np.unique(sentences.image_index.cpu().numpy())), len(sentences))
        for sentences in validation.sentences.values()
    )
    kept = best_validation(pd.DataFrame(history), recipe.select_by)[RECALL_SUM]
    bound = chance + CHANCE_DEVIATIONS * deviation
    highest = PERFECT_RECALL_SUM * len(validation.sentences)
    if bound >= highest:
        yield (
            f"the validation photos are too few to tell what was learnt from chance, which gives "
            f"{chance:.1f} ± {deviation:.1f} of {highest:.0f}. Give more photos the split val"
        )
    elif kept <= bound:
        yield (
            f"the best weights' sum of recalls on the validation captions is {kept:.1f} of "
            f"{highest:.0f}, where chance gives {chance:.1f} ± {deviation:.1f}: nothing was "
            "learnt. Lower learning_rate, train longer, or look at the captions"
        )


def _collapse(history: History, recipe: Recipe, training: Examples) -> Iterator[str]:
    margin, violations = getattr(recipe, "margin", None), getattr(recipe, "violations", None)
    column = f"{LOSS}{IMAGE_CAPTION}"
    losses = [row[column] for row in history if np.isfinite(row.get(column, np.nan))]
    if margin is None or recipe.objective != "alternating" or not losses:
        return
    wrong = _wrong(recipe, training)
    if violations != "sum":  # their mean, or the hardest: zeros count where a batch has too few
        counted = 1 if violations == "max" else min(violations, recipe.batch_size)
        wrong = min(1, wrong / counted)
    if min(losses) >= _COLLAPSED * 2 * margin * wrong:
        yield (
            f"the loss never fell below {min(losses):.4f}; all vectors in one point cost "
            f"{2 * margin * wrong:.4f}: the space has collapsed. Lower learning_rate, or average "
            "more violations"
        )


def _wrong(recipe: Recipe, training: Examples) -> float:
    """Return how many wrong candidates a caption has in a batch, in the mean of the fewest."""
    return min(
        _wrong_of(len(each), len(each.image_index.unique()), recipe.batch_size)
        for each in training.sentences.values()
    )


def _wrong_of(captions: int, images: int, batch_size: int) -> float:
    """Return it for one language: others in the batch, but for those of the same image."""
    others, of_other_images = max(captions - 1, 1), captions - captions / images
    in_batch = batch_sizes(captions, batch_size).mean() - 1  # losses are means over batches
    return in_batch * of_other_images / others


def _absent(history: History, recipe: Recipe) -> Iterator[str]:
    share = getattr(recipe, "caption_caption_probability", 0)
    column = f"{LOSS}{CAPTION_CAPTION}"
    if share and not any(np.isfinite(row.get(column, np.nan)) for row in history):
        bound = recipe.caption_caption_below_loss
        lacking = "no image has captions in two languages"
        why, mend = lacking, "Set caption_caption_probability: 0"
        if bound != NONE:
            why = f"they wait for a loss below {bound}, or {lacking}"
            mend = "Raise caption_caption_below_loss, or set caption_caption_probability: 0"
        yield f"caption-caption updates never began: {why}. {mend}"
