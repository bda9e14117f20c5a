"""The report of a study: one HTML page that loads nothing from anywhere."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import pandas as pd
from jinja2 import Environment, PackageLoader, StrictUndefined

from pipeline_lib.reporting.page.charts import (
    Figure,
    beta_charts,
    language_charts,
    pool_name,
    reuse_charts,
    score_charts,
    training_charts,
    word_translation_charts,
)
from pipeline_lib.reporting.page.gallery import Gallery
from pipeline_lib.reporting.results import Results
from pipeline_lib.reporting.table import FILES, Table
from pipeline_lib.reporting.verdicts import LANGUAGES, Verdict, chance, evidence

SECTIONS = MappingProxyType(
    {
        "scores": ("Scores", ("papers", "retrieval", "folds"), score_charts),
        "questions": ("Questions", ("comparison_*",), None),
        "published": ("Beside the papers", ("published", "published_tasks"), None),
        "beta": ("Weight of the image", (), beta_charts),
        "languages": ("Languages", ("languages", "mixed"), language_charts),
        "sentences": ("Sentences and words", ("sentence_retrieval", "sts", "word_translation"),
                      word_translation_charts),
        "pseudopairs": ("Pseudopairs", ("pseudopairs",), reuse_charts),
        "machine": ("Machine translation", ("translators", "rerankings", "translated_queries"),
                    None),
        "gallery": ("What the best models find", (), None),
        "probes": ("Hubs and hard captions", ("hubs", "kinds"), None),
        "training": ("Training", ("models",), training_charts),
        "others": ("Other tasks", (), None),
        "method": ("How it was measured", (), None),
    }
)  # fmt: skip
"""Anchors of the page with heading, tables and charts. ``others`` has the tables named nowhere."""


def report_page(results: Results, galleries: Sequence[Gallery]) -> str:
    """Return the report of a study as HTML.

    Args:
        results: What has been measured.
        galleries: Of gallery.galleries.
    """
    environment = Environment(
        loader=PackageLoader("pipeline_lib.reporting.page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    summary = results.summary
    tables = {anchor: _tables(anchor, results.tables) for anchor in SECTIONS}
    figures = {anchor: list(charts(results)) if charts else []
               for anchor, (_, _, charts) in SECTIONS.items()}  # fmt: skip
    return environment.get_template("page.html").render(
        datasets=", ".join(dict.fromkeys(summary["dataset"])),
        settings=results.settings.evaluations.retrieval,
        verdicts=results.verdicts,
        galleries=galleries,
        sections=_sections(tables, figures, galleries),
        tables=tables,
        figures=figures,
        endings=list(FILES),
        recipes=summary["recipe"].nunique(),
        papers=summary["paper"].nunique(),
        images=" or ".join(f"{n:,.0f}" for n in sorted({*summary["image_to_text_n_queries"]})),
        chances=_chances(summary),
        certain=_certain(results.verdicts),
        pool_name=lambda row: pool_name(row["dataset"], row["language"], summary),
        evidence=lambda v: evidence(v, results.settings.evaluations.retrieval.confidence),
    )


def _tables(anchor: str, tables: Mapping[str, Table]) -> list[Table]:
    if anchor == "others":
        named = {name for _, names, _ in SECTIONS.values() for name in names}
        return [t for t in tables.values() if _family(t.name) not in named]
    names = SECTIONS[anchor][1]
    return [table for name in names for table in tables.values() if name == _family(table.name)]


def _family(name: str) -> str:
    return "comparison_*" if name.startswith("comparison_") else name


def _sections(
    tables: Mapping[str, list[Table]],
    figures: Mapping[str, list[Figure]],
    galleries: Sequence[Gallery],
) -> dict[str, str]:
    """Return the headings of the sections that have something to show."""
    filled = {"method", *(["gallery"] if galleries else [])}
    return {
        anchor: heading
        for anchor, (heading, *_) in SECTIONS.items()
        if anchor in filled or tables[anchor] or figures[anchor]
    }


def _certain(verdicts: Sequence[Verdict]) -> str:
    leads = [(LANGUAGES.get(v.language, v.language), v.lead) for v in verdicts if v.lead]
    certain = [language for language, lead in leads if lead.certain]
    return (", ".join(certain) or "none") if leads else ""


def _chances(summary: pd.DataFrame) -> str:
    pools = summary[["image_to_text_n_queries", "text_to_image_n_queries"]].drop_duplicates()
    values = sorted({f"{chance(int(i), int(c)):.0f}" for i, c in pools.to_numpy()}, key=float)
    return values[0] if len(values) == 1 else f"{values[0]} to {values[-1]}"
