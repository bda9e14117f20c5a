"""The tables of a study: its scores, the papers' beside them, its models, its pseudopairs."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from pipeline_lib.reporting.summary import DIRECTIONS, RECALLS, sum_with_spread
from pipeline_lib.reporting.tables import Table
from pipeline_lib.settings.recipes import Recipe

NOTHING = "–"
"""What stands where there is no number."""

_RECALL_HEADER = [f"{arrow} R@{name[1:]}" for arrow in DIRECTIONS.values() for name in RECALLS]
_RECALL_COLUMNS = [f"{way}_{recall}" for way in DIRECTIONS for recall in RECALLS]


def retrieval_table(summary: pd.DataFrame) -> Table:
    """Return the scores of every recipe and language; the best of each language stands out.

    Args:
        summary: Of summary.summary_table, with the ``dataset`` that each recipe is scored on.
    """
    medians = [f"{way}_median_rank" for way in DIRECTIONS]
    header = ["recipe", "language", "sum of recalls", "interval", *_RECALL_HEADER]
    header += [f"{arrow} median rank" for arrow in DIRECTIONS.values()]
    rows = []
    for _, row in summary.iterrows():
        low, high = row["sum_of_recalls_low"], row["sum_of_recalls_high"]
        cells = [row["recipe"], row["language"], sum_with_spread(row), f"{low:.1f}–{high:.1f}"]
        cells += [number(row[column]) for column in _RECALL_COLUMNS]
        rows.append([*cells, *(f"{row[column]:g}" for column in medians), str(row["seeds"])])
    pools = summary[["dataset", "language"]].agg("/".join, axis=1)
    columns = {2: "sum_of_recalls", **dict(enumerate(_RECALL_COLUMNS, start=4))}
    best = {
        (row, column)
        for column, name in columns.items()
        for row in np.flatnonzero(summary[name] == summary.groupby(pools)[name].transform("max"))
    }
    return Table(
        "retrieval",
        "Image–text retrieval: recalls in %, their sum (± deviation over seeds), its interval",
        [*header, "seeds"],
        rows,
        labels=2,
        best=frozenset(best),
    )


def language_table(summary: pd.DataFrame) -> Table | None:
    """Return the sums of recalls of every recipe in every language, or None if there is one."""
    sums = summary.pivot(index="recipe", columns="language", values="sum_of_recalls")
    if len(sums.columns) == 1:
        return None
    sums = sums.loc[summary["recipe"].unique(), summary["language"].unique()]
    best = np.argwhere((sums == sums.max()).to_numpy())
    return Table(
        "languages",
        "Sum of recalls of every recipe in every language",
        ["recipe", *sums.columns],
        [[str(recipe), *map(number, row)] for recipe, row in sums.iterrows()],
        labels=1,
        best=frozenset((int(row), int(column) + 1) for row, column in best),
    )


def published_table(joined: pd.DataFrame) -> Table | None:
    """Return our scores above those that papers print and the differences, or None.

    Args:
        joined: Of published.beside_published.
    """
    if "source" not in joined:
        return None
    columns = [*_RECALL_COLUMNS, "sum_of_recalls", "mean_recall"]
    rows = []
    for _, row in joined.dropna(subset="source").iterrows():
        printed = f"{row['source']}, table {row['tables']}"
        for words, suffix, form in (
            ("ours", "", ".1f"),
            (printed, "_published", ".1f"),
            ("difference", "_difference", "+.1f"),
        ):
            numbers = [number(row[f"{column}{suffix}"], form) for column in columns]
            rows.append([row["recipe"], row["language"], words, *numbers])
    header = ["recipe", "language", "figures", *_RECALL_HEADER, "sum of recalls", "mean recall"]
    title = "Our scores, the papers' own, and ours less theirs"
    return Table("published", title, header, rows, labels=3)


def published_task_table(joined: pd.DataFrame) -> Table | None:
    """Return our figures of the other tasks beside those that papers print, or None.

    Args:
        joined: Of published_tasks.tasks_beside_published.
    """
    rows = []
    for _, row in joined.dropna(subset="published").iterrows():
        form = ".3f" if row["task"] == "sts" else ".1f"
        numbers = [number(row[name], form) for name in ("value", "published")]
        words = [row["recipe"], f"{row['task']}, {row['item']}", row["variant"].replace("_", " ")]
        printed = f"{row['source']}, table {row['tables']}"
        rows.append([*words, printed, *numbers, number(row["difference"], f"+{form}")])
    header = ["recipe", "task", "variant", "printed in", "ours", "theirs", "difference"]
    title = "The other tasks: our figures, the papers' own, and ours less theirs"
    return Table("published_tasks", title, header, rows, labels=4) if rows else None


def model_table(
    recipes: Mapping[str, Recipe],
    training: Mapping[str, pd.DataFrame],
    models: Mapping[str, dict],
) -> Table:
    """Return what each recipe trained: its size, its updates, and where its best weights were."""
    header = ["recipe", "paper", "languages", "arithmetic", "parameters", "in words"]
    header += ["updates", "best validation at", "epochs"]
    rows = []
    for name, recipe in recipes.items():
        sizes = models.get(name, {}).get("parameters", {})
        cells = [name, recipe.paper, " ".join(recipe.languages), recipe.precision]
        cells += [millions(sizes.get(part)) for part in ("all", "words")]
        rows.append([*cells, *_training_cells(training.get(name), recipe.select_by)])
    title = "Models: parameters in millions, updates, and the update whose weights were kept"
    return Table("models", title, header, rows, labels=4)


def pseudopair_table(reports: Mapping[str, dict]) -> Table:
    """Return one column per pseudopair set, with every number of its report."""
    flat = {name: _flat(report) for name, report in reports.items()}
    keys = list(dict.fromkeys(key for numbers in flat.values() for key in numbers))
    rows = [
        [key, *(f"{flat[n][key]:g}" if key in flat[n] else NOTHING for n in flat)] for key in keys
    ]
    return Table("pseudopairs", "Pseudopairs: shares of 1, or counts", ["", *flat], rows, labels=1)


def number(value: float, form: str = ".1f") -> str:
    """Return a number in a format, or a dash if there is none."""
    return NOTHING if pd.isna(value) else f"{value:{form}}"


def millions(count: int | None) -> str:
    """Return a count in millions, or a dash."""
    return NOTHING if count is None else f"{count / 1e6:.2f}"


def best_validation(history: pd.DataFrame, select_by: str) -> pd.Series:
    """Return the validation whose weights one seed kept: the first of the best."""
    scores = history[select_by]
    return history.loc[scores.idxmin() if select_by == "mean_rank" else scores.idxmax()]


def _training_cells(history: pd.DataFrame | None, select_by: str) -> Sequence[str]:
    if history is None:
        return [NOTHING] * 3
    seeds = [rows for _, rows in history.groupby("seed")]
    kept = [best_validation(rows, select_by) for rows in seeds]
    return [
        ", ".join(f"{rows['update'].max():,}" for rows in seeds),
        ", ".join(f"{row['update']:,.0f}" for row in kept),
        ", ".join(f"{rows['epoch'].max():.1f}" for rows in seeds),
    ]


def _flat(report: Mapping[str, object]) -> dict[str, float]:
    """Return the single numbers of a report by their readable names."""
    return {
        key.replace("_", " "): value
        for part in report.values()
        for key, value in part.items()
        if isinstance(value, int | float)
    }
