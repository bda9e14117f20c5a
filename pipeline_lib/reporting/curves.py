"""Validation recalls over training, of all recipes in one frame."""

from collections.abc import Mapping

import pandas as pd

RECALLS = "sum_of_recalls"


def training_curves(training: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return one row per recipe and validation, means over the recipe's seeds and languages.

    Of the validations that all seeds have: a curve would end as that of the seed that trained
    longest.

    Args:
        training: History of each recipe, as in its training.csv.

    Returns:
        Columns recipe, update, epoch and sum_of_recalls, in per cent.
    """
    curves = {
        name: _of_all_seeds(history.assign(**{RECALLS: mean_recall_sum(history)}))
        .groupby("update")[["epoch", RECALLS]]
        .mean()
        for name, history in training.items()
    }
    if not curves:
        return pd.DataFrame(columns=["recipe", "update", "epoch", RECALLS])
    return pd.concat(curves, names=["recipe"]).reset_index()


def _of_all_seeds(history: pd.DataFrame) -> pd.DataFrame:
    have = history.groupby("update")["seed"].transform("nunique")
    return history[have == history["seed"].nunique()]


def mean_recall_sum(history: pd.DataFrame) -> pd.Series:
    """Return the validation sum of recalls, averaged over the recipe's languages."""
    return history.filter(regex="^recall_sum_").mean(axis=1)
