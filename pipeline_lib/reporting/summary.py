"""Image-text retrieval of all recipes in one frame, and the small JSON that DVC compares."""

import pandas as pd

from pipeline_lib.contract.queries import DIRECTIONS
from pipeline_lib.reporting.figures import RECALLS, retrieval_figures

ARROWS = {"image_to_text": "I→T", "text_to_image": "T→I"}
"""How tables name :data:`DIRECTIONS`."""

_SCORES = (*RECALLS, "median_rank", "mean_rank", "n_queries", "n_candidates")
_TOTALS = {"value": "", "sd": "_sd", "low": "_low", "high": "_high"}


def summary_table(figures: pd.DataFrame) -> pd.DataFrame:
    """Return one row per recipe and language.

    Args:
        figures: Of figures.figures, with the ``paper`` and ``dataset`` of each recipe.

    Returns:
        Columns recipe, paper, dataset, language, seeds, ``<direction>_<score>`` and
        ``sum_of_recalls`` with ``_sd``, ``_low`` and ``_high``. Recalls are in per cent.
    """
    own = retrieval_figures(figures)
    sums = own[own["metric"] == "sum_of_recalls"].set_index(["recipe", "item"])
    table = sums[["paper", "dataset", "seeds"]]
    cells = own.pivot(index=["recipe", "item"], columns=["variant", "metric"], values="value")
    scores = {f"{way}_{key}": cells[way, key] for way in DIRECTIONS for key in _SCORES}
    totals = {f"sum_of_recalls{end}": sums[column] for column, end in _TOTALS.items()}
    table = table.assign(**scores, **totals).rename_axis(["recipe", "language"]).reset_index()
    first = ["recipe", "paper", "dataset", "language"]
    return table[[*first, *(name for name in table if name not in first)]]


def headline(table: pd.DataFrame) -> dict[str, float]:
    """Return the metric that DVC tracks: one number per recipe, to compare experiments by.

    Args:
        table: Of :func:`summary_table`.

    Returns:
        ``{recipe: sum of recalls}``, the mean over the recipe's languages.
    """
    return table.groupby("recipe")["sum_of_recalls"].mean().round(2).to_dict()
