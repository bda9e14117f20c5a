"""The typed, strict view of params.yaml.

Every number of an experiment stands in params.yaml and nowhere in the code: no field has a
default, unknown keys are errors that name the closest legal one, and all problems of the file are
reported at once. YAML is read with ruamel as YAML 1.2, as DVC does (so ``no`` is Norwegian and
``2e-4`` a number).
"""

import difflib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from ruamel.yaml import YAML

PARAMS = Path("params.yaml")
T = TypeVar("T")

NONE = "none"
"""Name of the empty pair set and the empty feature file, which exist as real, empty artefacts."""

Annotation = Literal["caption", "translation", "machine"]
Count = Annotated[int, Field(ge=1)]
Rate = Annotated[float, Field(gt=0)]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_]*$")]
Language = Annotated[str, Field(pattern=r"^[a-z]{2,3}$")]


class SettingsError(ValueError):
    """params.yaml is not what the pipeline can run."""


class Strict(BaseModel):
    """A mapping of which every key is required and no other is allowed."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class World(Strict):
    """A generated corpus: see pipeline_lib/corpora/world."""

    seed: int
    style: Literal["flat", "sketch"]
    images: dict[Literal["train", "val", "test"], Count]


class TableDataset(Strict):
    """Captions in one TSV beside a folder of images: the form to bring your own in."""

    reader: Literal["table"]
    raw: str


class Multi30kDataset(Strict):
    """The Multi30k repository's own layout; ``splits`` are those whose images are there."""

    reader: Literal["multi30k"]
    raw: str
    languages: list[Language]
    splits: list[
        Literal["train", "val", "test", "test_2017_flickr", "test_2017_mscoco", "test_2018_flickr"]
    ]


class Flickr8kDataset(Strict):
    """Flickr8k's photos with captions of six languages; ``split_column`` names whose split."""

    reader: Literal["flickr8k"]
    raw: str
    languages: list[Language]
    split_column: Literal["flickr8k_split", "multi30k_split"]


class CocoDataset(Strict):
    """COCO captions (Karpathy's JSON) with STAIR or YJ (ja) and COCO-CN (zh)."""

    reader: Literal["coco"]
    raw: str
    languages: list[Language]
    japanese: Literal["stair", "yj", "none"]
    splits: Literal["karpathy", "coco_cn"]


Dataset = Annotated[
    TableDataset | Multi30kDataset | Flickr8kDataset | CocoDataset, Field(discriminator="reader")
]


class Tokenizer(Strict):
    """How the captions of one language become tokens."""

    tokenizer: Literal["moses", "mecab", "jieba", "whitespace"]
    lowercase: bool
    normalize: bool


class Extractor(Strict):
    """How the images of one data set become features: see pipeline_lib/images."""

    dataset: Name
    images: str
    backbone: str
    weights: str
    transform: Literal["center", "ten_crop", "squash"]
    resize: Count
    crop: Count
    precision: Literal["bf16", "f32"]
    batch_size: Count


class PairSet(Strict):
    """Captions to train and validate on: a selection of one data set, plus another pair set.

    Attributes:
        dataset: Captions table to select from.
        captions: Kinds of annotation to take, per language.
        per_image: At most so many training captions per image and language.
        images: All training images, or one of two disjoint halves (the same for every language).
        plus: Pair set to add, or ``none``.
    """

    dataset: Name
    captions: dict[Language, list[Annotation]]
    per_image: Count
    images: Literal["all", "first_half", "second_half"]
    plus: Name


class RetrievalEvaluation(Strict):
    """Image-text retrieval: the split it is measured on, and its confidence intervals."""

    split: str
    bootstrap_samples: Count
    confidence: Annotated[float, Field(gt=0, lt=1)]
    seed: int


class Evaluations(Strict):
    """The tasks that recipes are measured on."""

    retrieval: RetrievalEvaluation


class Recipe(Strict):
    """One published row: a paper's settings with this row's inputs, departures and seeds.

    Attributes:
        paper: Entry of ``papers`` that this recipe starts from.
        dataset: Data set on whose test split it is evaluated.
        pairs: Pair set it learns from.
        features: Extractor whose features it uses.
        more_features: A second one, for pair sets that join two data sets, or ``none``.
        languages: Languages it learns and is evaluated in.
        seeds: One model each; the row reports their mean and standard deviation.
        word_dim: Size of word embeddings.
        embed_dim: Size of the joint space, which is the GRU's state size.
        vocabulary: One table for all languages (same form, same vector) or one per language.
        min_count: Words rarer than this in the training captions are out of vocabulary.
        markers: Markers around a sentence.
        oov: What becomes of an unknown word.
        max_tokens: Longer sentences are cut.
        normalize_features: Scale image features to unit length before the image layer.
        similarity: Entry of models.similarity.SIMILARITIES.
        margin: The hinge's margin, alpha.
        violations: Negatives that count: ``sum`` of all, or the hardest one (``max``).
        warmup_updates: Updates at the start in which all negatives count, whatever
            ``violations``: from random weights the hardest alone teach little.
        batch_size: Image-caption or caption-caption pairs per update.
        length_window_batches: Batches are cut from windows of so many shuffled batches sorted by
            length; 1 is plain shuffling.
        caption_caption_probability: Share of updates that rank captions against captions.
        learning_rate: Adam's, constant.
        clip_norm: Bound on the gradient's norm.
        validate_every_updates: Updates between two validations.
        patience_validations: Stop after so many validations without a new best recall sum.
        max_epochs: Stop after so many times the updates of one pass over all captions;
            caption-caption updates count among them.
        precision: Arithmetic of the recurrent layer's matrix products.
    """

    paper: str
    dataset: Name
    pairs: Name
    features: Name
    more_features: Name
    languages: list[Language]
    seeds: list[int]
    word_dim: Count
    embed_dim: Count
    vocabulary: Literal["pooled", "per_language"]
    min_count: Count
    markers: Literal["both", "end", "none"]
    oov: Literal["unk", "drop"]
    max_tokens: Count
    normalize_features: bool
    similarity: Literal["cosine"]
    margin: Rate
    violations: Literal["sum", "max"]
    warmup_updates: Annotated[int, Field(ge=0)]
    batch_size: Count
    length_window_batches: Count
    caption_caption_probability: Annotated[float, Field(ge=0, le=1)]
    learning_rate: Rate
    clip_norm: Rate
    validate_every_updates: Count
    patience_validations: Count
    max_epochs: Count
    precision: Literal["bf16", "f32"]


class Settings(Strict):
    """params.yaml: one study.

    ``papers`` holds what each paper fixes, ``departures`` what this study changes for all its
    recipes (smaller models, say), ``recipes`` the rows. A recipe is the three merged, in this
    order.
    """

    root: str
    worlds: dict[Name, World]
    datasets: dict[Name, Dataset]
    tokenizers: dict[Language, Tokenizer]
    extractors: dict[Name, Extractor]
    selection_seed: int
    pairs: dict[Name, PairSet]
    pools: dict[Language, Annotation]
    evaluations: Evaluations
    papers: dict[str, dict[str, object]]
    departures: dict[str, object]
    recipes: dict[Name, dict[str, object]]

    def recipe(self, name: str) -> Recipe:
        """Return the recipe ``name``, merged and checked."""
        return Recipe.model_validate(self._merged(choose(self.recipes, name, "recipe")))

    def _merged(self, row: Mapping[str, object]) -> dict[str, object]:
        paper = self.papers.get(str(row.get("paper")), {})
        return {**paper, **self.departures, **row}

    def reference_problems(self) -> Iterator[str]:
        """Yield every name in the file that names nothing."""
        for name, extractor in self.extractors.items():
            yield from _unknown(f"extractors.{name}.dataset", [extractor.dataset], self.datasets)
        for name, pairs in self.pairs.items():
            where = f"pairs.{name}"
            yield from _unknown(f"{where}.dataset", [pairs.dataset], self.datasets)
            yield from _unknown(f"{where}.captions", pairs.captions, self.tokenizers)
            yield from _unknown(f"{where}.plus", [pairs.plus], [NONE, *self.pairs])
        for name, row in self.recipes.items():
            yield from self._recipe_problems(name, row)

    def _recipe_problems(self, name: str, row: Mapping[str, object]) -> Iterator[str]:
        where = f"recipes.{name}"
        try:
            recipe = Recipe.model_validate(self._merged(row))
        except ValidationError as error:
            yield from _readable(error, Recipe, where)
            return
        yield from _unknown(f"{where}.paper", [recipe.paper], self.papers)
        yield from _unknown(f"{where}.dataset", [recipe.dataset], self.datasets)
        yield from _unknown(f"{where}.pairs", [recipe.pairs], self.pairs)
        yield from _unknown(f"{where}.features", [recipe.features], self.extractors)
        more = [NONE, *self.extractors]
        yield from _unknown(f"{where}.more_features", [recipe.more_features], more)
        yield from _unknown(f"{where}.languages", recipe.languages, self.pools)
        if len(set(recipe.seeds)) != len(recipe.seeds) or not recipe.seeds:
            yield f"{where}.seeds: expected one or more different seeds, found {recipe.seeds}"


def load_settings(path: Path = PARAMS) -> Settings:
    """Read and check params.yaml.

    Raises:
        SettingsError: Lists every problem: unknown, missing and ill-typed keys, dangling names.
    """
    if not path.is_file():
        raise SettingsError(
            f"{path.resolve().name}: not found. Run the command in the folder of a study: "
            "the one that holds params.yaml and dvc.yaml."
        )
    content = YAML(typ="safe").load(path.read_text(encoding="utf-8"))
    try:
        settings = Settings.model_validate(content)
    except ValidationError as error:
        _raise(path, _readable(error, Settings, ""))
    _raise(path, settings.reference_problems())
    return settings


def choose(table: Mapping[str, T], name: str, kind: str) -> T:
    """Return ``table[name]``; if there is none, name the closest entry."""
    if name not in table:
        raise SettingsError(f"no {kind} is called {name!r}.{_suggest(name, table)}")
    return table[name]


def _raise(path: Path, problems: Iterator[str]) -> None:
    listed = "\n".join(f"  - {problem}" for problem in problems)
    if listed:
        raise SettingsError(f"{path.name} cannot be used:\n{listed}")


def _unknown(where: str, names: object, known: object) -> Iterator[str]:
    for name in names:
        if name not in known:
            yield f"{where}: nothing is called {name!r}.{_suggest(name, known)}"


def _suggest(name: str, known: object) -> str:
    close = difflib.get_close_matches(str(name), [str(item) for item in known], n=1)
    legal = ", ".join(sorted(str(item) for item in known)) or "none"
    return f" Did you mean {close[0]!r}?" if close else f" Legal names: {legal}."


def _readable(error: ValidationError, model: type[BaseModel], where: str) -> Iterator[str]:
    """Turn pydantic's findings into one sentence each, with the closest legal key."""
    for item in error.errors():
        place = ".".join([*([where] if where else []), *(str(part) for part in item["loc"])])
        if item["type"] == "extra_forbidden":
            known = _legal_keys(model, item["loc"][:-1])
            yield f"{place}: unknown key.{_suggest(item['loc'][-1], known) if known else ''}"
        elif item["type"] == "missing":
            yield f"{place}: missing (every number of an experiment stands in params.yaml)"
        else:
            yield f"{place}: {item['msg']}, found {item['input']!r}"


def _legal_keys(model: type[BaseModel], place: tuple) -> list[str]:
    if not place:
        return list(model.model_fields)
    sections = {"worlds": World, "tokenizers": Tokenizer, "extractors": Extractor, "pairs": PairSet}
    return list(sections[place[0]].model_fields) if place[0] in sections else []
