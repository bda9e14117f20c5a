"""The report of a study: one HTML page that loads nothing from anywhere."""

from collections.abc import Iterable, Iterator, Sequence
from xml.etree.ElementTree import Element

import pandas as pd

from pipeline_lib.reporting.comparisons import comparison_tables
from pipeline_lib.reporting.curves import (
    alignment_charts,
    beta_charts,
    language_charts,
    training_charts,
)
from pipeline_lib.reporting.gallery import Shown, language_gallery, queries_each
from pipeline_lib.reporting.graph import draw_graph, stage_graph
from pipeline_lib.reporting.markup import Child, block, code, document, element, paragraph, span
from pipeline_lib.reporting.results import Results
from pipeline_lib.reporting.study_tables import (
    language_table,
    model_table,
    pseudopair_table,
    published_table,
    published_task_table,
    retrieval_table,
)
from pipeline_lib.reporting.style import STYLE
from pipeline_lib.reporting.svg import bar_chart, interval_chart
from pipeline_lib.reporting.tables import FILES, Table, html_table
from pipeline_lib.reporting.task_tables import (
    alignment_table,
    fold_table,
    hub_table,
    kind_table,
    mixed_table,
    sts_table,
    translated_query_table,
    translation_table,
)
from pipeline_lib.reporting.tasks import fold_reports
from pipeline_lib.reporting.translator_tables import reranking_table, translator_table
from pipeline_lib.reporting.verdicts import LANGUAGES, chance, estimate, evidence, sentence

Section = tuple[str, str, list[Child]]
"""Its anchor, its heading and what it holds."""


def report_page(results: Results, shown: Sequence[Shown | None]) -> str:
    """Return the report of a study as HTML.

    Args:
        results: What has been measured.
        shown: Of results.read_shown, for the gallery.
    """
    datasets = ", ".join(dict.fromkeys(results.summary["dataset"]))
    title = f"Polyview: {datasets}"
    sections = [section for section in _sections(results, shown) if section[2]]
    body: list[Child] = [element("header", {}, _opening(results, datasets, sections))]
    for anchor, heading, children in sections:
        content = [element("h2", {}, [heading]), *children]
        body.append(element("section", {"id": anchor}, content))
    return document("en", title, STYLE, [element("main", {}, body)])


def report_tables(results: Results) -> list[Table]:
    """Return every table of the report."""
    best = [(str(verdict.best["recipe"]), verdict.language) for verdict in results.verdicts]
    tables = [
        retrieval_table(results.summary),
        *comparison_tables(results.comparisons, results.settings.evaluations),
        fold_table(fold_reports(results.tasks["retrieval"])),
        language_table(results.summary),
        mixed_table(results.tasks["retrieval"]),
        published_table(results.compared),
        published_task_table(results.compared_tasks),
        model_table(results.recipes, results.training, results.models),
        pseudopair_table(results.pseudopairs) if results.pseudopairs else None,
        translation_table(results.tasks["translation"]),
        sts_table(results.tasks["sts"]),
        alignment_table(results.tasks["alignment"]),
        hub_table(results.tasks["probes"]),
        kind_table(results.tasks["probes"], best),
        translator_table(results.translators),
        reranking_table(results.rerankings),
        translated_query_table(results.translated_queries),
    ]
    return [table for table in tables if table]


def _opening(results: Results, datasets: str, sections: list[Section]) -> Iterator[Element]:
    summary, settings = results.summary, results.settings.evaluations.retrieval
    images = sorted({int(n) for n in summary["image_to_text_n_queries"]})
    papers = len(set(summary["paper"]))
    scored = summary["recipe"].nunique()
    yield element("p", {"class": "eyebrow"}, [f"Polyview · {datasets}"])
    yield element("h1", {}, ["Which model matches images and captions best?"])
    yield element(
        "p",
        {"class": "lead"},
        [
            f"{scored} recipes of {papers} papers, scored on "
            f"{' or '.join(f'{n:,}' for n in images)} {settings.split} images. The score adds "
            "R@1, R@5 and R@10 in both directions: 600 is perfect, a blind guess gets "
            f"{_chances(summary)}. {_certain(results)}"
        ],
    )
    items = []
    for verdict in results.verdicts:
        children = [
            span("language", _language(verdict.best, summary)),
            span("score", f"{verdict.best['sum_of_recalls']:.1f}"),
            block(
                "claim",
                paragraph(*sentence(verdict)),
                element("p", {"class": "note"}, [evidence(verdict, settings.confidence)]),
            ),
        ]
        items.append(element("li", {}, children))
    yield element("ul", {"class": "verdicts"}, items)
    links = [element("a", {"href": f"#{anchor}"}, [heading]) for anchor, heading, _ in sections]
    yield element("nav", {"aria-label": "Sections"}, links)


def _sections(results: Results, shown: Sequence[Shown | None]) -> Iterator[Section]:
    tables = {table.name: table for table in report_tables(results)}

    def table(name: str) -> list[Child]:
        return _table(tables[name]) if name in tables else []

    yield "scores", "Scores", [*_score_charts(results), *table("retrieval"), *table("folds")]
    questions = [name for name in tables if name.startswith("comparison_")]
    yield "questions", "Questions", [child for name in questions for child in table(name)]
    yield "published", "Beside the papers", [*table("published"), *table("published_tasks")]
    yield "beta", "Weight of the image", _panels(beta_charts(results))
    yield (
        "languages",
        "Languages",
        [*table("languages"), *_panels(language_charts(results)), *table("mixed")],
    )
    yield (
        "sentences",
        "Sentences and words",
        [
            *table("translation"),
            *table("sts"),
            *table("alignment"),
            *_panels(alignment_charts(results)),
        ],
    )
    yield "pseudopairs", "Pseudopairs", [*_reuse_charts(results), *table("pseudopairs")]
    yield (
        "machine",
        "Machine translation",
        [*table("translators"), *table("rerankings"), *table("translated_queries")],
    )
    yield "gallery", "What the best models find", _gallery(results, shown)
    yield "probes", "Hubs and hard captions", [*table("hubs"), *table("kinds")]
    yield "training", "Training", [*_training(results), *table("models")]
    yield "graph", "The graph", _graph(results)
    yield "method", "How it was measured", _method(results)


def _table(table: Table) -> list[Child]:
    first, *others = (code(f"metrics/tables/{table.name}.{ending}") for ending in FILES)
    files: list[Child] = ["Also as ", first]
    for file in others:
        files += [" and ", file]
    title = element("p", {"class": "title"}, [table.title])
    return [title, html_table(table), element("p", {"class": "files"}, files)]


def _panels(figures: Iterable[Element]) -> list[Child]:
    figures = list(figures)
    return [block("panels", *figures)] if figures else []


def _score_charts(results: Results) -> list[Child]:
    table = results.summary
    figures = []
    for (dataset, _), rows in table.groupby(["dataset", "language"], sort=False):
        same = table[table["dataset"] == dataset]
        low, high = same["sum_of_recalls_low"].min(), same["sum_of_recalls_high"].max()
        ranked = rows.sort_values("sum_of_recalls", ascending=False, kind="stable")
        best = ranked.iloc[0]["recipe"]
        estimates = [estimate(row, row["recipe"] == best) for _, row in ranked.iterrows()]
        name = _language(ranked.iloc[0], table)
        chart = interval_chart(f"Sum of recalls, {name}, by recipe", estimates, low, high)
        caption = element("figcaption", {}, [element("strong", {}, [name]), " · sum of recalls"])
        figures.append(element("figure", {}, [caption, chart]))
    confidence = 100 * results.settings.evaluations.retrieval.confidence
    note = f"Dots are means over seeds, lines {confidence:g} % bootstrap intervals over images."
    return [element("p", {"class": "note"}, [note]), *_panels(figures)]


def _reuse_charts(results: Results) -> list[Child]:
    figures = []
    for name, report in results.pseudopairs.items():
        counts = list(report["reuse"]["captions_by_uses"].items())
        words = " · captions by how often they are lent"
        caption = element("figcaption", {}, [code(name), words])
        chart = bar_chart(f"Captions of {name} by how often they are lent", counts)
        figures.append(element("figure", {}, [caption, chart]))
    return _panels(figures)


def _training(results: Results) -> list[Child]:
    words = (
        "Above, over updates, the sum of recalls on the validation captions: mean of the recipe's "
        "languages, a line per seed, a dot where its weights were kept. Below, the training loss."
    )
    panels = _panels(training_charts(results))
    return [element("p", {"class": "note"}, [words]), *panels] if panels else []


def _gallery(results: Results, shown: Sequence[Shown | None]) -> list[Child]:
    galleries = [(v, own) for v, own in zip(results.verdicts, shown, strict=True) if own]
    if not galleries:
        return []
    words = (
        "Queries that the best recipe of each language finds and misses (first seed), with the "
        "best right and the best wrong candidate. None is chosen by hand: those shown are spread "
        "evenly over all that were found, and over the ranks of all that were missed."
    )
    children: list[Child] = [paragraph(words)]
    for verdict, own in galleries:
        best = verdict.best["recipe"]
        others = "" if own.recipe == best else f" ({best} is better, but its queries are not here)"
        name = _language(verdict.best, results.summary)
        children += [element("h3", {}, [name, " · ", code(own.recipe), others])]
        children += [language_gallery(own, queries_each(len(galleries)))]
    return children


def _graph(results: Results) -> list[Child]:
    drawing = draw_graph(stage_graph(results.blocks, results.params))
    words = "A box is a stage with its number of instances, a line what one reads of another."
    note = [words, " Dashed: some instance comes first. ", code("dvc dag"), " draws all."]
    figure = element("figure", {"class": "graph"}, [element("figcaption", {}, note), drawing])
    return [figure]


def _method(results: Results) -> list[Child]:
    settings = results.settings.evaluations.retrieval
    return [
        paragraph(
            "Image → caption takes the best-ranked caption of the image, caption → image has one "
            "right image; ties count against the model. Intervals and tests draw whole images: "
            f"{settings.bootstrap_samples:,} bootstrap draws for an interval, as many random swaps "
            "of two recipes' results for p (two-sided, not corrected for the number of recipes)."
        ),
        paragraph(
            "The page holds no time, date or machine: equal inputs give equal bytes. Speed is "
            "measured by ", code("python -m benchmarks.training"), " and its siblings.",
        ),
    ]  # fmt: skip


def _language(row: pd.Series, summary: pd.DataFrame) -> str:
    name = LANGUAGES.get(row["language"], row["language"])
    same = summary[summary["language"] == row["language"]]
    return name if same["dataset"].nunique() == 1 else f"{name} · {row['dataset']}"


def _certain(results: Results) -> str:
    leads = [(LANGUAGES.get(v.language, v.language), v.lead) for v in results.verdicts if v.lead]
    certain = [language for language, lead in leads if lead.certain]
    level = f"{100 * results.settings.evaluations.retrieval.confidence:g} %"
    if not leads:
        return ""
    return f"Leads that are certain at {level}: {', '.join(certain) or 'none'}."


def _chances(summary: pd.DataFrame) -> str:
    pools = summary[["image_to_text_n_queries", "text_to_image_n_queries"]].drop_duplicates()
    values = sorted({f"{chance(int(i), int(c)):.0f}" for i, c in pools.to_numpy()}, key=float)
    return values[0] if len(values) == 1 else f"{values[0]} to {values[-1]}"
