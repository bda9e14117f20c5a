"""All of params.yaml with papers.yaml: a study."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import get_args

from pydantic import ValidationError

from pipeline_lib.settings.claims import Claim
from pipeline_lib.settings.corpora import Annotation, Dataset, PairSet, World
from pipeline_lib.settings.entries import TRANSLATORS, entry_of
from pipeline_lib.settings.evaluations import Comparison, Evaluations
from pipeline_lib.settings.growth import Growth
from pipeline_lib.settings.images import Extractor, GivenFeatures, ImageFeatures
from pipeline_lib.settings.pseudopairs import Pseudopairs
from pipeline_lib.settings.recipes import Recipe, merge
from pipeline_lib.settings.rerankings import Reranking
from pipeline_lib.settings.strict import (
    Language,
    Name,
    Seed,
    SettingsError,
    Strict,
    choose,
)
from pipeline_lib.settings.synthesis import AnyTranslator, Translation
from pipeline_lib.settings.text import Lexicon, Tokenizer, WordVectorSource
from pipeline_lib.settings.translated_queries import TranslatedQueries

PARAMS = Path("params.yaml")

PAPERS = "papers.yaml"
"""What each paper fixes, in the folder that ``root`` of params.yaml leads to."""


class Settings(Strict):
    """params.yaml, one study, and papers.yaml.

    ``root`` leads from the study's folder to that of the code, and of papers.yaml. ``pools`` names
    the kind of captions that each language is tested on. ``selection_seed`` decides which captions
    and which half of the images a pair set takes, and the shares of ``growth``.

    ``papers`` holds what each paper fixes, ``shared`` what they have in common, ``departures`` what
    this study changes for all its recipes (smaller models, say) and, in an entry of a paper's name,
    for those of that paper; ``recipes`` holds the rows.
    """

    root: str
    worlds: dict[Name, World]
    datasets: dict[Name, Dataset]
    tokenizers: dict[Language, Tokenizer]
    extractors: dict[Name, ImageFeatures]
    selection_seed: Seed
    pairs: dict[Name, PairSet]
    translators: dict[Name, AnyTranslator]
    translations: dict[Name, Translation]
    pseudopairs: dict[Name, Pseudopairs]
    word_vectors: dict[Name, WordVectorSource]
    lexicons: dict[Name, Lexicon]
    pools: dict[Language, Annotation]
    evaluations: Evaluations
    comparisons: dict[Name, Comparison]
    claims: dict[Name, Claim]
    rerankings: dict[Name, Reranking]
    translated_queries: dict[Name, TranslatedQueries]
    growth: dict[Name, Growth]
    shared: dict[str, object]
    papers: dict[str, dict[str, object]]
    departures: dict[str, object]
    recipes: dict[Name, dict[str, object]]

    def recipe(self, name: str) -> Recipe:
        """Return the recipe ``name``, merged and checked."""
        form, values = self.merged(choose(self.recipes, name, "recipe"))
        return form.model_validate(values)

    def origins(self, name: str) -> dict[str, list[tuple[object, str]]]:
        """Return the values that a recipe has of each key, by place: the one that counts first."""
        return {
            key: [(value, self.place_of(name, key)), *self._places(name, key)[1:]]
            for key, value in self.recipe(name).model_dump().items()
        }

    def place_of(self, name: str, key: str) -> str:
        """Return where a recipe's value of a key stands; the recipe itself if nowhere."""
        return next((place for _, place in self._places(name, key)), f"recipes.{name}")

    def _places(self, name: str, key: str) -> list[tuple[object, str]]:
        """Return the values of a key that a recipe is merged from, the last one first."""
        row = self.recipes[name]
        layers = {**self._layers(str(row["paper"])), f"recipes.{name}": row}
        return [(layers[at][key], at) for at in reversed(layers) if key in layers[at]]

    def merged(self, row: Mapping[str, object]) -> tuple[type[Recipe], dict[str, object]]:
        """Return the form of a recipe, and its values before they are checked."""
        shared, of_paper, departures, own = self._layers(str(row.get("paper"))).values()
        return merge(shared | of_paper, departures | own, row)

    def _layers(self, paper: str) -> dict[str, dict[str, object]]:
        """Return what a paper's recipes start from by its place, the later over the earlier."""
        own = self.departures.get(paper)
        return {
            f"{PAPERS}: shared": self.shared,
            f"{PAPERS}: {paper}": self.papers.get(paper, {}),
            "departures": {
                key: value for key, value in self.departures.items() if key not in self.papers
            },
            f"departures.{paper}": own if isinstance(own, dict) else {},
        }

    @cached_property
    def merged_recipes(self) -> dict[str, dict[str, object]]:
        """Recipes as merged values; without those that cannot be one, which are named elsewhere."""
        found = {}
        for name in self.recipes:
            with suppress(SettingsError, ValidationError):
                found[name] = self.recipe(name).model_dump()
        return found

    @property
    def networks(self) -> dict[str, Extractor]:
        """The extractors that make features of photos; without features that are given."""
        return {n: each for n, each in self.extractors.items() if isinstance(each, Extractor)}

    @property
    def given_features(self) -> dict[str, GivenFeatures]:
        """The extractors whose features are given."""
        return {n: each for n, each in self.extractors.items() if isinstance(each, GivenFeatures)}

    @property
    def caption_tables(self) -> list[str]:
        """Names of all tables of captions, which data sets and translations of them are."""
        return [*self.datasets, *self.translations]

    def pair_sets(self, pairs: str) -> list[str]:
        """Return a pair set, and those that it adds, of whichever kind."""
        chosen = {**self.pairs, **self.pseudopairs}.get(pairs)
        return [] if chosen is None else [pairs, *self.pair_sets(chosen.plus)]

    def translator_of(self, chosen: Translation) -> str:
        """Return the entry of ``translators`` that makes a translation; empty if none of them."""
        return entry_of(chosen.model, TRANSLATORS) if chosen.engine == "translator" else ""


def modules_of(sections: Iterable[str]) -> set[str]:
    """Return the modules that describe sections of params.yaml, as paths."""

    def modules(annotation: object) -> Iterator[str]:
        if isinstance(annotation, type) and annotation.__module__.startswith(__package__):
            yield annotation.__module__.replace(".", "/") + ".py"
        for part in get_args(annotation):
            yield from modules(part)

    fields = Settings.model_fields
    return {name for section in sections for name in modules(fields[section].annotation)}
