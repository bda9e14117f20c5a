"""The report of a study: one HTML page that loads nothing from anywhere."""

import base64
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

import pandas as pd
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from pipeline_lib.contract.recalls import chance_recall_sum
from pipeline_lib.reporting.page.charts import (
    Figure,
    beta_charts,
    curve_charts,
    growth_charts,
    language_charts,
    language_name,
    pool_name,
    reuse_charts,
    score_charts,
    training_charts,
    word_translation_charts,
)
from pipeline_lib.reporting.page.gallery import Gallery
from pipeline_lib.reporting.results import Results
from pipeline_lib.reporting.table import FILES, Table
from pipeline_lib.reporting.verdicts import Verdict, evidence
from pipeline_lib.settings.printed import recipe_lines

SECTIONS = MappingProxyType(
    {
        "scores": ("Scores", ("papers", "retrieval", "folds"), score_charts),
        "claims": ("What the papers claim", ("claims",), None),
        "questions": ("Questions", ("comparison_*",), None),
        "published": ("Compared with the papers' figures", ("published", "published_tasks"), None),
        "beta": ("Weight of the image", (), beta_charts),
        "languages": ("Languages", ("languages", "mixed"), language_charts),
        "growth": ("How recipes grow", ("growth",), growth_charts),
        "sentences": ("Sentences and words", ("sentence_retrieval", "sts", "word_translation"),
                      word_translation_charts),
        "pseudopairs": ("Pseudopairs", ("pseudopairs",), reuse_charts),
        "machine": ("Machine translation", ("translators", "rerankings", "translated_queries"),
                    None),
        "gallery": ("What the best models find", (), None),
        "probes": ("Hubs and hard captions", ("hubs", "kinds"), None),
        "curves": ("Training", ("models",), curve_charts),
        "training": ("Training of each recipe", (), training_charts),
        "others": ("Other tasks", (), None),
        "recipes": ("Recipes", (), None),
        "method": ("How it was measured", (), None),
    }
)  # fmt: skip
"""Anchors of the page with heading, tables and charts. ``others`` has the tables named nowhere."""


_OURS = "polyview"
"""What the key ``paper`` says of recipes that are of none."""


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
    environment.filters["language_name"] = language_name
    summary = results.summary
    script = environment.get_template("tables.js").render()
    tables = {anchor: _tables(anchor, results.tables) for anchor in SECTIONS}
    figures = {anchor: list(charts(results)) if charts else []
               for anchor, (_, _, charts) in SECTIONS.items()}  # fmt: skip
    return environment.get_template("page.html").render(
        script=Markup(script),
        script_digest=_digest(script),
        datasets=[*dict.fromkeys(summary["dataset"])],
        recipe_lines={name: recipe_lines(results.settings, name) for name in results.recipes},
        languages=", ".join(map(language_name, dict.fromkeys(summary["language"]))),
        settings=results.settings.evaluations.retrieval,
        draws=results.settings.evaluations.significance.draws,
        verdicts=results.verdicts,
        doubts=[*_doubts(results.models)],
        galleries=galleries,
        sections=_sections(tables, figures, galleries),
        tables=tables,
        figures=figures,
        endings=list(FILES),
        papers=summary.loc[summary["paper"] != _OURS, "paper"].nunique(),
        ours=_OURS in {*summary["paper"]},
        scored=summary["recipe"].nunique(),
        learnt=results.recipes,
        images=" or ".join(f"{n:,.0f}" for n in sorted({*summary["image_to_text_n_queries"]})),
        chances=_chances(summary),
        leads=_leads(results.verdicts, summary),
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
    filled = {"method", "recipes", *(["gallery"] if galleries else [])}
    return {
        anchor: heading
        for anchor, (heading, *_) in SECTIONS.items()
        if anchor in filled or tables[anchor] or figures[anchor]
    }


def _leads(verdicts: Sequence[Verdict], summary: pd.DataFrame) -> dict[str, list[str]]:
    """Return the pools whose lead is certain, where it may be chance, and where none was tested."""
    found = {"certain": [], "may be chance": [], "not tested": []}
    for verdict in verdicts:
        if lead := verdict.lead:
            tested = "may be chance" if lead.test else "not tested"
            name = pool_name(verdict.best["dataset"], verdict.language, summary)
            found["certain" if lead.certain else tested].append(name)
    return found


def _doubts(models: Mapping[str, dict]) -> Iterator[tuple[str, str, str]]:
    """Yield recipe, seed and sentence of all that training.doubts found."""
    for name, model in models.items():
        for seed, found in model.get("doubts", {}).items():
            yield from ((name, seed, sentence) for sentence in found)


def _chances(summary: pd.DataFrame) -> str:
    pools = summary[["image_to_text_n_queries", "text_to_image_n_queries"]].drop_duplicates()
    values = sorted(
        {f"{chance_recall_sum(int(i), int(c))[0]:.0f}" for i, c in pools.to_numpy()}, key=float
    )
    return values[0] if len(values) == 1 else f"{values[0]} to {values[-1]}"


def _digest(script: str) -> str:
    """Return what the page's policy knows its only script by."""
    digest = hashlib.sha256(script.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"
