"""All recipes' scores in one table, as CSV, Markdown and the small JSON that DVC compares."""

from collections.abc import Iterator, Mapping

import numpy as np
import pandas as pd

DIRECTIONS = {"image_to_text": "I→T", "text_to_image": "T→I"}
RECALLS = ("r1", "r5", "r10")
TITLE = (
    "Sum of R@1, R@5 and R@10 in both directions, in %, ± its standard deviation over seeds, and "
    "its interval over images."
)


def summary_table(reports: Mapping[str, dict], papers: Mapping[str, str]) -> pd.DataFrame:
    """Return one row per recipe and language: means over seeds of all scores.

    Args:
        reports: Retrieval report of each recipe (evaluation.reports.retrieval_report).
        papers: Paper of each recipe.

    Returns:
        Columns recipe, paper, language, seeds, ``<direction>_<score>``, sum_of_recalls, its
        standard deviation over seeds (empty for one seed), its confidence interval (mean of the
        seeds' bounds), queries. Recalls are in per cent.
    """
    rows = [
        {"recipe": recipe, "paper": papers[recipe], **row}
        for recipe, report in reports.items()
        for row in _language_rows(report)
    ]
    return pd.DataFrame(rows)


def headline(table: pd.DataFrame) -> dict[str, float]:
    """Return the metric that DVC tracks: one number per recipe, to compare experiments by.

    Args:
        table: Of :func:`summary_table`.

    Returns:
        ``{recipe: sum of recalls}``, the mean over the recipe's languages.
    """
    return table.groupby("recipe")["sum_of_recalls"].mean().round(2).to_dict()


def markdown(table: pd.DataFrame) -> str:
    """Return the sums of recalls as Markdown: a line per recipe, a column per language.

    Args:
        table: Of :func:`summary_table`.
    """
    languages = list(table["language"].unique())
    lines = [["recipe", "seeds", *languages], ["---"] + ["---:"] * (1 + len(languages))]
    for recipe, rows in table.groupby("recipe", sort=False):
        cells = {row["language"]: _with_interval(row) for _, row in rows.iterrows()}
        seeds = str(rows["seeds"].iloc[0])
        lines.append([f"`{recipe}`", seeds, *(cells.get(name, "–") for name in languages)])
    return "\n".join([TITLE, "", *map(table_line, lines)]) + "\n"


def sum_with_spread(row: pd.Series) -> str:
    """Return the sum of recalls of a row, ± its deviation over seeds if there is one."""
    spread = row["sum_of_recalls_sd"]
    return f"{row['sum_of_recalls']:.1f}" + ("" if np.isnan(spread) else f" ± {spread:.1f}")


def table_line(cells: list[str]) -> str:
    """Return one line of a Markdown table."""
    return f"| {' | '.join(cells)} |"


def _language_rows(report: dict) -> Iterator[dict[str, object]]:
    seeds = report["per_seed"].values()
    for language in report["pools"]:
        scores = [seed[language] for seed in seeds]
        sums = np.array([score["sum_of_recalls"] for score in scores])
        low, high = np.mean([score["sum_of_recalls_interval"] for score in scores], axis=0)
        yield {
            "language": language,
            "seeds": len(scores),
            **_direction_means(scores),
            "sum_of_recalls": sums.mean(),
            "sum_of_recalls_sd": sums.std(ddof=1) if len(sums) > 1 else np.nan,
            "sum_of_recalls_low": low,
            "sum_of_recalls_high": high,
        }


def _direction_means(scores: list[dict]) -> dict[str, float]:
    keys = (*RECALLS, "median_rank", "mean_rank", "n_queries", "n_candidates")
    return {
        f"{direction}_{key}": float(np.mean([score[direction][key] for score in scores]))
        for direction in DIRECTIONS
        for key in keys
    }


def _with_interval(row: pd.Series) -> str:
    low, high = row["sum_of_recalls_low"], row["sum_of_recalls_high"]
    return f"{sum_with_spread(row)} ({low:.0f}–{high:.0f})"
