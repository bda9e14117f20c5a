"""Headline scores of the other tasks, one row per figure: translation, STS, word alignment."""

from collections.abc import Iterable, Iterator, Mapping

import numpy as np
import pandas as pd

from pipeline_lib.reporting.summary import DIRECTIONS, table_line

FOLDS = "folds"
"""Image-text retrieval in folds, which stands in the report of retrieval."""

TRANSLATED = "translated_queries"
"""Retrieval by captions of another language, translated by a machine into one that models read."""

METRICS = {
    "translation": ("r1",),
    "sts": ("pearson", "spearman"),
    "alignment": ("p1",),
    FOLDS: ("r1", "r5", "r10"),
    TRANSLATED: ("sum_of_recalls", "mean_recall"),
}
"""Scores of each task that the summary holds; the report of a recipe holds them all."""

REPORTED = ("retrieval", "translation", "sts", "alignment")
"""Tasks of recipes whose reports these scores stand in; those of translated queries are apart."""

KEY = ["recipe", "task", "item", "variant", "metric"]
"""What names a figure. ``item`` is a direction (``en-de``), a scored set or a language; ``variant``
a protocol of translation, a subset of the scored pairs, how neighbours of words are found, or a
direction between images and captions. Translated queries have their own language as ``item``, that
of the translations as ``variant``."""

PROTOCOLS = ("first", "exact")
_ENDS = ("lowest", "highest")
_SUBSETS = {"all": "", "without_overlap": ", unseen"}
_COUNTS = {**dict.fromkeys(METRICS, "n_queries"), "sts": "n_pairs"}
_COLUMNS = [*KEY, "seeds", "value", "sd", "low", "high", "queries", "learnt"]


def task_table(
    reports: Mapping[str, Mapping[str, dict]], translated: Mapping[str, dict]
) -> pd.DataFrame:
    """Return one row per figure.

    Args:
        reports: Reports (evaluation.reports) by task of :data:`REPORTED` and recipe.
        translated: Reports of stages.translated_queries by name.

    Returns:
        Columns :data:`KEY`, ``seeds``, ``value`` (mean over seeds), ``sd`` (empty for one seed),
        ``low`` and ``high`` (mean of the seeds' bounds), ``queries``, and ``learnt``, the share of
        tested words that were learnt from. Recalls, precisions and that share are in per cent.
    """
    every = {
        **reports,
        FOLDS: fold_reports(reports["retrieval"]),
        TRANSLATED: _by_recipe(translated.values()),
    }
    rows = [
        {"recipe": recipe, "task": task, "learnt": report.get("learnt"), **row}
        for task in METRICS
        for recipe, report in every[task].items()
        for row in _figures(task, list(report.get("per_seed", {}).values()))
    ]
    return pd.DataFrame(rows, columns=_COLUMNS).astype({"learnt": float})


def fold_reports(retrieval: Mapping[str, dict]) -> dict[str, dict]:
    """Return the scores in folds of the recipes that have any, in the form of a task's reports.

    Args:
        retrieval: Report of each recipe (evaluation.reports.retrieval_report).
    """
    return {
        recipe: {
            "per_seed": {
                seed: {
                    language: {way: scores[FOLDS][way] for way in DIRECTIONS}
                    for language, scores in languages.items()
                    if FOLDS in scores
                }
                for seed, languages in report["per_seed"].items()
            }
        }
        for recipe, report in retrieval.items()
        if any(FOLDS in scores for seed in report["per_seed"].values() for scores in seed.values())
    }


def _by_recipe(translated: Iterable[dict]) -> dict[str, dict]:
    """Return reports of translated queries in the form of a task's reports."""
    found: dict[str, dict] = {}
    for report in translated:
        seeds = found.setdefault(report["recipe"], {"per_seed": {}})["per_seed"]
        for seed, scores in report["per_seed"].items():
            asked = {**scores, "n_queries": scores["text_to_image"]["n_queries"]}
            languages = seeds.setdefault(seed, {}).setdefault(report["source_language"], {})
            languages[report["target_language"]] = asked
    return found


def task_markdown(table: pd.DataFrame) -> str:
    """Return one Markdown table per task that some recipe did, with a line that says what it is."""
    parts = [form(table[table["task"] == task]) for task, form in _FORMS.items()]
    return "\n".join(part for part in parts if part)


def _figures(task: str, seeds: list[dict]) -> Iterator[dict[str, object]]:
    for outer, found in (seeds[0] if seeds else {}).items():
        for inner in found:
            item, variant = (inner, outer) if task == "translation" else (outer, inner)
            scores = [seed[outer][inner] for seed in seeds]
            for metric in METRICS[task]:
                if metric in scores[0]:
                    figure = _figure(scores, metric, _COUNTS[task])
                    yield {"item": item, "variant": variant, "metric": metric, **figure}


def _figure(scores: list[dict], metric: str, count: str) -> dict[str, float]:
    values = np.array([score[metric] for score in scores])
    low, high = np.mean([score[f"{metric}_interval"] for score in scores], axis=0)
    return {
        "seeds": len(values),
        "value": values.mean(),
        "sd": values.std(ddof=1) if len(values) > 1 else np.nan,
        "low": low,
        "high": high,
        "queries": scores[0][count],
    }


def _translation(rows: pd.DataFrame) -> str:
    lines = []
    for recipe, own in rows.groupby("recipe", sort=False):
        protocols = dict(list(own.groupby("variant")))
        cells = [cell for name in PROTOCOLS for cell in _range(protocols.get(name))]
        lines.append([f"`{recipe}`", str(own["item"].nunique()), *cells])
    header = [f"{protocol}: {shown}" for protocol in PROTOCOLS for shown in ("mean", *_ENDS)]
    return _table(
        "Sentences that find sentences of another language, R@1 in %, over ordered pairs of "
        "languages: `first`, any sentence of the image is right; `exact`, the translation alone.",
        ["recipe", "pairs", *header],
        1,
        lines,
    )


def _range(figures: pd.DataFrame | None) -> list[str]:
    """Return the mean over pairs of languages, the lowest and the highest."""
    if figures is None:
        return ["–"] * (1 + len(_ENDS))
    ends = figures.sort_values("value", kind="stable").iloc[[0, -1]]
    shown = [f"{_arrow(row['item'])} {_score(row)}" for _, row in ends.iterrows()]
    return [f"{figures['value'].mean():.1f}", *shown]


def _sts(rows: pd.DataFrame) -> str:
    sets = list(rows["item"].unique())
    places = [(name, subset, "pearson") for name in sets for subset in _SUBSETS]
    lines = []
    for recipe, own in rows.groupby("recipe", sort=False):
        figures = own.set_index(["item", "variant", "metric"])
        cells = [_score(figures.loc[p], 3) if p in figures.index else "–" for p in places]
        lines.append([f"`{recipe}`", *cells])
    return _table(
        "Sentence similarity: Pearson's correlation of cosines with human scores. Unseen are the "
        "pairs of which no sentence is a training caption.",
        ["recipe", *(f"{name}{words}" for name in sets for words in _SUBSETS.values())],
        1,
        lines,
    )


def _alignment(rows: pd.DataFrame) -> str:
    lines = []
    for (recipe, pair), group in rows.groupby(["recipe", "item"], sort=False):
        by_method = group.set_index("variant")
        cells = [_score(by_method.loc[method]) for method in ("nearest_neighbour", "csls")]
        words, learnt = by_method["queries"].iloc[0], by_method["learnt"].iloc[0]
        shares = [f"{words:,}", "–" if np.isnan(learnt) else f"{learnt:.0f} %"]
        lines.append([f"`{recipe}`", _arrow(pair), *shares, *cells])
    return _table(
        "Words that find their translations, P@1 in %. Learnt are those whose translations were "
        "aligned in training.",
        ["recipe", "words of", "tested", "learnt", "nearest neighbour", "CSLS"],
        2,
        lines,
    )


def _folds(rows: pd.DataFrame) -> str:
    lines = []
    for (recipe, language), group in rows.groupby(["recipe", "item"], sort=False):
        figures = group.set_index(["variant", "metric"])
        cells = [
            _score(figures.loc[way, recall]) for way in DIRECTIONS for recall in METRICS[FOLDS]
        ]
        lines.append([f"`{recipe}`", language, *cells])
    return _table(
        "Large pools in folds, each ranked on its own: recalls in %.",
        [
            "recipe",
            "language",
            *(f"{way} R@{k}" for way in DIRECTIONS.values() for k in (1, 5, 10)),
        ],
        2,
        lines,
    )


def _translated(rows: pd.DataFrame) -> str:
    lines = []
    for (recipe, source, target), group in rows.groupby(["recipe", "item", "variant"], sort=False):
        figures = group.set_index("metric")
        cells = [_score(figures.loc[metric]) for metric in METRICS[TRANSLATED]]
        lines.append([f"`{recipe}`", f"{source}→{target}", *cells])
    return _table(
        "Captions that a machine translates into the language of the model and that query it.",
        ["recipe", "translated", "sum of recalls", "mean recall"],
        2,
        lines,
    )


_FORMS = {
    "translation": _translation,
    "sts": _sts,
    "alignment": _alignment,
    FOLDS: _folds,
    TRANSLATED: _translated,
}


def _table(title: str, header: list[str], labels: int, lines: list[list[str]]) -> str:
    if not lines:
        return ""
    rule = ["---"] * labels + ["---:"] * (len(header) - labels)
    return "\n".join([title, "", *map(table_line, [header, rule, *lines])]) + "\n"


def _score(row: pd.Series, decimals: int = 1) -> str:
    """Return a score with its standard deviation, if there is one, and its interval."""
    spread = "" if np.isnan(row["sd"]) else f" ± {row['sd']:.{decimals}f}"
    bounds = "–".join(f"{row[bound]:.{decimals}f}" for bound in ("low", "high"))
    return f"{row['value']:.{decimals}f}{spread} ({bounds})"


def _arrow(pair: str) -> str:
    return pair.replace("-", "→")
