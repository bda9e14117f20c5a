"""Our scores of the other tasks beside those that papers print (published.csv of a study)."""

import pandas as pd

from pipeline_lib.reporting.published import WAYS
from pipeline_lib.reporting.summary import table_line
from pipeline_lib.reporting.tables import Table
from pipeline_lib.reporting.tasks import FOLDS, KEY, TRANSLATED

_STS = "sts_pearson_"
_FIGURES = {
    # §7.1 of Kádár et al. 2019: the translation alone is right.
    "translation_retrieval": ("translation", "exact", "r1"),
    "sts": ("sts", "all", "pearson"),
    # Mohammadshahi et al. 2019 state no retrieval rule; this is the plain one.
    "alignment": ("alignment", "nearest_neighbour", "p1"),
    # Kim et al. 2020, table 4b: into English.
    "translated_query_retrieval": (TRANSLATED, "en", "mean_recall"),
}
"""Task, variant and metric of the summary by the task of published.csv."""

_WORDS = {
    "translation_retrieval": "translation retrieval, exact",
    "sts": "sentence similarity",
    "alignment": "word translation",
    "reranking": "re-ranked translations",
}
"""Tasks that papers print on other data than ours, as :func:`printed_table` names them."""

_FOLDS = "retrieval_5x1k"
_DIRECTIONS = {short: way for way, short in WAYS.items()}


def tasks_beside_published(table: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """Return the figures of the other tasks with what papers print for them.

    Args:
        table: Of tasks.task_table.
        published: Of published.read_published.

    Returns:
        ``table`` with ``source``, ``tables``, ``published`` and ``difference``, ours less theirs;
        empty where nothing is printed.
    """
    printed = _printed(published[published["run_by"] == "authors"])
    joined = table.merge(_once(printed, KEY), on=KEY, how="left", validate="1:1")
    return joined.assign(difference=joined["value"] - joined["published"])


def published_task_markdown(table: pd.DataFrame, published: pd.DataFrame) -> str:
    """Return, as Markdown, the printed figures of recipes that ran, and what papers quote beside.

    Args:
        table: Of :func:`tasks_beside_published`.
        published: Of published.read_published.

    Returns:
        The table, or an empty text if no figure is printed.
    """
    ours = table.dropna(subset="published")
    if ours.empty:
        return ""
    header = ["recipe", "figure", "ours", "printed", "difference", "by"]
    lines = [header, ["---"] * 2 + ["---:"] * 3 + ["---"]]
    for _, row in ours.iterrows():
        decimals = _decimals(row["task"])
        numbers = [f"{row[name]:.{decimals}f}" for name in ("value", "published")]
        numbers.append(f"{row['difference']:+.{decimals}f}")
        by = f"{row['source']}, table {row['tables']}"
        lines.append([f"`{row['recipe']}`", _name(row), *numbers, by])
    for _, row in _quoted(ours, published).iterrows():
        by = f"{row['quoted_from']}, by {row['source']}, table {row['tables']}"
        value = f"{row['published']:.{_decimals(row['task'])}f}"
        lines.append([row["row"], _name(row), "–", value, "–", by])
    return "\n".join(map(table_line, lines)) + "\n"


def printed_table(published: pd.DataFrame) -> Table:
    """Return what papers print for these tasks, to stand near our figures on other data.

    Args:
        published: Of published.read_published.
    """
    known = published[published["task"].isin(_WORDS)].drop_duplicates(["row", "metric", "language"])
    groups = known.groupby(["task", "source", "table", "row", "quoted_from"], sort=False)
    rows = [
        [
            _WORDS[task],
            row,
            f"{quoted_from}, by {source}, {table}" if quoted_from else f"{source}, {table}",
            ", ".join(_cell(line) for _, line in figures.iterrows()),
        ]
        for (task, source, table, row, quoted_from), figures in groups
    ]
    rows.sort(key=lambda cells: [*_WORDS.values()].index(cells[0]))
    title = "What the papers print for the other tasks"
    return Table("printed", title, ["task", "row", "paper, table", "figures"], rows, labels=4)


def _cell(line: pd.Series) -> str:
    """Return a printed figure with its name."""
    if line["task"] == "sts":
        return f"sts{line['metric'].removeprefix(_STS)} {line['value']:.3f}"
    if line["task"] == "reranking":
        return f"{line['metric'].upper()} {line['value']:.1f}"
    return f"{line['language'].replace('-', '→')} {line['value']:.1f}"


def _printed(published: pd.DataFrame) -> pd.DataFrame:
    """Return the figures of the other tasks, named as the summary names them."""
    folds = (published["task"] == _FOLDS) & published["metric"].str.match("(i2t|t2i)_r")
    known = published[published["task"].isin(_FIGURES) | folds]
    sets = "sts" + known["metric"].str.removeprefix(_STS)
    names = [_figure(*pair) for pair in zip(known["task"], known["metric"], strict=True)]
    figures = pd.DataFrame(names, index=known.index, columns=["task", "variant", "metric"])
    return known.assign(
        **figures,
        item=known["language"].where(known["task"] != "sts", sets),
        published=known["value"],
    )


def _figure(task: str, metric: str) -> tuple[str, str, str]:
    """Return task, variant and metric of the summary; published.csv writes ``i2t_r1`` for folds."""
    if task != _FOLDS:
        return _FIGURES[task]
    way, recall = metric.split("_")
    return FOLDS, _DIRECTIONS[way], recall


def _once(printed: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Return a row per figure: one that several tables print is the same in all of them."""
    groups = printed.groupby(keys, sort=False, as_index=False)
    return groups.agg(
        source=("source", "first"),
        tables=("table", lambda numbers: ", ".join(dict.fromkeys(numbers))),
        published=("published", "first"),
    )


def _quoted(ours: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """Return what the same papers quote from others for the same figures."""
    quoted = _printed(published[published["run_by"] == "quoted"])
    figure = ["source", "task", "item", "variant", "metric"]
    same = pd.MultiIndex.from_frame(quoted[figure]).isin(pd.MultiIndex.from_frame(ours[figure]))
    keys = ["quoted_from", "row", "source", *KEY[1:]]
    groups = quoted[same].groupby(keys, sort=False, as_index=False)
    return groups.agg(tables=("table", "first"), published=("published", "first"))


def _name(row: pd.Series) -> str:
    recall = f" R@{row['metric'][1:]}" if row["task"] == FOLDS else ""
    return f"{row['task']} {row['item']}, {row['variant'].replace('_', ' ')}{recall}"


def _decimals(task: str) -> int:
    return 3 if task == "sts" else 1
