"""Reports: what stages leave in metrics/, as JSON with numbers rounded to four places, or CSV."""

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from pipeline_lib.contract.digests import reading
from pipeline_lib.running.publishing import publish

DECIMALS = 4

RECALL_SUM, MEAN_RANK = "recall_sum", "mean_rank"
HIGHER_IS_BETTER = {RECALL_SUM: True, MEAN_RANK: False}
"""The scores on the validation split by which weights are selected."""

LOSS = "loss_"
"""Begins the columns of training.csv that hold a task's loss, or one of its terms."""


def write_report(report: Mapping[str, object], path: Path) -> None:
    """Publish a report."""
    with publish(path) as temporary:
        text = json.dumps(_rounded(report), indent=1)
        temporary.write_text(text + "\n", encoding="utf-8")


def read_report(path: Path) -> dict:
    """Read a report.

    Raises:
        ContractError: If it is not there, or damaged.
    """
    with reading(path, "a report in JSON"):
        return {**json.loads(path.read_text(encoding="utf-8"))}


def read_rows(path: Path, **options: object) -> pd.DataFrame:
    """Read a report in CSV, with the options of pandas; empty fields alone are missing ones.

    Raises:
        ContractError: If it is not there, or damaged.
    """
    with reading(path, "a table with a header"):
        # By default nan, which is the code of Min Nan, would be no text.
        return pd.read_csv(path, **{"keep_default_na": False, "na_values": [""], **options})


def read_reports(folder: Path) -> dict[str, dict]:
    """Read the reports in a folder, by name; none if there is no such folder."""
    return {path.stem: read_report(path) for path in sorted(folder.glob("*.json"))}


def best_validation(history: pd.DataFrame, select_by: str) -> pd.Series:
    """Return the validation whose weights one seed kept: the first of the best.

    Those of pre-training, at epoch 0, keep none.
    """
    counted = history[history["epoch"] > 0] if "epoch" in history else history
    scores = (history if counted.empty else counted)[select_by]
    return history.loc[scores.idxmax() if HIGHER_IS_BETTER[select_by] else scores.idxmin()]


def rounded_p(p: float) -> float:
    """Return a p-value as it is written, with four digits of its own: corrections multiply it."""
    return float(f"{p:.{DECIMALS}g}")


def _rounded(value: object) -> object:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, Mapping):
        return {
            key: rounded_p(item) if key == "p" and item is not None else _rounded(item)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    return round(value, DECIMALS) if isinstance(value, float) else value
