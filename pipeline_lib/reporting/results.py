"""All that a study has measured so far, read once for its frames, tables and page."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import pandas as pd

from pipeline_lib.contract.problems import raise_problems
from pipeline_lib.contract.published import PUBLISHED, read_published
from pipeline_lib.contract.reports import read_report, read_reports, read_rows
from pipeline_lib.evaluation.retrieval.hits import image_contributions, read_hits
from pipeline_lib.reporting.claims import (
    asked_by_claims,
    claim_table,
    judged,
    reranked_figures,
    reranking_tests,
)
from pipeline_lib.reporting.comparisons import asked_by_comparisons, compare, comparison_tables
from pipeline_lib.reporting.curves import training_curves
from pipeline_lib.reporting.differences import Asked, Difference, Measured, differences
from pipeline_lib.reporting.figure_tables import figure_tables
from pipeline_lib.reporting.figures import Reports, figures, headlines
from pipeline_lib.reporting.intervals import over_seeds
from pipeline_lib.reporting.published import beside_published, published_tables
from pipeline_lib.reporting.study_tables import (
    growth_table,
    model_table,
    pseudopair_table,
    reranking_table,
    translator_table,
)
from pipeline_lib.reporting.summary import summary_table
from pipeline_lib.reporting.table import Table
from pipeline_lib.reporting.verdicts import Verdict, asked_by_verdicts, verdicts
from pipeline_lib.settings.recipes import Recipe
from pipeline_lib.settings.study import Settings

_ROUNDING = 0.01
"""More than scores lose by their rounding in retrieval.json."""


@dataclass(frozen=True)
class Results:
    """What the recipes that ran have shown.

    Attributes:
        settings: Of the study.
        tasks: Report of each task and recipe (evaluation.tasks).
        training: Training curve by recipe.
        models: Sizes of the model by recipe.
        pseudopairs: Report by pseudopair set.
        translators: Report by translator.
        rerankings: Report by re-ranking.
        translated_queries: Report by entry of this section.
        growth: Scores of each recipe that was trained on less (training.growth.COLUMNS).
        published: What papers print (contract.published.read_published).
        hits: Of every seed and image (hits.HITS), by recipe; those of older reports are not stored.
    """

    settings: Settings
    tasks: Reports
    training: Mapping[str, pd.DataFrame]
    models: Mapping[str, dict]
    pseudopairs: Mapping[str, dict]
    translators: Mapping[str, dict]
    rerankings: Mapping[str, dict]
    translated_queries: Mapping[str, dict]
    growth: Mapping[str, pd.DataFrame]
    published: pd.DataFrame
    hits: Mapping[str, pd.DataFrame]

    @cached_property
    def recipes(self) -> dict[str, Recipe]:
        """Settings of the recipes that ran, or that have begun to."""
        ran = {*self.tasks["retrieval"], *self.training}
        return {name: self.settings.recipe(name) for name in self.settings.recipes if name in ran}

    @cached_property
    def measured(self) -> Measured:
        """What intervals are made of."""
        single = figures(self.tasks, self.translated_queries.values())
        datasets = {name: self._scored_on(name) for name in self.recipes}
        evaluations = self.settings.evaluations
        return Measured(single, self.hits, self.recipes, evaluations, datasets=datasets)

    @cached_property
    def tested(self) -> Measured:
        """What tests are made of: re-ranked translations, too."""
        translators = {n: each.translator for n, each in self.settings.rerankings.items()}
        reranked = reranked_figures(self.rerankings, translators)
        every = pd.concat([self.measured.figures, reranked], ignore_index=True)
        tests = reranking_tests(self.rerankings, translators)
        return replace(self.measured, figures=every, tested=tests)

    @cached_property
    def claims(self) -> pd.DataFrame:
        """Claims of the papers with their verdicts."""
        confidence = self.settings.evaluations.retrieval.confidence
        return judged(self.settings.claims, self.tests, self.tested.cells, confidence)

    @cached_property
    def figures(self) -> pd.DataFrame:
        """Every figure of figures.figures, with the paper and the data set of its recipe.

        Intervals are those of intervals.over_seeds.
        """
        table = over_seeds(self.measured)
        papers = {name: recipe.paper for name, recipe in self.recipes.items()}
        datasets = table["recipe"].map(self.measured.datasets)
        return table.assign(paper=table["recipe"].map(papers), dataset=datasets)

    def _scored_on(self, recipe: str) -> str:
        """Return the data set of a recipe's queries; added translations are none unless ranked."""
        chosen, translations = self.recipes[recipe], self.settings.translations
        ranked = {each for each in chosen.languages if self.settings.pools[each] == "machine"}
        dataset = chosen.dataset
        while dataset in translations and translations[dataset].target_language not in ranked:
            dataset = translations[dataset].dataset
        return dataset

    @cached_property
    def summary(self) -> pd.DataFrame:
        """Scores of image-text retrieval (summary.summary_table)."""
        return summary_table(self.figures)

    @cached_property
    def tests(self) -> dict[Asked, Difference]:
        """All tests of the study, corrected for their number."""
        asked = [
            *asked_by_comparisons(self.summary, self.settings.comparisons),
            *asked_by_verdicts(self.summary),
            *asked_by_claims(self.settings.claims),
        ]
        return differences(asked, self.tested)

    @cached_property
    def comparisons(self) -> pd.DataFrame:
        """Recipes against the baselines of the study's questions."""
        return compare(self.summary, self.tests, self.settings.comparisons)

    @cached_property
    def beside_published(self) -> pd.DataFrame:
        """Our figures with what papers print."""
        return beside_published(self.figures, self.published)

    @cached_property
    def curves(self) -> pd.DataFrame:
        """Validation recalls over training (curves.training_curves)."""
        return training_curves(self.training)

    @cached_property
    def verdicts(self) -> list[Verdict]:
        """Who is best in each language."""
        confidence = self.settings.evaluations.retrieval.confidence
        return verdicts(self.summary, self.tests, confidence)

    @cached_property
    def frames(self) -> dict[str, pd.DataFrame]:
        """What is written as CSV, by name."""
        return {
            "summary": self.summary,
            "curves": self.curves,
            "tasks": headlines(self.figures).drop(columns=["paper", "dataset"]),
            "comparisons": self.comparisons,
            "claims": self.claims,
            "published": self.beside_published,
        }

    @cached_property
    def tables(self) -> dict[str, Table]:
        """Every table by name."""
        best = [(str(verdict.best["recipe"]), verdict.language) for verdict in self.verdicts]
        tables = [
            *figure_tables(self.figures, best),
            claim_table(self.claims),
            *comparison_tables(self.comparisons, self.settings.comparisons),
            *published_tables(self.beside_published),
            growth_table(self.growth),
            model_table(self.recipes, self.training, self.models),
            pseudopair_table(self.pseudopairs),
            translator_table(self.translators),
            reranking_table(self.rerankings),
        ]
        return {table.name: table for table in tables if table}


def read_results(settings: Settings) -> Results:
    """Read the metrics of a study from its folder.

    Raises:
        ContractError: No recipe has been scored, or hits and scores of one disagree.
    """
    homes = {name: Path(f"metrics/reports/recipes/{name}") for name in settings.recipes}
    scores = {name: read_reports(home / "scores") for name, home in homes.items()}

    def of_recipes(file: str, parse: Callable) -> dict:
        paths = {name: home / file for name, home in homes.items()}
        return {name: parse(path) for name, path in paths.items() if path.is_file()}

    def of_section(section: str) -> dict:
        # Reports stay behind where an entry was removed.
        found = read_reports(Path(f"metrics/reports/{section}"))
        return {name: own for name, own in found.items() if name in getattr(settings, section)}

    nothing = "expected the scores of a recipe, found none: run dvc repro evaluate@RECIPE"
    raise_problems("metrics/reports/recipes", [] if any(scores.values()) else [nothing])
    tasks = sorted({task for reports in scores.values() for task in reports})
    results = Results(
        settings=settings,
        tasks={t: {name: own[t] for name, own in scores.items() if t in own} for t in tasks},
        training=of_recipes("training.csv", read_rows),
        models=of_recipes("model.json", read_report),
        pseudopairs=of_section("pseudopairs"),
        translators=of_section("translators"),
        rerankings=of_section("rerankings"),
        translated_queries=of_section("translated_queries"),
        growth={
            path.stem: read_rows(path)
            for path in sorted(Path("metrics/reports/growth").glob("*.csv"))
            if path.stem in settings.growth
        },
        published=read_published(PUBLISHED),
        hits=of_recipes("scores/hits.csv", read_hits),
    )
    raise_problems("metrics/reports/recipes", _disagreements(results))
    raise_problems("metrics/reports/rerankings", _without_gains(results.rerankings))
    return results


def _without_gains(rerankings: Mapping[str, dict]) -> Iterator[str]:
    """Yield the re-rankings that were measured with one seed, untested."""
    for name, report in rerankings.items():
        if "bleu_gain" not in report["test"]:
            yield f"{name}.json: expected what its seeds gain. Run dvc repro rerank@{name}"


def _disagreements(results: Results) -> Iterator[str]:
    """Yield each recipe and language whose images do not add up to its score."""
    for _, row in results.summary[results.summary["recipe"].isin(results.hits)].iterrows():
        name, language, scored = (row[k] for k in ("recipe", "language", "sum_of_recalls"))
        own = image_contributions(results.hits[name], language)
        added = own.sum() / max(len(own), 1)
        if abs(added - scored) > _ROUNDING:
            yield (
                f"{name}/scores/hits.csv: expected hits in {language} that give the sum of "
                f"recalls of retrieval.json, {scored:.2f}; found {added:.2f}. Run dvc repro "
                f"evaluate@{name}."
            )
