"""Every figure of every task in one tidy frame: a row per recipe and score, means over seeds."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain

import numpy as np
import pandas as pd

from pipeline_lib.contract.queries import DIRECTIONS
from pipeline_lib.contract.recalls import CUTOFFS

KEY = ["recipe", "task", "item", "variant", "metric"]
"""What names a figure. ``item`` is a language, a pair of them (``en-de``) or a scored set;
``variant`` is the way to the metric below it in the report, such as ``image_to_text``, ``exact`` or
``folds/text_to_image``, empty where there is none."""

FIGURE = KEY[1:]
"""What names a figure of every recipe."""

COLUMNS = [*KEY, "seeds", "value", "sd", "low", "high", "queries"]
"""``value`` is the mean over ``seeds``, ``sd`` its standard deviation (empty for one seed), ``low``
and ``high`` the means of the single models' bounds over units (intervals.over_seeds makes bounds of
the mean of them), ``queries`` the number of queries or pairs. Recalls, precisions and shares are in
per cent."""

MIXED = "mixed_pool"
"""Images that search the captions of all languages, a part of the report of retrieval."""

ONE_CAPTION = "one_caption"
"""Retrieval of one caption per image, of the same images in all languages."""

TRANSLATED = "translated_queries"
"""Captions that a machine translates into a language that models read, and that query them."""

RECALLS = tuple(f"r{k}" for k in CUTOFFS)

HEADLINES = {
    ONE_CAPTION: ("sum_of_recalls",),
    "consistency": ("overlap", "rank_correlation"),
    "sentence_retrieval": ("r1",),
    "sts": ("pearson", "spearman"),
    "word_translation": ("p1", "learnt"),
    TRANSLATED: ("sum_of_recalls", "mean_recall"),
}
"""Metrics by task that results/tasks.csv holds, beside recalls in folds; the reports hold all.

Of a task that is named neither here nor in :data:`APART` it holds all but numbers of queries.
"""

APART = ("retrieval", MIXED, "probes")
"""Tasks of whose figures summary.csv, or a table of their own, holds the main ones."""

COUNTS = ("n_queries", "n_pairs")
"""Metrics that say how many were asked."""

Reports = Mapping[str, Mapping[str, dict]]
"""Report by task and recipe."""


def figures(reports: Reports, translated: Iterable[dict] = ()) -> pd.DataFrame:
    """Return a row per figure, with the columns :data:`COLUMNS`.

    Args:
        reports: Reports of evaluation.tasks; those with a ``reason`` only have no figures.
        translated: Reports of stages.translated_queries.
    """
    rows = [
        {"recipe": recipe, "task": task, **row}
        for task, recipe, seeds in [*_of_tasks(reports), *_of_translated_queries(translated)]
        for row in _rows(seeds)
    ]
    return pd.DataFrame(rows, columns=COLUMNS)


def headlines(table: pd.DataFrame) -> pd.DataFrame:
    """Return the figures of :data:`HEADLINES`, of unknown tasks, and the recalls in folds."""
    chosen = table["variant"].str.startswith("folds/") & table["metric"].isin(RECALLS)
    chosen |= ~table["task"].isin([*HEADLINES, *APART]) & ~table["metric"].isin(COUNTS)
    for task, metrics in HEADLINES.items():
        chosen |= (table["task"] == task) & table["metric"].isin(metrics)
    return table[chosen]


def _of_tasks(reports: Reports) -> Iterator[tuple[str, str, list[dict]]]:
    """Yield task, recipe and what each seed found, in the form ``{item: {variant: scores}}``."""
    for task, by_recipe in reports.items():
        turn = _one_way(by_recipe) if task == "consistency" else _as_it_is
        for recipe, report in by_recipe.items():
            seeds = list(report.get("per_seed", {}).values())
            yield task, recipe, [_FORMS.get(task, turn)(seed, report) for seed in seeds]
            mixed = list(report.get("mixed", {}).values())
            if mixed:
                yield MIXED, recipe, [{" ".join(seed["first_language"]): seed} for seed in mixed]


def _of_translated_queries(reports: Iterable[dict]) -> Iterator[tuple[str, str, list[dict]]]:
    for report in reports:
        pair = f"{report['source_language']}-{report['target_language']}"
        yield TRANSLATED, report["recipe"], [{pair: s} for s in report["per_seed"].values()]


def _as_it_is(seed: dict, report: dict) -> dict:
    return seed


def _one_way(by_recipe: Mapping[str, dict]) -> Callable[[dict, dict], dict]:
    """Return what names pairs of languages alike, in whatever order recipes list their languages.

    Of two languages that one compares, neither is first: it is the one that a report names first.
    """
    seeds = [seed for each in by_recipe.values() for seed in each.get("per_seed", {}).values()]
    order = [*dict.fromkeys(language for pair in chain(*seeds) for language in pair.split("-"))]

    def turned(seed: dict, report: dict) -> dict:
        return {
            "-".join(sorted(pair.split("-"), key=order.index)): scores
            for pair, scores in seed.items()
        }

    return turned


def _in_order(seed: dict, report: dict) -> dict:
    """Return the languages in the order of the recipe."""
    return {language: seed[language] for language in report["pools"]}


def _by_pair(seed: dict, report: dict) -> dict:
    """Put the pair of languages before the protocol."""
    pairs = dict.fromkeys(pair for found in seed.values() for pair in found)
    return {pair: {p: found[pair] for p, found in seed.items() if pair in found} for pair in pairs}


def _with_learnt(seed: dict, report: dict) -> dict:
    """Add to each pair of languages the share of tested words that were learnt, if it is known."""
    learnt = report.get("learnt")
    return {
        pair: scores if learnt is None else {**scores, "learnt": learnt}
        for pair, scores in seed.items()
    }


_FORMS = {
    "retrieval": _in_order,
    "sentence_retrieval": _by_pair,
    "word_translation": _with_learnt,
}


def _rows(seeds: Sequence[dict], way: tuple[str, ...] = ()) -> Iterator[dict[str, object]]:
    """Yield a row per number that all seeds have."""
    for key in seeds[0] if seeds else ():
        found = [seed[key] for seed in seeds if seed.get(key) is not None]
        if len(found) < len(seeds):
            continue
        if isinstance(found[0], Mapping):
            yield from _rows(found, (*way, key))
        elif isinstance(found[0], int | float):
            item, *variant = way or ("",)
            name = {"item": item, "variant": "/".join(variant), "metric": key}
            yield {**name, **_figure(seeds, key, found)}


def _figure(seeds: Sequence[dict], key: str, found: list[float]) -> dict[str, float]:
    bounds = [seed[f"{key}_interval"] for seed in seeds if f"{key}_interval" in seed]
    low, high = np.mean(bounds, axis=0) if bounds else (np.nan, np.nan)
    # Sums over both directions have as many queries as the one that has more.
    counted = {**seeds[0].get("text_to_image", {}), **seeds[0]}
    counts = [counted[name] for name in COUNTS if name in counted]
    return {
        "seeds": len(found),
        "value": float(np.mean(found)),
        "sd": np.std(found, ddof=1) if len(found) > 1 else np.nan,
        "low": low,
        "high": high,
        "queries": counts[0] if counts else np.nan,
    }


def tested_alike(queries: Sequence[float]) -> bool:
    """Return whether figures of so many queries each can be compared: of a tenth less at most.

    What training captions leave to be tested, unseen words and pairs, may differ by that.
    """
    tested = [0 if math.isnan(n) else n for n in queries]
    return min(tested) >= 0.9 * max(tested)


def retrieval_figures(table: pd.DataFrame) -> pd.DataFrame:
    """Return the figures of image-text retrieval in whole pools."""
    return table[(table["task"] == "retrieval") & table["variant"].isin(["", *DIRECTIONS])]
