"""All of params.yaml with papers.yaml, and the check that every name in them names something.

YAML is read with ruamel as YAML 1.2, as DVC does (so ``no`` is Norwegian and ``2e-4`` a number).
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cached_property, partial
from itertools import chain, permutations
from pathlib import Path, PurePath
from typing import get_args

from pydantic import ValidationError

from pipeline_lib.settings.claims import MEASURES, Claim, Compared
from pipeline_lib.settings.corpora import Annotation, Dataset, PairSet, World
from pipeline_lib.settings.entries import PAIRS, TRANSLATORS, cycles, entry_of
from pipeline_lib.settings.evaluations import Comparison, Evaluations
from pipeline_lib.settings.growth import Growth
from pipeline_lib.settings.images import Extractor
from pipeline_lib.settings.messages import lines_of, read_yaml, readable
from pipeline_lib.settings.pseudopairs import Pseudopairs
from pipeline_lib.settings.recipes import Recipe, contradictions, merge, part_of, recipe_keys
from pipeline_lib.settings.rerankings import Reranking
from pipeline_lib.settings.strict import (
    NONE,
    RANDOM,
    Language,
    Name,
    Seed,
    SettingsError,
    Strict,
    choose,
    unknown,
    unknown_keys,
)
from pipeline_lib.settings.synthesis import AnyTranslator, Translation
from pipeline_lib.settings.text import Lexicon, Tokenizer, WordVectorSource
from pipeline_lib.settings.translated_queries import TranslatedQueries

PARAMS = Path("params.yaml")

PAPERS = "papers.yaml"
"""What each paper fixes, in the folder that ``root`` of params.yaml leads to."""

VOCABULARY_KEYS = ("vocabulary", "min_count", "markers", "oov", "max_tokens")
"""Settings of a recipe that its vocabulary keeps."""

LAYER_KEYS = (
    "text_encoder", "image_head", "word_dim", "embed_dim", "universal_dim", "orthogonal_map",
    "recurrent", "recurrent_sharing", "hidden_dim", "projection",
    "image_hidden_dims", "image_hidden_dim", "image_crops",
)  # fmt: skip
"""Settings of a recipe that say which layers it has, and how large they are."""


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
    extractors: dict[Name, Extractor]
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
        form, values = self._merged(choose(self.recipes, name, "recipe"))
        return form.model_validate(values)

    def origins(self, name: str) -> dict[str, tuple[object, str]]:
        """Return each value of a recipe with where it comes from."""
        recipe = self.recipe(name).model_dump()
        return {key: (value, self._place(name, key)) for key, value in recipe.items()}

    def _place(self, name: str, key: str) -> str:
        """Return where a recipe's value of a key stands; the recipe itself if nowhere."""
        row = self.recipes[name]
        layers = {**self._layers(str(row["paper"])), f"recipes.{name}": row}
        return next((at for at in reversed(layers) if key in layers[at]), f"recipes.{name}")

    def _merged(self, row: Mapping[str, object]) -> tuple[type[Recipe], dict[str, object]]:
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
    def _rows(self) -> dict[str, dict[str, object]]:
        """Recipes as merged values; without those that cannot be one, which are named elsewhere."""
        found = {}
        for name in self.recipes:
            with suppress(SettingsError, ValidationError):
                found[name] = self.recipe(name).model_dump()
        return found

    @property
    def _captions(self) -> list[str]:
        """Names of all tables of captions: data sets, and data sets with translations added."""
        return [*self.datasets, *self.translations]

    def pair_sets(self, pairs: str) -> list[str]:
        """Return a pair set, and those that it adds, of whichever kind."""
        chosen = {**self.pairs, **self.pseudopairs}.get(pairs)
        return [] if chosen is None else [pairs, *self.pair_sets(chosen.plus)]

    def translator_of(self, chosen: Translation) -> str:
        """Return the entry of ``translators`` that makes a translation; empty if none of them."""
        return entry_of(chosen.model, TRANSLATORS) if chosen.engine == "translator" else ""

    def reference_problems(self) -> Iterator[str]:
        """Yield every name in the file that names nothing, and every name that is taken."""
        yield from self._reserved_names()
        for name, extractor in self.extractors.items():
            yield from unknown(f"extractors.{name}.dataset", [extractor.dataset], self.datasets)
        yield from cycles(self._sections())
        for name, pairs in self.pairs.items():
            where = f"pairs.{name}"
            yield from unknown(f"{where}.dataset", [pairs.dataset], self._captions)
            yield from unknown(f"{where}.captions", pairs.captions, self.tokenizers)
            yield from unknown(f"{where}.plus", [pairs.plus], [NONE, *self.pairs])
            excluded = [NONE, *self.datasets]
            yield from unknown(f"{where}.exclude_images", [pairs.exclude_images], excluded)
        yield from self._translation_problems()
        yield from self._pseudopair_problems()
        yield from self._word_vector_problems()
        for name, vectors in self.word_vectors.items():
            where = f"word_vectors.{name}.pairs"
            yield from unknown(where, [vectors.pairs], [NONE, *self.pairs])
        for name, lexicon in self.lexicons.items():
            yield from unknown(f"lexicons.{name}.pairs", [lexicon.pairs], self.pairs)
        yield from self._departure_problems()
        for name in self.recipes:
            yield from self._recipe_problems(name)
        for section, problems in (
            ("rerankings", self._reranking_problems),
            ("translated_queries", self._translated_query_problems),
            ("growth", self._growth_problems),
            ("claims", self._claim_problems),
        ):
            for name, entry in getattr(self, section).items():
                yield from problems(f"{section}.{name}", entry)
        yield from self._repeated_queries()
        lexicon, where = self.evaluations.word_translation.lexicon, "evaluations.word_translation"
        yield from unknown(f"{where}.lexicon", [lexicon], [NONE, *self.lexicons])
        for name, scored in self.evaluations.sts.sets.items():
            where = f"evaluations.sts.sets.{name}.language"
            yield from unknown(where, [scored.language], self.tokenizers)
        yield from self._comparison_problems()

    def _sections(self) -> dict[str, dict[str, dict[str, object]]]:
        """Return the values of all entries; recipes merged, as far as they can be."""
        return {**self.model_dump(exclude={"recipes", "papers", "shared"}), "recipes": self._rows}

    def _reserved_names(self) -> Iterator[str]:
        """A data set called ``none`` would write where the empty artefact of that name stands."""
        for section in type(self).model_fields:
            table = getattr(self, section)
            for name in {NONE, RANDOM} & set(table) if isinstance(table, dict) else ():
                yield f"{section}.{name}: the name stands for the empty input. Take another one"

    def _word_vector_problems(self) -> Iterator[str]:
        for name, vectors in self.word_vectors.items():
            where, sets = f"word_vectors.{name}", [*self.pairs, *self.pseudopairs]
            if vectors.method != "files":
                made = [PAIRS.format(each) for each in sets]
                yield from unknown(f"{where}.source", [str(PurePath(vectors.source))], made)
            shortest, longest = (getattr(vectors, key, 0) for key in ("min_n", "max_n"))
            if shortest > longest:
                yield f"{where}.min_n: expected at most max_n ({longest}), found {shortest}"

    def _departure_problems(self) -> Iterator[str]:
        known = recipe_keys()
        yield from unknown_keys("departures", self.departures, known | {*self.papers})
        for paper in self.papers:
            where, own = f"departures.{paper}", self.departures.get(paper, {})
            if isinstance(own, dict):
                yield from unknown_keys(where, own, known)
            else:
                yield f"{where}: expected keys of recipes, found {own!r}"

    def _comparison_problems(self) -> Iterator[str]:
        for name, comparison in self.comparisons.items():
            where, members = f"comparisons.{name}", comparison.recipes
            yield from unknown(f"{where}.baseline", [comparison.baseline], self.recipes)
            yield from unknown(f"{where}.recipes", members, self.recipes)
            if comparison.baseline in members:
                yield f"{where}.recipes: expected others than the baseline, found it among them"

    def _claim_problems(self, where: str, claim: Claim) -> Iterator[str]:
        yield from unknown(f"{where}.paper", [claim.paper], self.papers)
        reranked = MEASURES[claim.measure].task == "reranking"
        known = [*self.rerankings, *self.translators] if reranked else self.recipes
        for item, compared in claim.compared.items():
            place, names = f"{where}.compared.{item}", [compared.row, compared.against]
            yield from unknown(place, names, known)
            if compared.row == compared.against:
                yield f"{place}: expected two different rows, found {compared.row} twice"
            if reranked:
                yield from unknown(place, [item], [compared.row])
                yield from self._reranked_claim_problems(place, compared)
                continue
            for name in [name for name in names if name in self._rows]:
                yield from unknown(f"{place}: {name}", [item], self._measured(claim, name))

    def _reranked_claim_problems(self, place: str, compared: Compared) -> Iterator[str]:
        """Yield what is wrong with a claim about BLEU: the stage tests against its translator."""
        reranking = self.rerankings.get(compared.row)
        if reranking is None:
            yield f"{place}.row: expected an entry of rerankings, found {compared.row}"
        elif compared.against != reranking.translator:
            yield (
                f"{place}.against: {compared.row} ranks translations of {reranking.translator}, "
                f"found {compared.against}"
            )

    def _measured(self, claim: Claim, recipe: str) -> list[str]:
        """Return what a measure is of, in the figures of a recipe."""
        languages = self._rows[recipe]["languages"]
        task = MEASURES[claim.measure].task
        if task == "retrieval":
            return languages
        if task == "sts":
            return [n for n, own in self.evaluations.sts.sets.items() if own.language in languages]
        return ["-".join(pair) for pair in permutations(languages, 2)]

    def _translation_problems(self) -> Iterator[str]:
        for name, recipe in self.translators.items():
            where = f"translators.{name}"
            yield from unknown(f"{where}.dataset", [recipe.dataset], self.datasets)
            hidden = [NONE, *self.datasets]
            yield from unknown(f"{where}.exclude_images", [recipe.exclude_images], hidden)
            excluded = [recipe.exclude_pairs]
            yield from unknown(f"{where}.exclude_pairs", excluded, [NONE, *self.pairs])
            yield from _one_language(where, recipe)
        for name, chosen in self.translations.items():
            yield from unknown(f"translations.{name}.dataset", [chosen.dataset], self._captions)
            if name in self.datasets:
                yield f"translations.{name}: a data set has the same name"
            where = f"translations.{name}"
            model, made = PurePath(chosen.model), [TRANSLATORS.format(n) for n in self.translators]
            if model.parent == PurePath(TRANSLATORS).parent:
                yield from unknown(f"{where}.model", [str(model)], made)
            target = chosen.target_language
            yield from unknown(f"{where}.target_language", [target], self.tokenizers)
            yield from _one_language(where, chosen)
            yield from self._translator_problems(where, chosen)

    def _translator_problems(self, where: str, chosen: Translation) -> Iterator[str]:
        """Languages of a translation that are not its translator's."""
        name = self.translator_of(chosen)
        translator = self.translators.get(name)
        for key in ("source_language", "target_language") if translator else ():
            has, found = getattr(translator, key), getattr(chosen, key)
            if has != found:
                yield f"{where}.{key}: {name}, its translator, has {has}, found {found}"

    def _pseudopair_problems(self) -> Iterator[str]:
        for name, chosen in self.pseudopairs.items():
            where = f"pseudopairs.{name}"
            yield from unknown(f"{where}.teacher", [chosen.teacher], self.recipes)
            for key in ("images_of", "captions_of"):
                side = getattr(chosen, key)
                yield from unknown(f"{where}.{key}.pairs", [side.pairs], self.pairs)
                if side.pairs in self.pairs:
                    spoken = self.pairs[side.pairs].captions
                    yield from unknown(f"{where}.{key}.language", [side.language], spoken)
            yield from unknown(f"{where}.plus", [chosen.plus], [NONE, *self.pairs])
            others = [NONE, *self.pseudopairs]
            yield from unknown(f"{where}.compare_with", [chosen.compare_with], others)
            seeds = self._rows.get(chosen.teacher, {}).get("seeds", [])
            if chosen.teacher in self._rows and not {*chosen.seeds} <= {*seeds}:
                yield f"{where}.seeds: {chosen.teacher} has {seeds}, found {chosen.seeds}"
            if name in self.pairs:
                yield f"{where}: a pair set has the same name"
            asked = {chosen.images_of.language, chosen.captions_of.language}
            unread = sorted(asked - {*self._rows.get(chosen.teacher, {}).get("languages", asked)})
            if unread:
                yield f"{where}.teacher: {chosen.teacher} does not read {', '.join(unread)}"

    def _reranking_problems(self, where: str, chosen: Reranking) -> Iterator[str]:
        row = self._rows.get(chosen.recipe, {})
        translator = self.translators.get(chosen.translator)
        yield from unknown(f"{where}.translator", [chosen.translator], self.translators)
        yield from unknown(f"{where}.recipe", [chosen.recipe], self.recipes)
        yield from unknown(f"{where}.features", [chosen.features], [NONE, *self.extractors])
        if row and chosen.pairs != row.get("pairs"):
            yield f"{where}.pairs: {chosen.recipe} has {row.get('pairs')}, found {chosen.pairs}"
        if row and not {*chosen.seeds} <= {*row.get("seeds", [])}:
            yield f"{where}.seeds: {chosen.recipe} has {row.get('seeds')}, found {chosen.seeds}"
        if "image" in chosen.similarities and chosen.features == NONE:
            yield f"{where}.similarities: image needs features, found features: {NONE}"
        if translator is None:
            return
        if chosen.dataset != translator.dataset:
            yield (
                f"{where}.dataset: {chosen.translator} has {translator.dataset}, "
                f"found {chosen.dataset}"
            )
        read = [translator.target_language]
        if "sentence" in chosen.similarities:
            read.append(translator.source_language)
        unread = sorted(set(read) - {*row.get("languages", read)})
        if unread:
            yield f"{where}.recipe: {chosen.recipe} does not read {', '.join(unread)}"

    def _translated_query_problems(self, where: str, chosen: TranslatedQueries) -> Iterator[str]:
        row = self._rows.get(chosen.recipe, {})
        translation = self.translations.get(chosen.translation)
        yield from unknown(f"{where}.recipe", [chosen.recipe], self.recipes)
        yield from unknown(f"{where}.features", [chosen.features], self.extractors)
        yield from unknown(f"{where}.translation", [chosen.translation], self.translations)
        if not row or not translation:
            return
        if translation.target_language not in row.get("languages", []):
            yield f"{where}.recipe: {chosen.recipe} does not read {translation.target_language}"
        if translation.source_language in row.get("languages", []):
            yield (
                f"{where}.recipe: expected a recipe that needs a translator, found "
                f"{chosen.recipe}, which reads {translation.source_language} itself"
            )
        if chosen.features != row["features"]:
            has = row["features"]
            yield f"{where}.features: {chosen.recipe} has {has}, found {chosen.features}"
        if row["more_features"] != NONE:
            yield (
                f"{where}.recipe: expected one with more_features: {NONE}, found {chosen.recipe}, "
                f"which has {row['more_features']}"
            )
        # The images of another data set may be among those that the recipe was trained on.
        if row.get("dataset") not in (translation.dataset, chosen.translation):
            yield (
                f"{where}.translation: {chosen.recipe} has the data set {row.get('dataset')}, "
                f"found translations of {translation.dataset}"
            )

    def _repeated_queries(self) -> Iterator[str]:
        """Yield the entries whose figures would have the name of another one's."""
        first: dict[tuple[str, ...], str] = {}
        for name, chosen in self.translated_queries.items():
            made = self.translations.get(chosen.translation)
            if made:
                pair = made.source_language, made.target_language
                other = first.setdefault((chosen.recipe, *pair), name)
                if other != name:
                    yield (
                        f"translated_queries.{name}: {other} has the recipe {chosen.recipe} and "
                        f"translations from {' to '.join(pair)}, too. Keep one of the two"
                    )

    def _growth_problems(self, where: str, chosen: Growth) -> Iterator[str]:
        name = where.removeprefix("growth.")
        row = self._rows.get(name, {})
        yield from unknown(where, [name], self.recipes)
        for key in ("pairs", "features", "word_vectors"):
            if row and getattr(chosen, key) != row[key]:
                yield f"{where}.{key}: the recipe has {row[key]}, found {getattr(chosen, key)}"
        for key in ("more_features", "initial", "lexicon"):
            if row and row[key] != NONE:
                yield f"{where}: expected a recipe with {key}: {NONE}, found {row[key]}"
        if row and not {*chosen.seeds} <= {*row["seeds"]}:
            yield f"{where}.seeds: the recipe has {row['seeds']}, found {chosen.seeds}"
        made = self.word_vectors.get(chosen.word_vectors)
        source = f"data/pairs/{chosen.pairs}.parquet"
        if getattr(made, "method", None) != "latent_semantic" or made.source != source:
            yield (
                f"{where}.word_vectors: expected an entry of word_vectors with method: "
                f"latent_semantic and source: {source}, found {chosen.word_vectors}"
            )

    def _form_problems(self, name: str) -> Iterator[str]:
        """Yield what is wrong with the keys and values of a recipe, whatever others hold."""
        where, row = f"recipes.{name}", self.recipes[name]
        if "paper" not in row:
            yield f"{where}.paper: missing. Legal names: {', '.join(sorted(self.papers))}"
            return
        if str(row["paper"]) not in self.papers:
            yield from unknown(f"{where}.paper", [str(row["paper"])], self.papers)
            return
        try:
            form, values = self._merged(row)
            form.model_validate(values)
        except SettingsError as error:
            yield f"{where}: {error}"
        except ValidationError as error:
            for problem in readable(error, form, "", partial(part_of, values=values)):
                yield f"{self._place(name, re.split('[.:]', problem)[0])}.{problem}"

    def _recipe_problems(self, name: str) -> Iterator[str]:
        if problems := [*self._form_problems(name)]:
            yield from problems
            return
        where, recipe = f"recipes.{name}", self.recipe(name)
        for key, known in {
            "dataset": self._captions,
            "pairs": [*self.pairs, *self.pseudopairs],
            "features": self.extractors,
            "more_features": [NONE, *self.extractors],
            "initial": [NONE, *self.recipes],
            "word_vectors": [RANDOM, *self.word_vectors],
            "lexicon": [NONE, *self.lexicons],
        }.items():
            yield from unknown(f"{where}.{key}", [getattr(recipe, key)], known)
        yield from unknown(f"{where}.languages", recipe.languages, self.pools)
        yield from (f"{where}.{problem}" for problem in contradictions(recipe))
        yield from self._word_problems(where, recipe)
        yield from _unread(where, recipe)
        borrowed = self.pseudopairs.get(recipe.pairs)
        if borrowed and not {*recipe.seeds} <= {*borrowed.seeds}:
            yield (
                f"{where}.seeds: {recipe.pairs} has a teacher for each of {borrowed.seeds}, "
                f"found {recipe.seeds}"
            )
        yield from self._continuation_problems(where, recipe)
        if recipe.batch_size == 1:
            yield f"{where}.batch_size: expected 2 or more: one has no wrong candidate to beat"

    def _word_problems(self, where: str, recipe: Recipe) -> Iterator[str]:
        """Sizes of words, and languages of a lexicon, that are not the recipe's."""
        size = getattr(self.word_vectors.get(recipe.word_vectors), "dim", recipe.word_dim)
        if recipe.word_dim != size:
            yield (
                f"{where}.word_dim: expected {size}, as {recipe.word_vectors} has, "
                f"found {recipe.word_dim}"
            )
        lexicon = self.lexicons.get(recipe.lexicon)
        if lexicon and recipe.fits_maps and {*lexicon.languages} != {*recipe.languages}:
            yield (
                f"{where}.lexicon: {recipe.lexicon} translates {' and '.join(lexicon.languages)}, "
                f"the recipe has {', '.join(recipe.languages)}"
            )

    def _continuation_problems(self, where: str, recipe: Recipe) -> Iterator[str]:
        """A continued recipe has the vocabulary and the layers of the one that it continues."""
        before = self._rows.get(recipe.initial, {})
        own = recipe.model_dump()
        keys = [key for key in (*VOCABULARY_KEYS, *LAYER_KEYS) if key in before and key in own]
        differing = [key for key in keys if before[key] != own[key]]
        if before and not _same_tables(before, own):
            differing.append("languages")
        for key in differing:
            yield (
                f"{where}.{key}: {recipe.initial}, which it continues, has {before[key]!r}; "
                f"found {own[key]!r}"
            )


def _unread(where: str, recipe: Recipe) -> Iterator[str]:
    """Yield the inputs that training would not read."""
    if recipe.lexicon != NONE and not recipe.learns_lexicon:
        yield (
            f"{where}.lexicon: expected {NONE}, as the objective {recipe.objective} reads none, "
            f"found {recipe.lexicon}"
        )
    if recipe.initial != NONE and recipe.word_vectors != RANDOM:
        yield (
            f"{where}.word_vectors: expected {RANDOM}, as words start from {recipe.initial}, "
            f"found {recipe.word_vectors}"
        )


def _same_tables(before: Mapping[str, object], own: Mapping[str, object]) -> bool:
    """Return whether the languages of a recipe find the layers of the one that it continues.

    Args:
        before: Values of the recipe that is continued.
        own: Values of the recipe that continues it.
    """
    if own.get("orthogonal_map"):
        # The words of the first language are not mapped.
        return (before["languages"][0], {*before["languages"]}) == (
            own["languages"][0],
            {*own["languages"]},
        )
    shared = ("vocabulary", "recurrent_sharing", "projection")
    of_each = any(own.get(key) == "per_language" for key in shared)
    if of_each or own.get("universal_dim", NONE) != NONE:
        return {*before["languages"]} == {*own["languages"]}
    return {*before["languages"]} >= {*own["languages"]}


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
    content = read_yaml(path)
    for key in ("papers", "shared"):
        if key in content:
            raise SettingsError(
                f"{path.name}: {key}: unknown key. What papers fix stands in {PAPERS}."
            )
    root = content.get("root", ".")
    papers = path.parent / str(root) / PAPERS
    if not papers.is_file():
        problem = (
            f"root: expected the folder that holds {PAPERS}, found {root!r}: in "
            "studies/NAME it is checkout, in the root of Polyview it is ."
        )
        _raise(path, [problem])
    content["papers"] = fixed = read_yaml(papers)
    content["shared"] = fixed.pop("shared", {})
    try:
        settings = Settings.model_validate(content)
    except ValidationError as error:
        _raise(path, chain(readable(error, Settings, ""), _of_recipes(content, error)))
    _raise(path, settings.reference_problems())
    return settings


def _of_recipes(content: Mapping[str, object], error: ValidationError) -> Iterator[str]:
    """Yield what is wrong within recipes, unless a section that they are merged from is wrong."""
    layers = {"shared", "papers", "departures", "recipes"}
    if layers.isdisjoint(str(item["loc"][0]) for item in error.errors()):
        whole = Settings.model_construct(**{key: content[key] for key in layers})
        for name in whole.recipes:
            yield from whole._form_problems(name)


def _one_language(where: str, chosen: AnyTranslator | Translation) -> Iterator[str]:
    """Yield that something would translate a language into itself."""
    target = chosen.target_language
    if chosen.source_language == target:
        yield f"{where}.target_language: expected another than the source's, found {target}"


def modules_of(sections: Iterable[str]) -> set[str]:
    """Return the modules that describe sections of params.yaml, as paths."""

    def modules(annotation: object) -> Iterator[str]:
        if isinstance(annotation, type) and annotation.__module__.startswith(__package__):
            yield annotation.__module__.replace(".", "/") + ".py"
        for part in get_args(annotation):
            yield from modules(part)

    fields = Settings.model_fields
    return {name for section in sections for name in modules(fields[section].annotation)}


def _raise(path: Path, problems: Iterable[str]) -> None:
    listed = "\n".join(f"  - {problem}" for problem in lines_of(path, problems))
    if listed:
        raise SettingsError(f"{path.name} cannot be used:\n{listed}")
