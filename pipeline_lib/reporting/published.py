"""Our figures beside those that papers print, of which published.csv of a study tells."""

from collections.abc import Iterator, Mapping

import pandas as pd

from pipeline_lib.reporting.comparisons import signed
from pipeline_lib.reporting.figures import FIGURE, KEY, RECALLS, TRANSLATED
from pipeline_lib.reporting.summary import ARROWS
from pipeline_lib.reporting.table import NOTHING, Table, number

WAYS = {"i2t": "image_to_text", "t2i": "text_to_image"}
"""Directions by how published.csv begins their metrics."""

_WORDS = {
    "sentence_retrieval": "sentence retrieval, exact",
    "caption_retrieval": "sentence retrieval, first",
    "sts": "sentence similarity",
    "word_translation": "word translation",
    "reranking": "re-ranked translations",
}
"""Tasks that papers print on other data than ours, as :func:`printed_table` names them."""


def beside_published(figures: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """Return our figures that papers print, and what they quote from others beside them.

    Args:
        figures: Of figures.figures.
        published: Of contract.published.read_published.

    Returns:
        A row per source and figure: figures.KEY, ``value`` (ours), ``source``, ``tables``,
        ``published`` and ``difference``, ours less theirs. Rows that a paper quotes, in the same
        tables and for the same item, follow with the ``row``'s name as ``recipe`` and
        ``quoted_from``.
    """
    printed = _named_as_ours(published)
    authors = printed[printed["run_by"] == "authors"]
    ours = figures[[*KEY, "value"]].merge(_once(authors, ["source", *KEY]), on=KEY)
    ran = authors.merge(ours[["source", *KEY]])
    place = ["source", "table", "task", "item"]
    quoted = printed[printed["run_by"] == "quoted"].assign(recipe=lambda rows: rows["row"])
    quoted = quoted.merge(ran[place].drop_duplicates())
    together = pd.concat([ours, _once(quoted, ["quoted_from", "source", *KEY])])
    return together.assign(difference=together["value"] - together["published"])


def published_tables(joined: pd.DataFrame) -> Iterator[Table | None]:
    """Yield our figures beside the papers': one table of retrieval, one of the other tasks.

    Args:
        joined: Of :func:`beside_published`.
    """
    whole = (joined["task"] == "retrieval") & joined["variant"].isin(["", *ARROWS])
    yield _retrieval_table(joined[whole])
    yield _task_table(joined[~whole])


def _retrieval_table(joined: pd.DataFrame) -> Table | None:
    """Return our scores above those that papers print, and the differences."""
    columns = [
        *((way, metric) for way in ARROWS for metric in (*RECALLS, "median_rank")),
        ("", "sum_of_recalls"),
        ("", "mean_recall"),
    ]
    header = [f"{ARROWS[way]} {_words(metric)}" for way, metric in columns[:-2]]
    rows = []
    keys = ["source", "recipe", "item"]
    for (_, recipe, language), own in joined.groupby(keys, sort=False):
        by_figure = own.set_index(["variant", "metric"])
        places = dict.fromkeys(place for each in own["tables"] for place in each.split(", "))
        printed_in = _printed_in({**own.iloc[0], "tables": ", ".join(places)})
        for words, column, form in (
            ("ours", "value", ".1f"),
            (printed_in, "published", ".1f"),
            ("difference", "difference", "+.1f"),
        ):
            known = by_figure[column].to_dict()
            cells = [_cell_of(known.get(figure), form) for figure in columns]
            if set(cells) != {NOTHING}:
                rows.append([recipe, language, words, *cells])
    title = "Our scores, the papers' own, and ours less theirs"
    names = ["recipe", "language", "figures", *header, "sum of recalls", "mean recall"]
    return Table("published", title, names, rows, labels=3) if rows else None


def _task_table(joined: pd.DataFrame) -> Table | None:
    rows = []
    for _, row in joined.iterrows():
        form = ".3f" if row["task"] == "sts" else ".1f"
        metric = f" {_words(row['metric'])}" if row["metric"] in RECALLS else ""
        words = [row["task"], row["item"], row["variant"] + metric]
        cells = [number(row[name], form) for name in ("value", "published")]
        cells.append(_cell_of(row["difference"], f"+{form}"))
        shown = [word.replace("_", " ") for word in words]
        rows.append([row["recipe"], *shown, _printed_in(row), *cells])
    header = ["recipe", "task", "of", "variant", "printed in", "ours", "theirs", "difference"]
    title = "The other tasks: our figures, the papers' own, and ours less theirs"
    return Table("published_tasks", title, header, rows, labels=5) if rows else None


def _cell_of(value: float | None, form: str) -> str:
    signs = form.startswith("+") and not pd.isna(value)
    return signed(value, form) if signs else number(value, form)


def _words(metric: str) -> str:
    return f"R@{metric[1:]}" if metric in RECALLS else metric.replace("_", " ")


def _printed_in(row: Mapping[str, str]) -> str:
    place = f"{row['source']}, table {row['tables']}"
    return place if pd.isna(row["quoted_from"]) else f"{row['quoted_from']}, by {place}"


def printed_table(published: pd.DataFrame) -> Table:
    """Return what papers print for the other tasks, to stand near our figures on other data.

    Args:
        published: Of contract.published.read_published.
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
        return f"sts{line['metric'].removeprefix('sts_pearson_')} {line['value']:.3f}"
    if line["task"] == "reranking":
        return f"{line['metric'].upper()} {line['value']:.1f}"
    recall = f" {_words(line['metric'])}" if line["task"] == "caption_retrieval" else ""
    return f"{line['language'].replace('-', '→')}{recall} {line['value']:.1f}"


def _named_as_ours(published: pd.DataFrame) -> pd.DataFrame:
    """Return the printed figures that we measure too, named as figures.KEY names them."""
    columns = zip(published["task"], published["language"], published["metric"], strict=True)
    names = {row: _figure(*cells) for row, cells in zip(published.index, columns, strict=True)}
    known = {row: name for row, name in names.items() if name}
    figures = pd.DataFrame.from_dict(known, "index", columns=FIGURE)
    rest = published.loc[figures.index].drop(columns=["task", "metric"])
    return rest.join(figures)


def _figure(task: str, language: str, metric: str) -> tuple[str, str, str, str] | None:
    way, _, score = metric.partition("_")
    if task == "retrieval_5x1k":
        known = way in WAYS and score in RECALLS
        return ("retrieval", language, f"folds/{WAYS[way]}", score) if known else None
    if task == "retrieval" and way in WAYS:
        return task, language, WAYS[way], {"median": "median_rank"}.get(score, score)
    if task == "retrieval":
        return task, language, "", metric
    if task == "sentence_retrieval":  # ``exact_r1``
        return task, language, way, score
    if task == "caption_retrieval":
        # Table 5 of Mohammadshahi et al. 2019 does not say which are right: here any of the image.
        return "sentence_retrieval", language, "first", metric
    if task == "sts":  # ``sts_pearson_2014``
        score, year = score.split("_")
        return task, f"sts{year}", "all", score
    if task == "word_translation":
        # Mohammadshahi et al. 2019 state no retrieval rule; this is the plain one.
        return task, language, "nearest_neighbour", metric
    if task == TRANSLATED:  # table 4b of Kim et al. 2020: into English
        return task, f"{language}-en", "", metric
    return None


def _once(printed: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Return a row per figure: one that several tables print is the same in all of them."""
    groups = printed.groupby(keys, sort=False, as_index=False)
    return groups.agg(
        tables=("table", lambda numbers: ", ".join(dict.fromkeys(numbers))),
        published=("value", "first"),
        **({} if "quoted_from" in keys else {"quoted_from": ("table", lambda _: None)}),
    )
