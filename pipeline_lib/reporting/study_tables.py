"""Tables of what a study trained: models and how they grow, pseudopairs, translators."""

from collections.abc import Iterator, Mapping, Sequence

import pandas as pd

from pipeline_lib.contract.reports import RECALL_SUM, best_validation
from pipeline_lib.reporting.comparisons import bounded, signed
from pipeline_lib.reporting.table import NOTHING, Table, mean_cell, number
from pipeline_lib.settings.recipes import Recipe

_ENDS = {"stalled": "validation", "cap": "most epochs"}
"""Of training.loop.Course: what ended a seed."""

_QUALITY = ("bleu", "ter", "chrf", "meteor")
"""Scores of translations, in the order of their columns."""


def model_table(
    recipes: Mapping[str, Recipe],
    training: Mapping[str, pd.DataFrame],
    models: Mapping[str, dict],
) -> Table:
    """Return what each recipe trained: its size, updates, best weights, and what ended it."""
    header = ["recipe", "paper", "languages", "arithmetic", "parameters", "in words"]
    header += ["updates", "best validation at", "epochs", "schedule", "ended by"]
    rows = []
    for name, recipe in recipes.items():
        model = models.get(name, {})
        sizes = model.get("parameters", {})
        trained_in = model.get("precision", NOTHING)
        if isinstance(trained_in, Mapping):  # by seed
            trained_in = ", ".join(trained_in[seed] for seed in sorted(trained_in, key=int))
        cells = [name, recipe.paper, " ".join(recipe.languages), trained_in]
        cells += [number(sizes.get(part, float("nan")) / 1e6, ".2f") for part in ("all", "words")]
        cells += _training_cells(training.get(name), recipe.select_by)
        # Seeds that were trained before their end was written down ended by another rule, perhaps.
        ends = model.get("ended", {})
        ended = [_ENDS[ends[seed]] for seed in sorted(ends, key=int)]  # as in the cells beside
        rows.append([*cells, recipe.schedule if ended else NOTHING, ", ".join(ended) or NOTHING])
    title = (
        "Models: parameters in millions, updates, the update whose weights were kept, and what "
        "ended each seed: validation that had stalled, or max_epochs"
    )
    return Table("models", title, header, rows, labels=4)


def growth_table(growth: Mapping[str, pd.DataFrame]) -> Table | None:
    """Return the validation sums of recipes that learnt from fewer photos, or languages."""
    languages = [*dict.fromkeys(each for table in growth.values() for each in table["language"])]
    rows = []
    for name, table in growth.items():
        for (photos, count), found in table.groupby(["photos", "languages"]):
            sums = found.groupby("language")[RECALL_SUM].mean().reindex(languages)
            cells = [f"{photos:,}", f"{count}", f"{found['seed'].nunique()}"]
            rows.append([name, *cells, *map(number, sums)])
    header = ["recipe", "training photos", "languages", "seeds", *languages]
    title = "How recipes grow: sums of recalls on the validation photos, mean over seeds"
    return Table("growth", title, header, rows, labels=1) if rows else None


def pseudopair_table(reports: Mapping[str, dict]) -> Table | None:
    """Return one column per pseudopair set, with every number of its report."""
    numbers = pd.DataFrame({name: _numbers(report) for name, report in reports.items()})
    rows = [[key, *map(_count_or_share, row)] for key, *row in numbers.itertuples()]
    title = "Pseudopairs: shares of 1, or counts"
    return Table("pseudopairs", title, ["", *numbers], rows, labels=1) if rows else None


def _count_or_share(value: float) -> str:
    return number(value, ",.0f" if value > 1 else "g")


def translator_table(reports: Mapping[str, dict]) -> Table | None:
    """Return the quality of every translator's best translations, by split."""
    rows = [
        [
            name,
            split,
            f"{found['n_segments']:,}",
            *_scores(found),
            f"{report['updates']:,}",
            f"{report['pairs']['train']:,}",
        ]
        for name, report in reports.items()
        for split, found in sorted(report["quality"].items())
    ]
    header = ["translator", "split", "sentences", "BLEU", "TER", "chrF", "updates", "trained on"]
    title = "Translators: sacrebleu's BLEU, TER and chrF of the best translation of each sentence"
    return Table("translators", title, header, rows, labels=2) if rows else None


def reranking_table(reports: Mapping[str, dict]) -> Table | None:
    """Return the quality of the test translations that come first, and its bounds."""
    rows = [row for name, report in reports.items() for row in _reranked(name, report)]
    header = ["re-ranking", "ranked by", "seeds", "sentences", "BLEU", "TER", "chrF", "METEOR"]
    header += ["change of BLEU", "of TER", "of BLEU from the control"]
    title = (
        "N-best lists of the test split, ranked with weights that were tuned on val; changes from "
        "the translator's own choice, with intervals over seeds and sentences. Tokenised "
        "lower-case text"
    )
    return Table("rerankings", title, header, rows, labels=2) if rows else None


def _reranked(name: str, report: Mapping[str, dict]) -> Iterator[list[str]]:
    """Yield the rows of one re-ranking."""
    test, own = report["test"], report["control"]["weights"]
    seeds = [*test["reranked"].values()]
    sentences = f"{test['own']['n_segments']:,}"
    for key, words in (("own", "the translator"), ("control", f"control: its {', '.join(own)}")):
        meteor = number(test[key].get("meteor"))
        yield [name, words, NOTHING, sentences, *_scores(test[key]), meteor, *[NOTHING] * 3]
    features = next(iter(report["reranked"].values()))["weights"]
    added = ", ".join(feature for feature in features if feature not in own)
    means = [_mean([seed.get(key) for seed in seeds]) for key in _QUALITY]
    gains = [_gained(test[key]) for key in ("bleu_gain", "ter_gain", "bleu_gain_over_control")]
    yield [name, f"control and {added}", f"{len(seeds)}", sentences, *means, *gains]
    for key, words in (("random_bleu", "random choice"), ("oracle_bleu", "best choice (oracle)")):
        yield [name, words, NOTHING, sentences, f"{test[key]:.1f}", *[NOTHING] * 6]


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


def _numbers(report: Mapping[str, Mapping]) -> dict[str, float]:
    """Return the single numbers of a report by their readable names."""
    return {
        key.replace("_", " "): value
        for part in report.values()
        for key, value in part.items()
        if isinstance(value, int | float)
    }


def _scores(found: Mapping[str, object]) -> list[str]:
    """Return BLEU and TER with their intervals, and chrF."""
    cells = []
    for name in ("bleu", "ter"):
        low, high = found[f"{name}_interval"]
        cells.append(f"{found[name]:.1f} ({low:.1f}–{high:.1f})")
    return [*cells, f"{found['chrf']:.1f}"]


def _mean(scores: Sequence[float | None]) -> str:
    """Return the mean over seeds, and its deviation where there are two."""
    values = pd.Series(scores, dtype=float)
    return mean_cell(values.mean(), values.std())


def _gained(found: Mapping[str, object]) -> str:
    """Return a gain of reranking.gains, with its interval where there is one."""
    points, interval = found["difference"], found["interval"]
    return bounded(points, *interval) if interval else signed(points)
