"""All that a study has measured so far, read for its report."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pandas as pd
from ruamel.yaml import YAML

from pipeline_lib.contract.problems import raise_problems
from pipeline_lib.contract.queries import read_queries
from pipeline_lib.contract.tables import read_captions, read_images
from pipeline_lib.evaluation.hits import image_contributions, read_hits
from pipeline_lib.reporting.comparisons import compare
from pipeline_lib.reporting.gallery import Shown
from pipeline_lib.reporting.published import beside_published, read_published
from pipeline_lib.reporting.published_tasks import tasks_beside_published
from pipeline_lib.reporting.reports import read_reports, recipe_files
from pipeline_lib.reporting.summary import summary_table
from pipeline_lib.reporting.tasks import task_table
from pipeline_lib.reporting.verdicts import Verdict, verdicts
from pipeline_lib.settings.recipes import Recipe
from pipeline_lib.settings.study import Settings

TASKS = ("retrieval", "translation", "sts", "alignment", "probes")
"""Keys of evaluation.reports.REPORTS, whose code does not concern what stands in its files."""

_ROUNDING = 0.01
"""More than scores lose by their rounding in retrieval.json."""


@dataclass(frozen=True)
class Results:
    """What the recipes that ran have shown.

    Attributes:
        settings: Of the study.
        blocks: ``stages`` of dvc.yaml.
        params: All of params.yaml, as DVC sees it.
        tasks: Report of each task and recipe (evaluation.reports).
        training: Training curve by recipe.
        models: Sizes of the model by recipe.
        pseudopairs: Report by pseudopair set.
        translators: Report by translator.
        rerankings: Report by re-ranking.
        translated_queries: Report by entry of this section.
        published: What papers print (published.read_published).
        hits: Of every image, by recipe (hits.HITS).
    """

    settings: Settings
    blocks: Mapping[str, dict]
    params: Mapping[str, object]
    tasks: Mapping[str, Mapping[str, dict]]
    training: Mapping[str, pd.DataFrame]
    models: Mapping[str, dict]
    pseudopairs: Mapping[str, dict]
    translators: Mapping[str, dict]
    rerankings: Mapping[str, dict]
    translated_queries: Mapping[str, dict]
    published: pd.DataFrame
    hits: Mapping[str, pd.DataFrame]

    @cached_property
    def recipes(self) -> dict[str, Recipe]:
        """Settings of the recipes that ran, or that have begun to."""
        ran = {*self.tasks["retrieval"], *self.training}
        return {name: self.settings.recipe(name) for name in self.settings.recipes if name in ran}

    @cached_property
    def summary(self) -> pd.DataFrame:
        """The table of summary.summary_table, and the data set of each row."""
        table = summary_table(
            self.tasks["retrieval"], {n: r.paper for n, r in self.recipes.items()}
        )
        return table.assign(dataset=[self._scored_on(name) for name in table["recipe"]])

    def _scored_on(self, recipe: str) -> str:
        """Return the data set of a recipe's queries; added translations are none unless ranked."""
        chosen = self.recipes[recipe]
        translated = self.settings.translations.get(chosen.dataset)
        ranked = {self.settings.pools[language] for language in chosen.languages}
        return translated.dataset if translated and "machine" not in ranked else chosen.dataset

    @cached_property
    def comparisons(self) -> pd.DataFrame:
        """Recipes against the baselines of the study's questions."""
        return compare(self.summary, self.hits, self.settings.evaluations)

    @cached_property
    def compared(self) -> pd.DataFrame:
        """The same with what papers print."""
        return beside_published(self.summary, self.published)

    @cached_property
    def compared_tasks(self) -> pd.DataFrame:
        """Figures of the other tasks with what papers print."""
        return tasks_beside_published(
            task_table(self.tasks, self.translated_queries), self.published
        )

    @cached_property
    def verdicts(self) -> list[Verdict]:
        """Who is best in each language."""
        return verdicts(self.summary, self.hits, self.settings.evaluations.retrieval)


def read_results(settings: Settings, params: Path, graph: Path) -> Results:
    """Read the metrics of a study from its folder.

    Raises:
        ContractError: No recipe has been scored.
    """

    def of_recipes(file: str, parse: Callable) -> dict:
        return {name: parse(path) for name, path in recipe_files(settings.recipes, file).items()}

    tasks = {task: of_recipes(f"{task}.json", _json) for task in TASKS}
    scored = tasks["retrieval"]
    nothing = "expected the scores of a recipe, found none: run dvc repro evaluate@RECIPE"
    raise_problems("metrics/recipes", [] if scored else [nothing])
    results = Results(
        settings=settings,
        blocks=_yaml(graph)["stages"],
        params=_yaml(params),
        tasks=tasks,
        training=of_recipes("training.csv", pd.read_csv),
        models=of_recipes("model.json", _json),
        pseudopairs=read_reports(Path("metrics/pseudopairs")),
        translators=read_reports(Path("metrics/translators")),
        rerankings=read_reports(Path("metrics/rerankings")),
        translated_queries=read_reports(Path("metrics/translated_queries")),
        published=read_published(Path("published.csv")),
        hits=of_recipes("images.csv", read_hits),
    )
    raise_problems("metrics/recipes", _disagreements(results))
    return results


def _json(path: Path) -> dict:
    return json.loads(path.read_text(encoding="utf-8"))


def _yaml(path: Path) -> dict:
    return YAML(typ="safe").load(path.read_text(encoding="utf-8"))


def read_shown(results: Results) -> list[Shown | None]:
    """Read what the best recipe of each verdict found, of those whose queries are in data/."""
    return [_best_shown(results, verdict) for verdict in results.verdicts]


def _best_shown(results: Results, verdict: Verdict) -> Shown | None:
    for name in map(str, verdict.ranking["recipe"]):
        if _queries_path(name).is_file():
            return _shown(results, name, verdict.language)
    return None


def _queries_path(recipe: str) -> Path:
    return Path(f"data/queries/{recipe}.parquet")


def _shown(results: Results, name: str, language: str) -> Shown:
    settings, recipe = results.settings, results.recipes[name]
    captions = read_captions(Path(f"data/captions/{recipe.dataset}.parquet"))
    images = read_images(Path(f"data/images/{recipe.dataset}.parquet"))
    folder = Path(settings.extractors[recipe.features].images)
    queries = read_queries(_queries_path(name))
    own = (queries["language"] == language) & (queries["seed"] == recipe.seeds[0])
    captions = captions[captions["language"] == language]
    return Shown(
        name,
        language,
        queries[own],
        dict(zip(captions["caption_id"], captions["text"], strict=True)),
        captions.groupby("image_id")["caption_id"].agg(list).to_dict(),
        dict(zip(images["image_id"], (folder / path for path in images["path"]), strict=True)),
    )


def _disagreements(results: Results) -> Iterator[str]:
    """Yield each recipe and language whose images do not add up to its score."""
    for _, row in results.summary[results.summary["recipe"].isin(results.hits)].iterrows():
        name, language, scored = (row[k] for k in ("recipe", "language", "sum_of_recalls"))
        added = image_contributions(results.hits[name], language).sum()
        if abs(added - scored) > _ROUNDING:
            yield (
                f"{name}/images.csv: expected hits in {language} that give the sum of recalls of "
                f"retrieval.json, {scored:.2f}; found {added:.2f}. Run dvc repro evaluate@{name}."
            )
