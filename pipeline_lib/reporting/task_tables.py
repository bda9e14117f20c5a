"""The tables of the other tasks: sentences against sentences, STS, word alignment, probes.

A score is the mean over a recipe's seeds, and so are the bounds of its interval.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pipeline_lib.reporting.reports import Reports
from pipeline_lib.reporting.study_tables import NOTHING
from pipeline_lib.reporting.summary import DIRECTIONS
from pipeline_lib.reporting.tables import Table
from pipeline_lib.reporting.tasks import PROTOCOLS

Entry = tuple[str, str, Mapping[str, object]]
"""Recipe, what it is compared in, and its scores."""


@dataclass(frozen=True)
class Column:
    """A column of numbers: where a score stands in an entry, and how it is written.

    Attributes:
        header: Name of the column.
        path: Keys that lead to the score; its bounds, if any, stand beside it.
        decimals: So many are written.
        ranked: The greatest of those that are compared stands out.
    """

    header: str
    path: tuple[str, ...]
    decimals: int = 1
    ranked: bool = True


def translation_table(reports: Reports) -> Table | None:
    """Return retrieval of sentences by sentences of another language, by protocol."""
    columns = [
        Column(f"{protocol} {header}", (protocol, key))
        for protocol in PROTOCOLS
        for header, key in (*_RECALLS, ("sum", "sum_of_recalls"))
    ]
    entries = [
        (recipe, pair, {protocol: found.get(pair, {}) for protocol, found in scores.items()})
        for recipe, scores in _means(reports)
        for pair in dict.fromkeys(pair for found in scores.values() for pair in found)
    ]
    title = (
        "Sentences that find one of the same image (first) or their own translation (exact): "
        "recalls in %"
    )
    return _table("translation", title, ["recipe", "languages"], columns, entries)


def fold_table(reports: Reports) -> Table | None:
    """Return image-text retrieval in folds of large pools (tasks.fold_reports)."""
    title = "Image–text retrieval in folds, each ranked on its own: recalls in %"
    return _table("folds", title, ["recipe", "language"], _both_ways(), _entries(reports))


def mixed_table(reports: Reports) -> Table | None:
    """Return image-to-text retrieval among the captions of all languages (of retrieval reports)."""
    means = {
        name: mean_over_seeds(list(report["mixed"].values()))
        for name, report in reports.items()
        if "mixed" in report
    }
    entries = [(name, " ".join(found["first_language"]), found) for name, found in means.items()]
    languages = dict.fromkeys(name for _, _, found in entries for name in found["first_language"])
    columns = [Column(f"I→T {header}", (key,)) for header, key in _RECALLS]
    columns += [
        Column(f"first in {name} %", ("first_language", name), ranked=False) for name in languages
    ]
    title = (
        "Images that search the captions of all languages at once: recalls in %, and the language"
    )
    return _table(
        "mixed", f"{title} of the first caption", ["recipe", "languages"], columns, entries
    )


def translated_query_table(reports: Reports) -> Table | None:
    """Return retrieval by captions that a machine translates into the model's language."""
    columns = [*_both_ways(), Column("sum of recalls", ("sum_of_recalls",))]
    entries = [
        (
            report["recipe"],
            f"{report['source_language']}→{report['target_language']}",
            mean_over_seeds(list(report["per_seed"].values())),
        )
        for report in reports.values()
    ]
    title = "Captions that are translated into the model's language and query it: recalls in %"
    return _table("translated_queries", title, ["recipe", "translated"], columns, entries)


def sts_table(reports: Reports) -> Table | None:
    """Return the correlation of cosines with human scores of sentence pairs."""
    columns = [
        Column(f"{words}{header}", (subset, key), decimals, ranked=decimals > 0)
        for subset, words in (("all", ""), ("without_overlap", "unseen "))
        for header, key, decimals in (
            ("Pearson", "pearson", 3),
            ("Spearman", "spearman", 3),
            ("pairs", "n_pairs", 0),
        )
    ]
    title = "Sentence similarity: correlation with the given scores; unseen are pairs of which no "
    return _table(
        "sts",
        f"{title}sentence is a training caption",
        ["recipe", "set"],
        columns,
        _entries(reports),
    )


def alignment_table(reports: Reports) -> Table | None:
    """Return how precisely words find their translations."""
    columns = [
        Column(f"{words} P@{k}", (method, f"p{k}"))
        for method, words in (("nearest_neighbour", "nearest"), ("csls", "CSLS"))
        for k in (1, 5, 10)
    ]
    columns += [
        Column(header, ("csls", key), decimals=0, ranked=False)
        for header, key in (("words", "n_queries"), ("candidates", "n_candidates"))
    ]
    learnt = {recipe: {"learnt": report.get("learnt")} for recipe, report in reports.items()}
    columns.append(Column("learnt %", ("learnt",), ranked=False))
    entries = [(name, pair, {**found, **learnt[name]}) for name, pair, found in _entries(reports)]
    title = "Word translation: precision in %; learnt are tested words that training aligned"
    return _table("alignment", title, ["recipe", "languages"], columns, entries)


def hub_table(reports: Reports) -> Table | None:
    """Return how uneven neighbourhoods are."""
    columns = [
        Column(f"{space}: {header}", ("hubness", space, key), decimals, ranked=False)
        for space in ("images", "captions", "words")
        for header, key, decimals in (("skewness", "skewness", 2), ("never near %", "unseen", 1))
    ]
    title = "Hubs: skewness of how often a vector is among the nearest, and the share that never is"
    return _table("hubs", title, ["recipe", "language"], columns, _entries(reports))


def kind_table(reports: Reports, best: Sequence[tuple[str, str]]) -> Table | None:
    """Return recall by kind of caption, of the best recipe of each language."""
    scores = {(recipe, language): found for recipe, language, found in _entries(reports)}
    entries = [
        (language, f"{words} {_bin(label)}", found)
        for recipe, language in best
        for kind, words in _KINDS
        for label, found in scores.get((recipe, language), {}).get(kind, {}).items()
    ]
    columns = [Column(header, (key,), ranked=False) for header, key in _RECALLS]
    columns.append(Column("captions", ("n_queries",), decimals=0, ranked=False))
    title = "Captions that find their image, by tokens and by how often training saw their rarest "
    return _table("kinds", f"{title}word: recalls in %", ["language", "captions"], columns, entries)


_KINDS = (("caption_length", "tokens"), ("rarest_word", "rarest word seen"))
_RECALLS = (("R@1", "r1"), ("R@5", "r5"), ("R@10", "r10"))


def _both_ways() -> list[Column]:
    return [
        Column(f"{arrow} {header}", (way, key))
        for way, arrow in DIRECTIONS.items()
        for header, key in _RECALLS
    ]


def mean_over_seeds(trees: Sequence[object]) -> object:
    """Return the mean of equal trees of numbers, leaf by leaf; what one lacks is left out."""
    first = trees[0]
    if isinstance(first, Mapping):
        shared = [key for key in first if all(key in tree for tree in trees)]
        return {key: mean_over_seeds([tree[key] for tree in trees]) for key in shared}
    return np.mean(trees, axis=0)


def _means(reports: Reports) -> Iterator[tuple[str, dict]]:
    """Yield the mean scores of each recipe that the task concerns."""
    for recipe, report in reports.items():
        if "reason" not in report:
            yield recipe, mean_over_seeds(list(report["per_seed"].values()))


def _entries(reports: Reports) -> list[Entry]:
    return [(name, key, found) for name, means in _means(reports) for key, found in means.items()]


def _table(
    name: str, title: str, labels: list[str], columns: list[Column], entries: Sequence[Entry]
) -> Table | None:
    if not entries:
        return None
    rows = [[recipe, key, *(_cell(found, c) for c in columns)] for recipe, key, found in entries]
    best = {
        (row, number)
        for number, column in enumerate(columns, start=2)
        if column.ranked
        for row in _greatest(entries, column.path)
    }
    header = [*labels, *(column.header for column in columns)]
    return Table(name, title, header, rows, labels=2, best=frozenset(best))


def _bin(label: str) -> str:
    """Return a bin of probes.recalls_by_bin as it is read; its outer ones are open."""
    low, dash, high = label.partition("-")
    if not dash or (low and high):
        return label.replace("-", "–")
    return f"≤ {high}" if high else f"≥ {low}"


def _greatest(entries: Sequence[Entry], path: tuple[str, ...]) -> Iterator[int]:
    """Yield the entries with the greatest score of those in the same language or set."""
    compared = defaultdict(list)
    for row, (_, key, found) in enumerate(entries):
        value = _score(found, path)
        if not np.isnan(value):
            compared[key].append((row, value, _tested(found, path)))
    for scores in compared.values():
        alike = _tested_alike(scores)
        if len(alike) > 1:
            greatest = max(value for _, value in alike)
            yield from (row for row, value in alike if value == greatest)


def _tested(found: Mapping[str, object], path: tuple[str, ...]) -> float:
    """Return how many queries or pairs a score is of."""
    numbers = (_score(found, (*path[:-1], name)) for name in ("n_queries", "n_pairs"))
    return next((number for number in numbers if not np.isnan(number)), 0)


def _tested_alike(scores: Sequence[tuple[int, float, float]]) -> list[tuple[int, float]]:
    """Return rows and scores that can be compared; none if they are of other words or pairs.

    One that is of less than half as many as another is of other photos. What training captions
    leave to be tested may differ by a tenth.
    """
    most = max(tested for *_, tested in scores)
    rest = [entry for entry in scores if entry[2] >= most / 2]
    if min(tested for *_, tested in rest) < 0.9 * most:
        return []
    return [(row, value) for row, value, _ in rest]


def _cell(found: Mapping[str, object], column: Column) -> str:
    value = _score(found, column.path)
    if np.isnan(value):
        return NOTHING
    *way, last = column.path
    bounds = _at(found, (*way, f"{last}_interval"))
    form = f",.{column.decimals}f"
    interval = f" ({bounds[0]:{form}}–{bounds[1]:{form}})" if bounds is not None else ""
    return f"{value:{form}}{interval}"


def _score(found: Mapping[str, object], path: tuple[str, ...]) -> float:
    value = _at(found, path)
    return float("nan") if value is None else float(value)


def _at(found: object, path: tuple[str, ...]) -> object:
    for key in path:
        found = found.get(key) if isinstance(found, Mapping) else None
    return found
