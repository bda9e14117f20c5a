"""Charts of scores against what was varied: updates, the weight of the image, languages."""

from collections.abc import Iterator, Sequence
from xml.etree.ElementTree import Element

import pandas as pd

from pipeline_lib.reporting.markup import Child, block, code, element
from pipeline_lib.reporting.results import Results
from pipeline_lib.reporting.study_tables import best_validation
from pipeline_lib.reporting.svg import estimates_chart, line_chart, round_ticks
from pipeline_lib.reporting.verdicts import LANGUAGES, estimate

_RECALL_HEIGHT, _LOSS_HEIGHT, _ALIGNMENT_HEIGHT = 110, 60, 130
_LOSS_KINDS = ("second solid", "second dashed", "second dotted")
"""Classes of the page's style; no objective has more terms."""


def training_charts(results: Results) -> Iterator[Element]:
    """Yield for each recipe its recalls, on one scale for all, above its losses."""
    recalls = {name: mean_recall_sum(history) for name, history in results.training.items()}
    highest = max((values.max() for values in recalls.values()), default=0)
    ticks = round_ticks(0, float(highest), 3)
    for name, history in results.training.items():
        scored = recalls[name]
        curves = [("", rows["update"], scored[rows.index]) for rows in _seeds(history)]
        select_by = results.recipes[name].select_by
        kept = [best_validation(rows, select_by) for rows in _seeds(history)]
        marks = [(row["update"], scored[row.name]) for row in kept]
        label = f"Validation recalls of {name} over its updates"
        parts = [line_chart(label, curves, ticks, _RECALL_HEIGHT, marks), *_losses(name, history)]
        caption = element("figcaption", {}, [element("strong", {}, [code(name)])])
        yield element("figure", {}, [caption, *parts])


def _losses(name: str, history: pd.DataFrame) -> list[Element]:
    columns = history.filter(regex="^loss_").dropna(axis=1, how="all").columns
    if not len(columns):
        return []
    kinds = dict(zip(columns, _LOSS_KINDS, strict=False))
    names = [
        column.removeprefix("loss_").replace("_", "–") + f" ({kind.split()[-1]})" * (len(kinds) > 1)
        for column, kind in kinds.items()
    ]
    curves = [
        (kind, rows["update"], rows[column])
        for rows in _seeds(history)
        for column, kind in kinds.items()
    ]
    ticks = round_ticks(0, float(history[columns].max().max()), 2)
    chart = line_chart(f"Loss of {name} over its updates", curves, ticks, _LOSS_HEIGHT)
    return [block("legend", f"loss: {', '.join(names)}"), chart]


def alignment_charts(results: Results) -> Iterator[Element]:
    """Yield, for each recipe that knows translations, how precisely its words find them over time.

    Beside it R@1 of image to text, which pulls the words apart (Mohammadshahi et al. 2019, fig. 2).
    """
    for name, history in results.training.items():
        precision = history.filter(regex="^word_p1_").mean(axis=1)
        recall = history.filter(regex="^image_to_text_r1_").mean(axis=1)
        if precision.isna().all():
            continue
        curves = [
            (kind, rows["update"], values[rows.index])
            for rows in _seeds(history)
            for kind, values in (("", precision), ("second dashed", recall))
        ]
        ticks = round_ticks(0, float(max(precision.max(), recall.max())), 3)
        label = f"Precision of word translation and R@1 of {name} over its updates, in per cent"
        words = " · words that find their translation first (line), R@1 image → text (dashed), in %"
        caption = element("figcaption", {}, [code(name), words])
        yield element("figure", {}, [caption, line_chart(label, curves, ticks, _ALIGNMENT_HEIGHT)])


def mean_recall_sum(history: pd.DataFrame) -> pd.Series:
    """Return the validation sum of recalls, averaged over the recipe's languages."""
    return history.filter(regex="^recall_sum_").mean(axis=1)


def beta_charts(results: Results) -> Iterator[Element]:
    """Yield one chart per language where recipes differ in beta (Calixto et al. 2017, table 1)."""
    varied = {n: r.beta for n, r in results.recipes.items() if n.startswith("mlmme_")}
    yield from _charts(results, varied, "by β, the share of image–sentence terms")


def language_charts(results: Results) -> Iterator[Element]:
    """Yield one chart per language where recipes differ in how many languages they learn."""
    varied = {name: len(recipe.languages) for name, recipe in results.recipes.items()}
    yield from _charts(results, varied, "by the number of languages learnt")


def _charts(results: Results, varied: dict[str, float], words: str) -> Iterator[Element]:
    table = results.summary[results.summary["recipe"].isin(varied)]
    for (_, language), rows in table.groupby(["dataset", "language"], sort=False):
        if rows["recipe"].map(varied).nunique() > 1:
            yield _chart(rows, varied, LANGUAGES.get(str(language), str(language)), words)


def _chart(rows: pd.DataFrame, varied: dict[str, float], language: str, words: str) -> Element:
    best = rows["sum_of_recalls"].max()
    points = [
        (varied[row["recipe"]], estimate(row, row["sum_of_recalls"] == best))
        for _, row in rows.iterrows()
    ]
    ticks = round_ticks(rows["sum_of_recalls_low"].min(), rows["sum_of_recalls_high"].max(), 4)
    caption: list[Child] = [element("strong", {}, [language]), f" · sum of recalls {words}"]
    chart = estimates_chart(f"Sum of recalls, {language}, {words}", points, ticks)
    return element("figure", {}, [element("figcaption", {}, caption), chart])


def _seeds(history: pd.DataFrame) -> Sequence[pd.DataFrame]:
    return [rows for _, rows in history.groupby("seed")]
