"""Tables of figures: a row per recipe and item, a column per variant and metric."""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd

from pipeline_lib.contract.recalls import CUTOFFS
from pipeline_lib.evaluation.retrieval.sentences import PROTOCOLS
from pipeline_lib.reporting.figures import (
    APART,
    COUNTS,
    MIXED,
    ONE_CAPTION,
    RECALLS,
    TRANSLATED,
    retrieval_figures,
    tested_alike,
)
from pipeline_lib.reporting.summary import ARROWS
from pipeline_lib.reporting.table import Table, mean_cell, number

_KINDS = {"caption_length": "tokens", "rarest_word": "rarest word seen"}
_SUMS = "sum_of_recalls"


@dataclass(frozen=True)
class Column:
    """A column of figures.

    Attributes:
        header: Name of the column.
        variant: Of the figures (figures.KEY).
        metric: Of the figures.
        form: Format of the value, its deviation and its interval.
        ranked: The greatest of those that are compared stands out.
        interval: Whether deviation and interval are shown.
    """

    header: str
    variant: str
    metric: str
    form: str = ",.1f"
    ranked: bool = True
    interval: bool = True


def figure_tables(figures: pd.DataFrame, best: Sequence[tuple[str, str]]) -> Iterator[Table | None]:
    """Yield the tables of all tasks.

    Args:
        figures: Of figures.figures, with the ``dataset`` that each recipe is scored on.
        best: Recipe and language whose recalls by kind of caption are shown.
    """
    retrieval = retrieval_figures(figures)
    by_task = dict(list(figures.groupby("task", sort=False)))
    probes = by_task.get("probes", figures.iloc[:0])
    yield _paper_table(retrieval)
    yield _language_table("languages", _SUM_TITLE, retrieval)
    yield _table(
        "retrieval",
        "Image–text retrieval: the sum of recalls with its interval, recalls in %",
        ["recipe", "language"],
        [
            Column("sum of recalls", "", _SUMS),
            *_both_ways("", interval=False),
            *(
                Column(f"{arrow} median rank", way, "median_rank", interval=False, ranked=False)
                for way, arrow in ARROWS.items()
            ),
        ],
        retrieval,
    )
    yield _table(
        "folds",
        "Image–text retrieval in folds of large pools, each ranked on its own: recalls in %",
        ["recipe", "language"],
        _both_ways("folds/"),
        figures[figures["variant"].str.startswith("folds/")],
    )
    if ONE_CAPTION in by_task:
        yield _one_caption_table(by_task[ONE_CAPTION])
    for task, (title, labels, columns) in _TASKS.items():
        if task in by_task:
            yield _table(task, title, labels, columns, by_task[task])
    if MIXED in by_task:
        yield _mixed_table(by_task[MIXED])
    yield _hub_table(probes)
    yield _kind_table(probes, best)
    for task in sorted(by_task.keys() - {*_TASKS, ONE_CAPTION, *APART}):
        yield _plain_table(str(task), by_task[task])


def _both_ways(prefix: str, interval: bool = True) -> list[Column]:
    return [
        Column(f"{arrow} R@{recall[1:]}", f"{prefix}{way}", recall, interval=interval)
        for way, arrow in ARROWS.items()
        for recall in RECALLS
    ]


_TASKS: dict[str, tuple[str, list[str], list[Column]]] = {
    "consistency": (
        "Consistency between languages: the share in % of the ten nearest images that two captions "
        "of an image have in common, and Spearman's correlation of the ranks of their image",
        ["recipe", "languages"],
        [
            Column("overlap %", "", "overlap"),
            Column("rank correlation", "", "rank_correlation", ".3f"),
            Column("images", "", "n_queries", ",.0f", False, False),
        ],
    ),
    "sentence_retrieval": (
        "Sentences that find one of the same image (first) or their own translation (exact): "
        "recalls in %",
        ["recipe", "languages"],
        [
            Column(f"{protocol} {header}", protocol, metric)
            for protocol in PROTOCOLS
            for header, metric in (*((f"R@{r[1:]}", r) for r in RECALLS), ("sum", _SUMS))
        ]
        + [
            Column(f"{protocol} queries", protocol, "n_queries", ",.0f", False, False)
            for protocol in PROTOCOLS
        ],
    ),
    "sts": (
        "Sentence similarity: correlation of cosines with human scores; unseen are pairs of which "
        "no sentence is a training caption",
        ["recipe", "set"],
        [
            Column(f"{words}{header}", subset, metric, form, *[form == ".3f"] * 2)
            for subset, words in (("without_overlap", "unseen "), ("all", ""))
            for header, metric, form in (
                ("Pearson", "pearson", ".3f"),
                ("Spearman", "spearman", ".3f"),
                ("pairs", "n_pairs", ",.0f"),
            )
        ],
    ),
    "word_translation": (
        "Word translation: precision in %; learnt: share of tested words that training aligned",
        ["recipe", "languages"],
        [
            *(
                Column(f"{words} P@{k}", method, f"p{k}")
                for method, words in (("nearest_neighbour", "nearest"), ("csls", "CSLS"))
                for k in CUTOFFS
            ),
            Column("words", "csls", "n_queries", ",.0f", False, False),
            Column("candidates", "csls", "n_candidates", ",.0f", False, False),
            Column("learnt %", "", "learnt", ",.1f", False, False),
        ],
    ),
    TRANSLATED: (
        "Captions that a machine translates into the model's language and that query it: recalls "
        "in %",
        ["recipe", "translated"],
        [
            *_both_ways(""),
            Column("sum of recalls", "", _SUMS),
            Column("mean recall", "", "mean_recall"),
        ],
    ),
}
"""Title, labels and columns of each task with one plain table."""


_SUM_TITLE = (
    "Sum of R@1, R@5 and R@10 in both directions, in %, ± its standard deviation over seeds, "
    "and its interval over seeds and images (one seed: images)"
)


def _paper_table(retrieval: pd.DataFrame) -> Table | None:
    """Return the recipes that are the best of their paper in a language of the main data set."""
    sums = retrieval[retrieval["metric"] == _SUMS]
    sums = sums[sums["dataset"].isin(sums["dataset"].mode()[:1])]
    best = sums["value"] == sums.groupby(["paper", "item"])["value"].transform("max")
    shown = sums["recipe"].isin(sums.loc[best, "recipe"])
    return _language_table("papers", f"The best recipes of each paper. {_SUM_TITLE}", sums[shown])


def _language_table(name: str, title: str, retrieval: pd.DataFrame) -> Table | None:
    sums = retrieval[retrieval["metric"] == _SUMS]
    columns = [Column(language, language, _SUMS) for language in sums["item"].unique()]
    rows = sums.assign(variant=sums["item"], item="")
    return _table(name, title, ["recipe"], columns, rows)


def _one_caption_table(figures: pd.DataFrame) -> Table | None:
    """Return the sums of recalls over one caption of the same images, by language."""
    sums = figures[figures["metric"] == _SUMS]
    languages = [name for name in sums["item"].unique() if name != "worst"]
    columns = [Column(name, name, _SUMS, ranked=False) for name in [*languages, "worst"]]
    title = (
        "Languages compared: one caption per image, of images with captions in all languages of a "
        "recipe, translations of one sentence where there are any. Sum of recalls in %"
    )
    rows = sums.assign(variant=sums["item"], item="")
    return _table(ONE_CAPTION, title, ["recipe"], columns, rows)


def _mixed_table(figures: pd.DataFrame) -> Table | None:
    firsts = figures.loc[figures["variant"] == "first_language", "metric"].unique()
    columns = [Column(f"I→T R@{recall[1:]}", "", recall) for recall in RECALLS]
    columns += [Column(f"first in {n} %", "first_language", n, ranked=False) for n in firsts]
    title = (
        "Images that search the captions of all languages at once: recalls in %, and the language "
        "of the first caption"
    )
    return _table("mixed", title, ["recipe", "languages"], columns, figures)


def _hub_table(figures: pd.DataFrame) -> Table | None:
    columns = [
        Column(f"{space}: {header}", f"hubness/{space}", metric, form, False)
        for space in ("images", "captions", "words")
        for header, metric, form in (
            ("skewness", "skewness", ".2f"),
            ("never a neighbour %", "unseen", ".1f"),
        )
    ]
    title = (
        "Hubs: skewness of how often a vector is a nearest neighbour by cosine, and the share of "
        "vectors that never are"
    )
    return _table("hubs", title, ["recipe", "language"], columns, figures)


def _kind_table(figures: pd.DataFrame, best: Sequence[tuple[str, str]]) -> Table | None:
    """Return recall by kind of caption, of the best recipe of each language."""
    kind = figures["variant"].str.extract("^(?P<kind>[^/]*)/?(?P<bin>.*)$")
    pairs = pd.MultiIndex.from_frame(figures[["recipe", "item"]])
    shown = kind["kind"].isin(_KINDS) & pairs.isin(best)
    words = kind["kind"].map(_KINDS) + " " + kind["bin"].map(_bin)
    rows = figures.assign(item=words, variant="", language=figures["item"])[shown]
    several = rows.groupby("language")["dataset"].transform("nunique") > 1
    rows["recipe"] = rows["language"] + (" · " + rows["dataset"]).where(several, "")
    columns = [Column(f"R@{recall[1:]}", "", recall, ranked=False) for recall in RECALLS]
    columns.append(Column("captions", "", "n_queries", ",.0f", False, False))
    title = (
        "Recalls of captions in %, by their length in tokens and by how often training saw their "
    )
    return _table("kinds", f"{title}rarest word", ["language", "captions"], columns, rows)


def _plain_table(task: str, figures: pd.DataFrame) -> Table | None:
    """Return the figures of a task that has no table of its own."""
    columns = [
        # Which of them is better the greater it is, nobody said.
        Column(
            f"{variant} {metric}".strip(),
            variant,
            metric,
            _form(metric, values["value"]),
            ranked=False,
        )
        for (variant, metric), values in figures.groupby(["variant", "metric"], sort=False)
    ]
    return _table(task, task.replace("_", " "), ["recipe", "item"], columns, figures)


def _form(metric: str, values: pd.Series) -> str:
    """Return how figures of an unknown kind are written: counts whole, shares of one finer."""
    if metric in COUNTS:
        return ",.0f"
    return ".3f" if (values.abs() <= 1).all() else ",.1f"


class _Cell(NamedTuple):
    """What a table needs of a figure."""

    dataset: str
    seeds: int
    value: float
    sd: float
    low: float
    high: float
    queries: float


def _table(
    name: str, title: str, labels: list[str], columns: Sequence[Column], figures: pd.DataFrame
) -> Table | None:
    key = ["recipe", "item", "variant", "metric"]
    cells = {
        row[: len(key)]: _Cell(*row[len(key) :])
        for row in figures[[*key, *_Cell._fields]].itertuples(index=False, name=None)
    }
    shown = {(column.variant, column.metric) for column in columns}
    entries = dict.fromkeys((r, i) for r, i, *rest in cells if tuple(rest) in shown)
    found = [
        [cells.get((*entry, column.variant, column.metric)) for column in columns]
        for entry in entries
    ]
    best = {
        (row, number)
        for number, column in enumerate(columns, start=len(labels) + 1)
        if column.ranked
        for row in _greatest([*entries], [line[number - len(labels) - 1] for line in found])
    }
    rows = [
        [*_named(entry)[: len(labels)], _seeds(line), *map(_written, line, columns)]
        for entry, line in zip(entries, found, strict=True)
    ]
    header = [*labels, "seeds", *(column.header for column in columns)]
    return Table(name, title, header, rows, len(labels), frozenset(best)) if rows else None


def _named(entry: tuple[str, str]) -> tuple[str, str]:
    recipe, item = entry
    return recipe, re.sub(r"^([a-z]{2,3})-([a-z]{2,3})$", r"\1→\2", item)


def _seeds(line: Sequence[_Cell | None]) -> str:
    return str(next(cell.seeds for cell in line if cell))


def _written(cell: _Cell | None, column: Column) -> str:
    if cell is None:
        return number(None)
    if not column.interval:
        return number(cell.value, column.form)
    bounds = ""
    if not np.isnan(cell.low):
        bounds = f" ({cell.low:{column.form}}–{cell.high:{column.form}})"
    return mean_cell(cell.value, cell.sd, column.form) + bounds


def _greatest(entries: Sequence[tuple[str, str]], cells: Sequence[_Cell | None]) -> Iterator[int]:
    """Yield the entries with the greatest value of those of the same data set and item."""
    compared = defaultdict(list)
    for row, ((_, item), cell) in enumerate(zip(entries, cells, strict=True)):
        if cell is not None:
            compared[cell.dataset, item].append((row, cell))
    for scores in compared.values():
        alike = _of_same_photos(scores)
        if len(alike) > 1:
            greatest = max(cell.value for _, cell in alike)
            yield from (row for row, cell in alike if cell.value == greatest)


def _of_same_photos(scores: Sequence[tuple[int, _Cell]]) -> list[tuple[int, _Cell]]:
    """Return those that can be compared: more than half, tested alike; none if there are not.

    Others are of other photos, or of other words or pairs, which training captions left unseen.
    """
    tested = np.nan_to_num([cell.queries for _, cell in scores])
    groups = (
        [
            entry
            for entry, n in zip(scores, tested, strict=True)
            if n <= most and tested_alike([n, most])
        ]
        for most in tested
    )
    alike = max(groups, key=len)
    return alike if 2 * len(alike) > len(scores) else []


def _bin(label: str) -> str:
    """Return a bin of probes.recalls_by_bin as it is read; its highest is open."""
    low, _, high = label.partition("-")
    return label.replace("-", "–") if high or low == label else f"≥ {low}"
