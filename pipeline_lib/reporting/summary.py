"""All recipes' scores in one table, as CSV, Markdown and the small JSON that DVC compares."""

from collections.abc import Iterator, Mapping

import numpy as np
import pandas as pd

from pipeline_lib.evaluation.hits import paired_p
from pipeline_lib.settings.evaluations import Evaluations

DIRECTIONS = {"image_to_text": "I→T", "text_to_image": "T→I"}
RECALLS = ("r1", "r5", "r10")


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


def beside_baseline(
    table: pd.DataFrame, hits: Mapping[str, pd.DataFrame], settings: Evaluations
) -> pd.DataFrame:
    """Return the table with paired tests of each recipe's sum of recalls against the baseline's.

    Args:
        table: Of :func:`summary_table`.
        hits: Of every image (hits.HITS), by recipe.
        settings: Name of the baseline; number of permutations, and their seed.

    Returns:
        ``table``, the ``baseline`` and ``baseline_p``, two-sided: empty for the baseline itself,
        and where one of the two has no hits or not the same queries.
    """
    baseline, bootstrap = settings.baseline, settings.retrieval

    def p(row: pd.Series) -> float:
        if row["recipe"] == baseline or not {row["recipe"], baseline} <= hits.keys():
            return np.nan
        sides = hits[row["recipe"]], hits[baseline]
        return paired_p(*sides, row["language"], bootstrap.bootstrap_samples, bootstrap.seed)

    return table.assign(baseline=baseline, baseline_p=[p(row) for _, row in table.iterrows()])


def headline(table: pd.DataFrame) -> dict[str, dict[str, float]]:
    """Return ``{recipe: {language: sum of recalls}}``, the metric that DVC tracks."""
    return {
        str(recipe): dict(zip(rows["language"], rows["sum_of_recalls"].round(2), strict=True))
        for recipe, rows in table.groupby("recipe", sort=True)
    }


def markdown(table: pd.DataFrame) -> str:
    """Return the table as Markdown: recalls both ways, their sum ± sd, its interval and p.

    Args:
        table: Of :func:`beside_baseline`.
    """
    header = ["recipe", "language", "seeds"]
    header += [f"{arrow} R@1/5/10 (median)" for arrow in DIRECTIONS.values()]
    header += ["sum of recalls", "95 % interval", f"p, against `{table['baseline'].iloc[0]}`"]
    lines = [table_line(header), table_line(["---"] * 3 + ["---:"] * 5)]
    return "\n".join([*lines, *(table_line(_cells(row)) for _, row in table.iterrows())]) + "\n"


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


def _cells(row: pd.Series) -> list[str]:
    both_ways = [
        "/".join(f"{row[f'{direction}_{recall}']:.1f}" for recall in RECALLS)
        + f" ({row[f'{direction}_median_rank']:g})"
        for direction in DIRECTIONS
    ]
    spread = "" if np.isnan(row["sum_of_recalls_sd"]) else f" ± {row['sum_of_recalls_sd']:.1f}"
    return [
        f"`{row['recipe']}`",
        row["language"],
        str(row["seeds"]),
        *both_ways,
        f"{row['sum_of_recalls']:.1f}{spread}",
        f"{row['sum_of_recalls_low']:.1f}–{row['sum_of_recalls_high']:.1f}",
        _p(row["baseline_p"]),
    ]


def _p(value: float) -> str:
    if np.isnan(value):
        return "–"
    return "< .001" if value < 0.001 else f"{value:.3f}".replace("0.", ".", 1)
