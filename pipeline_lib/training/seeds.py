"""The seeds of a recipe side by side: a small model keeps one core busy, not all of them."""

import torch

from pipeline_lib.device import SMALL, best_device
from pipeline_lib.settings.recipes import Recipe


def side_by_side(recipe: Recipe) -> int:
    """Return how many seeds of a recipe are trained at once."""
    small = recipe.batch_size * recipe.text_width < SMALL
    on_cpu = best_device(recipe.precision).type == "cpu"
    return min(len(recipe.seeds), torch.get_num_threads()) if small and on_cpu else 1
