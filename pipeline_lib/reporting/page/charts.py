"""The charts of the page: scores, and scores against updates, the image's weight, languages."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import cycle

import pandas as pd
from markupsafe import Markup

from pipeline_lib.contract.reports import LOSS, RECALL_SUM, best_validation
from pipeline_lib.reporting.curves import RECALLS, mean_recall_sum
from pipeline_lib.reporting.page.svg import (
    Curve,
    Estimate,
    bar_chart,
    curves_chart,
    estimates_chart,
    interval_chart,
    line_chart,
    round_ticks,
)
from pipeline_lib.reporting.results import Results
from pipeline_lib.reporting.verdicts import LANGUAGES
from pipeline_lib.settings.objectives import Joint

_RECALL_HEIGHT, _LOSS_HEIGHT, _WORD_HEIGHT = 110, 60, 130
_LOSS_KINDS = ("second solid", "second dashed", "second dotted")
"""Classes of the page's style, of one loss term each."""

CURVE_KINDS = [f"hue-{n % 8} {dash}" for dash in ("solid", "dashed", "dotted") for n in range(8)]
"""Classes of the page's style, of one recipe each; of more recipes they recur."""


@dataclass(frozen=True)
class Figure:
    """Charts under a caption, whose title is a name of params.yaml or a word.

    ``legend`` has the class of each recipe's curve.
    """

    title: str
    words: str
    charts: Sequence[Markup]
    is_name: bool = True
    legend: Mapping[str, str] = field(default_factory=dict)


def score_charts(results: Results) -> Iterator[Figure]:
    """Yield one chart per pool: the sums of recalls of its recipes, on one scale per data set."""
    table = results.summary
    for (dataset, language), rows in table.groupby(["dataset", "language"], sort=False):
        same = table[table["dataset"] == dataset]
        low, high = same["sum_of_recalls_low"].min(), same["sum_of_recalls_high"].max()
        ranked = rows.sort_values("sum_of_recalls", ascending=False, kind="stable")
        best = ranked.iloc[0]["recipe"]
        estimates = [_estimate(row, row["recipe"] == best) for _, row in ranked.iterrows()]
        name = pool_name(str(dataset), str(language), table)
        chart = interval_chart(f"Sum of recalls, {name}, by recipe", estimates, low, high)
        yield Figure(name, "sum of recalls", [chart], is_name=False)


def reuse_charts(results: Results) -> Iterator[Figure]:
    """Yield for each pseudopair set how often its captions are lent."""
    for name, report in results.pseudopairs.items():
        counts = list(report["reuse"]["captions_by_uses"].items())
        chart = bar_chart(f"Captions of {name} by how often each is lent to a photo", counts)
        yield Figure(name, "captions by how often each is lent to a photo", [chart])


def language_name(language: str) -> str:
    """Return the English name of a language; its code, if the papers do not have it."""
    return LANGUAGES.get(language, language)


def pool_name(dataset: str, language: str, summary: pd.DataFrame) -> str:
    """Return the language's name, and the data set where recipes are scored on several."""
    name = language_name(language)
    several = summary.loc[summary["language"] == language, "dataset"].nunique() > 1
    return f"{name} · {dataset}" if several else name


def curve_charts(results: Results) -> Iterator[Figure]:
    """Yield the validation recalls of all recipes in one plot, means over seeds, by epoch."""
    curves = dict(list(results.curves.groupby("recipe", sort=False)))
    if not curves:
        return
    ticks = round_ticks(0, float(results.curves[RECALLS].max()), 5)
    kinds = dict(zip(curves, cycle(CURVE_KINDS), strict=False))
    series = [
        Curve(name, kinds[name], rows["epoch"], rows[RECALLS]) for name, rows in curves.items()
    ]
    chart = curves_chart("Validation recalls of all recipes by epoch", series, ticks)
    words = "sum of recalls on the validation captions by epoch, mean of seeds and languages"
    yield Figure("All recipes", words, [chart], is_name=False, legend=kinds)


def training_charts(results: Results) -> Iterator[Figure]:
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
        yield Figure(name, "", parts)


def _losses(name: str, history: pd.DataFrame) -> list[Markup]:
    columns = history.filter(regex=f"^{LOSS}").dropna(axis=1, how="all").columns
    if not len(columns):
        return []
    kinds = dict(zip(columns, cycle(_LOSS_KINDS), strict=False))
    names = [
        column.removeprefix(LOSS).replace("_", "–") + f" ({kind.split()[-1]})" * (len(kinds) > 1)
        for column, kind in kinds.items()
    ]
    curves = [
        (kind, rows["update"], rows[column])
        for rows in _seeds(history)
        for column, kind in kinds.items()
    ]
    ticks = round_ticks(0, float(history[columns].max().max()), 2)
    chart = line_chart(f"Loss of {name} over its updates", curves, ticks, _LOSS_HEIGHT)
    legend = Markup('<div class="legend">loss: {}</div>').format(", ".join(names))
    return [legend, chart]


def word_translation_charts(results: Results) -> Iterator[Figure]:
    """Yield, for each recipe that knows translations, how precisely its words find them over time.

    Beside it R@1 of image to text, which pulls the words apart (Mohammadshahi et al. 2019, fig. 2).
    """
    for name, history in results.training.items():
        precision = history.filter(regex="^word_translation_p1_").mean(axis=1)
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
        words = "P@1 of word translation (solid), R@1 image → text (dashed), in %"
        yield Figure(name, words, [line_chart(label, curves, ticks, _WORD_HEIGHT)])


def beta_charts(results: Results) -> Iterator[Figure]:
    """Yield one chart per language where recipes differ in beta (Calixto et al. 2017, table 1)."""
    joint = {n: r for n, r in results.recipes.items() if r.paper == "calixto2017"}
    varied = {n: recipe.beta for n, recipe in joint.items() if isinstance(recipe, Joint)}
    yield from _charts(results, varied, "by β, the share of image–sentence terms")


def language_charts(results: Results) -> Iterator[Figure]:
    """Yield one chart per language where recipes differ in how many languages they learn."""
    varied = {name: len(recipe.languages) for name, recipe in results.recipes.items()}
    yield from _charts(results, varied, "by the number of languages learnt")


def growth_charts(results: Results) -> Iterator[Figure]:
    """Yield for each recipe that was trained on less a chart by photos, and one by languages."""
    for name, table in results.growth.items():
        every = table["languages"] == table["languages"].max()
        # Of fewer languages all photos are learnt; some may have captions in none of them.
        whole = ~every | (table["photos"] == table["photos"].max())
        for column, rows in (("photos", table[every]), ("languages", table[whole])):
            yield _growth(name, f"by the number of {_LEARNT[column]}", column, rows)


_LEARNT = {"photos": "training photos", "languages": "languages learnt"}


def _growth(name: str, words: str, column: str, rows: pd.DataFrame) -> Figure:
    kinds = dict(
        zip(map(language_name, rows["language"].unique()), cycle(CURVE_KINDS), strict=False)
    )
    curves = []
    for language, own in rows.groupby("language", sort=False):
        sums = own.groupby(column)[RECALL_SUM].mean()
        shown = language_name(str(language))
        curves.append(Curve(shown, kinds[shown], sums.index, sums))
    ticks = round_ticks(0, float(rows[RECALL_SUM].max()), 5)
    chart = curves_chart(f"Validation recalls of {name} {words}", curves, ticks, rings=True)
    return Figure(name, f"sum of recalls on the validation captions {words}", [chart], legend=kinds)


def _charts(results: Results, varied: dict[str, float], words: str) -> Iterator[Figure]:
    table = results.summary[results.summary["recipe"].isin(varied)]
    for (dataset, language), rows in table.groupby(["dataset", "language"], sort=False):
        if rows["recipe"].map(varied).nunique() > 1:
            yield _chart(rows, varied, pool_name(str(dataset), str(language), table), words)


def _chart(rows: pd.DataFrame, varied: dict[str, float], language: str, words: str) -> Figure:
    best = rows["sum_of_recalls"].max()
    points = [
        (varied[row["recipe"]], _estimate(row, row["sum_of_recalls"] == best))
        for _, row in rows.iterrows()
    ]
    ticks = round_ticks(rows["sum_of_recalls_low"].min(), rows["sum_of_recalls_high"].max(), 4)
    chart = estimates_chart(f"Sum of recalls, {language}, {words}", points, ticks)
    return Figure(language, f"sum of recalls {words}", [chart], is_name=False)


def _estimate(row: pd.Series, best: bool) -> Estimate:
    columns = ("sum_of_recalls", "sum_of_recalls_low", "sum_of_recalls_high")
    return Estimate(row["recipe"], *(float(row[column]) for column in columns), best)


def _seeds(history: pd.DataFrame) -> Sequence[pd.DataFrame]:
    return [rows for _, rows in history.groupby("seed")]
