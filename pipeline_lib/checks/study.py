"""The check of a whole study: what would fail, or mislead, after hours of work."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePath

from pipeline_lib.checks.data import Data, known_data, raw_folder, world_of
from pipeline_lib.checks.features import mixed_features
from pipeline_lib.checks.files import file_problems, missing_files, named_files
from pipeline_lib.checks.leaks import builds_upon, leaks
from pipeline_lib.checks.memory import extractor_bytes, recipe_bytes, too_large, translator_bytes
from pipeline_lib.checks.photos import photos_in_two_splits
from pipeline_lib.checks.selections import lender_problems, nothing_left
from pipeline_lib.checks.shown import Photos, of_kinds, photos_of_rows, source_of
from pipeline_lib.checks.translated import (
    reranking_problems,
    translation_problems,
    translator_problems,
)
from pipeline_lib.contract.problems import raise_problems, warn
from pipeline_lib.contract.recalls import CHANCE_DEVIATIONS, PERFECT_RECALL_SUM, chance_recall_sums
from pipeline_lib.contract.reports import RECALL_SUM
from pipeline_lib.contract.tables import TRAIN, VAL
from pipeline_lib.corpora.columns import SPLITS
from pipeline_lib.corpora.corpus import intended_split
from pipeline_lib.corpora.world.generate import argument_problems, drawn_files
from pipeline_lib.images.backbones import BACKBONES
from pipeline_lib.images.transforms import TRANSFORMS, crop_problems
from pipeline_lib.publishing import digest_in_name
from pipeline_lib.settings.images import Extractor
from pipeline_lib.settings.messages import lines_of
from pipeline_lib.settings.recipes import Recipe
from pipeline_lib.settings.strict import NONE, suggest, unknown
from pipeline_lib.settings.study import PARAMS, Settings


@dataclass
class Findings:
    """What a check found; each sentence begins with a key of params.yaml.

    Attributes:
        problems: What would fail.
        missing: Files and folders that are not there: a stage would fail, unless DVC's cache has
            what it makes of them.
        warnings: What may be meant.
    """

    problems: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def check_before_work(settings: Settings, dataset: str | None = None) -> None:
    """Raise what is wrong with the study in the current folder, and warn of what may be meant.

    Args:
        settings: Of the study.
        dataset: Whose files alone are read: the others' are as they were.

    Raises:
        ContractError: Lists all that would fail.
    """
    found = check_study(settings, dataset)
    for sentence in lines_of(PARAMS, [*found.warnings, *found.missing]):
        warn(f"{PARAMS}: {sentence}")
    raise_problems(PARAMS, lines_of(PARAMS, found.problems))


def check_study(settings: Settings, dataset: str | None = None) -> Findings:
    """Check the study in the current folder, or what one data set of it may have wrong."""
    found = Findings()
    data = known_data(settings, found.problems, found.missing, dataset)
    check = _Check(settings, data)
    for problem in (
        check.worlds(), check.splits(), check.languages(), check.extractors(), check.pairs(),
        nothing_left(settings, data), check.translators(), translator_problems(settings, data),
        translation_problems(settings, data), lender_problems(settings, data), check.recipes(),
        mixed_features(settings, check.all), reranking_problems(settings, check.all, data),
        leaks(settings, check.all, data), check.growth(), check.memory(),
    ):  # fmt: skip
        found.problems += dict.fromkeys(problem)
    found.problems += file_problems(settings)
    found.missing += missing_files(settings, data)
    found.warnings += check.suspicious()
    return found


class _Check:
    def __init__(self, settings: Settings, data: dict[str, Data]) -> None:
        self.settings, self.data = settings, data
        self.all = {name: settings.recipe(name) for name in settings.recipes}
        self.split = settings.evaluations.retrieval.split

    @cached_property
    def rows(self) -> dict[str, Photos]:
        """Photos of the rows of each pair set; none that a stage draws."""
        return photos_of_rows(self.settings, self.data)

    def worlds(self) -> Iterator[str]:
        """Worlds that cannot be drawn, and what others expect of them that they do not have."""
        for name, world in self.settings.worlds.items():
            asked = argument_problems(**world.model_dump(exclude={"seed"}))
            yield from (f"worlds.{name}: {problem}" for problem in asked)
        for name, extractor in self.settings.extractors.items():
            world = world_of(self.settings, extractor.images)
            if world and PurePath(extractor.images) != raw_folder(world) / "images":
                yield (
                    f"extractors.{name}.images: expected {raw_folder(world) / 'images'}, where the "
                    f"world {world} has its photos, found {extractor.images}"
                )
        for key, path in named_files(self.settings):
            if world := world_of(self.settings, path):
                yield from self._undrawn(key, path, world)

    def _undrawn(self, key: str, path: Path, world: str) -> Iterator[str]:
        drawn = self.settings.worlds[world]
        file = path.relative_to(raw_folder(world)).as_posix()
        files = drawn_files(drawn.graded_pairs, drawn.parallel)
        if file not in files:
            yield (
                f"{key}: expected a file that the world {world} writes into {raw_folder(world)}, "
                f"found {file}.{suggest(file, files)}"
            )

    def splits(self) -> Iterator[str]:
        """Splits that training and evaluation need, with two photos to tell apart."""
        sets = self.settings.pairs.values()
        validated = {chosen.dataset for chosen in sets if chosen.validation_kinds}
        for name in sorted({chosen.dataset for chosen in sets}):
            photos = self.data[name].photos if name in self.data else {}
            asked = ("train", "val") if name in validated else ("train",)
            for split in asked if photos else ():
                if photos.get(split, 0) < 2:
                    yield (
                        f"datasets.{name}: expected 2 photos or more in the split {split}, found "
                        f"{photos.get(split, 0)} ({_listed(photos)}){_meant(split, photos)}"
                    )
        if self.split == TRAIN:
            yield "evaluations.retrieval.split: expected photos that no recipe learns, found train"
        for recipe in self.all.values():
            photos = self.data[recipe.dataset].photos if recipe.dataset in self.data else {}
            if photos and self.split not in photos:
                yield (
                    f"evaluations.retrieval.split: expected a split of {recipe.dataset}, found "
                    f"{self.split!r}.{suggest(self.split, photos)}"
                )

    def languages(self) -> Iterator[str]:
        """Languages that cannot become tokens, and those that a lexicon finds no words in."""
        for name in self.settings.datasets.keys() & self.data.keys():
            spoken = {language for _, language, _ in self.data[name].captions}
            for language in sorted(spoken - {*self.settings.tokenizers}):
                yield (
                    f"datasets.{name}: has captions in {language}, found no tokenizer for it. Add "
                    f"tokenizers.{language}"
                )
        for name, lexicon in self.settings.lexicons.items():
            learnt = self._languages(lexicon.pairs)
            for language in lexicon.languages if learnt else ():
                if language not in learnt:
                    yield (
                        f"lexicons.{name}.languages: {language} is in no captions of the pair set "
                        f"{lexicon.pairs}, which has {', '.join(sorted(learnt))}"
                    )

    def extractors(self) -> Iterator[str]:
        """Backbones that there are not, and settings that contradict each other."""
        for name, extractor in self.settings.extractors.items():
            yield from unknown(f"extractors.{name}.backbone", [extractor.backbone], BACKBONES)
            yield from (f"extractors.{name}.{problem}" for problem in crop_problems(extractor))
            yield from (f"extractors.{name}.{problem}" for problem in _weights_problems(extractor))

    def pairs(self) -> Iterator[str]:
        """Kinds of captions that a pair set asks for, in the splits that it takes."""
        for name, chosen in self.settings.pairs.items():
            data = self.data.get(chosen.dataset)
            for language, kinds in chosen.captions.items() if data else ():
                where = f"pairs.{name}.captions.{language}"
                there = data.annotations("train", language)
                for kind in set(kinds) - set(there):
                    yield _lacking(where, kind, "train", chosen.dataset, there)
            for language, kinds in chosen.validation_kinds.items() if data else ():
                there = data.annotations("val", language)
                if not set(kinds) & set(there):
                    key = "captions" if chosen.validation == "same" else "validation"
                    where = f"pairs.{name}.{key}.{language}"
                    yield _lacking(where, " or ".join(kinds), "val", chosen.dataset, there)

    def translators(self) -> Iterator[str]:
        """Languages that a translator learns from."""
        for name, chosen in self.settings.translators.items():
            data = self.data.get(chosen.dataset)
            for key in ("source_language", "target_language") if data else ():
                language = getattr(chosen, key)
                if language not in data.languages("train"):
                    yield (
                        f"translators.{name}.{key}: {chosen.dataset} has no captions in {language} "
                        f"in the split train. It has {', '.join(sorted(data.languages('train')))}"
                    )

    def recipes(self) -> Iterator[str]:
        """What a recipe learns from and is tested on; without one there is nothing to report."""
        if not self.all:
            yield "recipes: expected 1 or more, found none"
        for name, recipe in self.all.items():
            where = f"recipes.{name}"
            yield from self._language_problems(where, recipe)
            data = self.data.get(recipe.dataset)
            if data and self.split in data.photos:
                yield from self._pool_problems(recipe, data)
            yield from self._crop_problems(where, recipe)
            yield from self._feature_problems(where, recipe)

    def _language_problems(self, where: str, recipe: Recipe) -> Iterator[str]:
        """Languages that a recipe cannot learn, or whose learning nothing would measure."""
        learnt, validated = self._languages(recipe.pairs), self._validated(recipe.pairs)
        for language in recipe.languages:
            for kind, known in (("", learnt), ("validation ", validated)):
                if known is not None and language not in known:
                    yield (
                        f"{where}.languages: {language} is in no {kind}captions of the pair set "
                        f"{recipe.pairs}, which has {', '.join(sorted(known)) or 'none'}"
                    )
                    break

    def _crop_problems(self, where: str, recipe: Recipe) -> Iterator[str]:
        """Crops that a recipe chooses among, and an extractor does not keep side by side."""
        extractor = self.settings.extractors.get(recipe.features)
        wanted = getattr(recipe, "image_crops", None)
        made = TRANSFORMS[extractor.transform].vectors if extractor else wanted
        if wanted is not None and wanted != made:
            yield (
                f"{where}.image_crops: expected {made}, as many as {recipe.features} keeps of an "
                f"image by transform {extractor.transform}, found {wanted}"
            )

    def _pool_problems(self, recipe: Recipe, data: Data) -> Iterator[str]:
        for language in recipe.languages:
            kind, there = self.settings.pools[language], data.annotations(self.split, language)
            if kind not in there:
                yield _lacking(f"pools.{language}", kind, self.split, recipe.dataset, there)
            elif len(data.captioned.get((self.split, language, kind), ())) == 1:
                yield (
                    f"pools.{language}: expected {kind}s of 2 photos or more in the split "
                    f"{self.split} of {recipe.dataset}, found one photo: alone it ranks first "
                    "whatever was learnt. Add captions, or another split or language"
                )

    def _feature_problems(self, where: str, recipe: Recipe) -> Iterator[str]:
        """Photos that a recipe reads and no extractor of its features has."""
        extractors, seen = self._seen(recipe)
        sets = {self.settings.extractors[extractor].dataset for extractor in extractors}
        taught = () if recipe.reads_text_alone else self._datasets(recipe.pairs)
        read = {recipe.dataset, *taught}
        for name in sorted(read):
            photos = self._photos(name)
            if photos is None or seen is None:
                continue
            lacking = photos - seen
            if lacking:
                yield (
                    f"{where}.features: {len(lacking):,} photos of {name} (first: "
                    f"{min(lacking)}) have no features by {' and '.join(extractors)}, of "
                    f"{', '.join(sorted(sets))}. Name an extractor of {name} in more_features"
                )
        if recipe.reads_text_alone and seen is not None:
            yield from self._text_problems(where, recipe, extractors, seen)

    def _text_problems(
        self, where: str, recipe: Recipe, extractors: list[str], seen: set[str]
    ) -> Iterator[str]:
        """Photos without features where a recipe that reads text alone needs them, too."""
        without = f"by {' and '.join(extractors)}"
        for name in self.settings.pair_sets(recipe.pairs):
            if lacking := self.rows[name][VAL] - seen:
                yield (
                    f"{where}.pairs: expected features of all validation photos, {name} has "
                    f"{len(lacking):,} (first: {min(lacking)}) without {without}. Leave their "
                    f"captions out by pairs.{name}.validation, or name their extractor in "
                    "more_features"
                )
        learnt = self._learnt(recipe.pairs)
        if learnt and not learnt & seen:
            yield (
                f"{where}.features: expected features of some of the {len(learnt):,} training "
                f"photos of {recipe.pairs}, found none {without}. Name their extractor"
            )

    def _seen(self, recipe: Recipe) -> tuple[list[str], set[str] | None]:
        """Return a recipe's extractors and the photos that they see; None if some are unknown."""
        extractors = [e for e in (recipe.features, recipe.more_features) if e != NONE]
        photos = [self._photos(self.settings.extractors[e].dataset) for e in extractors]
        return extractors, None if None in photos else set().union(*photos)

    def _photos(self, dataset: str) -> set[str] | None:
        """Return the ids of a data set's photos, a name for all that are drawn; None if unknown."""
        dataset = source_of(self.settings, dataset)
        data = self.data.get(dataset)
        if data is None:
            return None
        return {f"{dataset}:*"} if data.images is None else set(data.images["image_id"])

    def _datasets(self, pairs: str) -> set[str]:
        own = self.settings.pairs
        borrowed = self.settings.pseudopairs
        names = self.settings.pair_sets(pairs)
        more = [borrowed[name].images_of.pairs for name in names if name in borrowed]
        return {own[name].dataset for name in [*names, *more] if name in own}

    def _languages(self, pairs: str) -> set[str] | None:
        own, borrowed = self.settings.pairs, self.settings.pseudopairs
        found: set[str] = set()
        for name in self.settings.pair_sets(pairs):
            found |= {*own[name].captions} if name in own else {borrowed[name].captions_of.language}
        return found or None

    def _validated(self, pairs: str) -> set[str] | None:
        """Return the languages of validation captions; None if there is no such pair set.

        A teacher lends training captions alone.
        """
        own, chain = self.settings.pairs, self.settings.pair_sets(pairs)
        sets = [own[name] for name in chain if name in own]
        return {language for each in sets for language in each.validation_kinds} if chain else None

    def _training_captions(self, recipe: Recipe) -> int | None:
        """Return how many captions a recipe can draw a batch from at most; None if unknown."""
        total = 0
        for name in self.settings.pair_sets(recipe.pairs):
            chosen = self.settings.pairs.get(name)
            data = self.data.get(chosen.dataset) if chosen else None
            if data is None:
                return None
            total += sum(
                data.captions.get(("train", language, kind), 0)
                for language, kinds in chosen.captions.items()
                for kind in kinds
            )
        return total

    def _largest_batch(self, recipe: Recipe) -> int | None:
        """Return how many of what batches hold a recipe has at most; None if unknown."""
        captions = self._training_captions(recipe)
        if recipe.batch_of == "captions" or captions is None:
            return captions
        datasets = {
            source_of(self.settings, self.settings.pairs[name].dataset)
            for name in self.settings.pair_sets(recipe.pairs)
        }
        return sum(self.data[name].photos.get("train", 0) for name in datasets)

    def growth(self) -> Iterator[str]:
        """Runs on fewer photos or languages with fewer photos than their vectors have numbers."""
        for name, chosen in self.settings.growth.items():
            dim = self.settings.word_vectors[chosen.word_vectors].dim
            photos = self._photos_learnt(self.all[name])
            for share in chosen.photos if photos else ():
                if (left := round(share * photos)) < dim:
                    yield (
                        f"growth.{name}.photos: expected {dim} photos or more, as many as "
                        f"{chosen.word_vectors} has numbers, found {left}, {share} of {photos}. "
                        "Make the share larger"
                    )
            yield from self._growth_in_languages(name, dim)

    def _growth_in_languages(self, name: str, dim: int) -> Iterator[str]:
        """Yield the first languages of a recipe that too few training photos have captions in."""
        recipe, learnt = self.all[name], set()
        sets = [self.settings.pairs.get(pairs) for pairs in self.settings.pair_sets(recipe.pairs)]
        data = [self.data.get(own.dataset) if own else None for own in sets]
        if any(each is None or each.images is None for each in data):
            return  # what a stage draws, or lends, is not known yet
        for language in recipe.languages[:-1]:
            learnt |= self._captioned(recipe.pairs, language)
            if len(learnt) >= dim:
                return
            yield (
                f"growth.{name}: expected captions of {dim} training photos or more in the first "
                f"languages of the recipe, up to {language}, as many as its word vectors have "
                f"numbers, found {len(learnt)}. Name a language that more photos have first"
            )

    def _captioned(self, pairs: str, language: str) -> set[str]:
        """Return the ids of the training photos of pair sets with captions of a language."""
        found = set()
        for name in self.settings.pair_sets(pairs):
            own = self.settings.pairs[name]
            kinds = {language: own.captions.get(language, [])}
            found |= self.rows[name][TRAIN] & of_kinds(self.data[own.dataset], TRAIN, kinds)
        return found

    def _photos_learnt(self, recipe: Recipe) -> int:
        """Return how many training photos with features a recipe has (most, of drawn ones)."""
        _, seen = self._seen(recipe)
        data = self.data.get(recipe.dataset)
        if data is None or seen is None:
            return 0
        if data.images is None:
            return data.photos.get(TRAIN, 0)
        return len(self._learnt(recipe.pairs) & seen)

    def _learnt(self, pairs: str) -> set[str]:
        """Return the ids of the training photos of a pair set and of its ``plus``."""
        return set().union(*(self.rows[name][TRAIN] for name in self.settings.pair_sets(pairs)))

    def memory(self) -> Iterator[str]:
        """Sizes that cannot fit."""
        for name, recipe in self.all.items():
            captions = self._training_captions(recipe)
            needed = recipe_bytes(recipe, recipe.batch_size if captions is None else captions)
            yield from too_large(f"recipes.{name}", needed, "sizes of layers and batch_size")
        for name, translator in self.settings.translators.items():
            needed = translator_bytes(translator)
            yield from too_large(f"translators.{name}", needed, "sizes of layers")
        for name, extractor in self.settings.extractors.items():
            needed = extractor_bytes(extractor)
            yield from too_large(f"extractors.{name}", needed, "batch_size, crop and resize")

    def suspicious(self) -> Iterator[str]:
        """What may be meant."""
        if self.split == VAL:
            yield (
                "evaluations.retrieval.split: val are the photos that choose the weights of each "
                "recipe: figures of them flatter it. Name a split that nothing has seen"
            )
        for name, data in self.data.items():
            for split in sorted(data.photos.keys() - {*SPLITS, self.split}):
                if (meant := intended_split(split)) and name in self.settings.datasets:
                    yield (
                        f"datasets.{name}: nothing uses the {data.photos[split]} photos of the "
                        f"split {split!r}. Did you mean {meant!r}?"
                    )
        yield from self._unread_languages()
        yield from self._unmeasured_languages()
        for name, recipe in self.all.items():
            yield from self._crops_side_by_side(f"recipes.{name}", recipe)
            yield from self._few_to_validate(f"recipes.{name}", recipe)
            yield from self._photos_read_as_text(f"recipes.{name}", recipe)
            yield from self._learnt_by_another(name, recipe)
        for name, extractor in self.settings.extractors.items():
            data = self.data.get(extractor.dataset)
            if data and data.images is not None:
                twins = photos_in_two_splits(data.images, Path(extractor.images))
                yield from (f"extractors.{name}.images: {each}" for each in twins)
        for name, recipe in self.all.items():
            most = self._largest_batch(recipe)
            if most is not None and most < recipe.batch_size:
                yield (
                    f"recipes.{name}.batch_size: {recipe.batch_size} is more than the {most} "
                    f"training {recipe.batch_of} of {recipe.pairs}: each batch is all of them"
                )

    def _unread_languages(self) -> Iterator[str]:
        """Languages of raw data sets that no pair set and no translator names."""
        sets = self.settings.pairs.values()
        read = {language for own in sets for language in {*own.captions, *own.validation_kinds}}
        for translator in self.settings.translators.values():
            read |= {translator.source_language, translator.target_language}
        for name in self.settings.datasets.keys() & self.data.keys():
            captions = self.data[name].captions
            for language in sorted({language for _, language, _ in captions} - read):
                count = sum(n for (_, own, _), n in captions.items() if own == language)
                yield (
                    f"datasets.{name}: nothing uses the {count:,} captions in {language}. Name it "
                    "in captions of pairs, in pools, and in languages of the recipe"
                )

    def _unmeasured_languages(self) -> Iterator[str]:
        """Languages that figures are asked for, and that no recipe reads."""
        read = {language for recipe in self.all.values() for language in recipe.languages}
        asked = {f"pools.{language}": language for language in self.settings.pools}
        asked |= {
            f"evaluations.sts.sets.{name}": chosen.language
            for name, chosen in self.settings.evaluations.sts.sets.items()
        }
        for where, language in asked.items():
            if language not in read:
                yield f"{where}: no recipe reads {language}. Name it in languages of the recipe"

    def _crops_side_by_side(self, where: str, recipe: Recipe) -> Iterator[str]:
        """Outputs of an image that a head takes for one, where another chooses among them."""
        extractor = self.settings.extractors.get(recipe.features)
        made = TRANSFORMS[extractor.transform].vectors if extractor else 1
        if made > 1 and not hasattr(recipe, "image_crops"):
            yield (
                f"{where}.image_head: {recipe.image_head} reads the {made} vectors that "
                f"{recipe.features} keeps of an image as one. Take residual, which has "
                "image_crops, or another transform"
            )

    def _photos_read_as_text(self, where: str, recipe: Recipe) -> Iterator[str]:
        """Data sets of which a recipe reads captions alone, though an extractor has the photos."""
        _, seen = self._seen(recipe)
        if seen is None or not recipe.reads_text_alone:
            return
        for name in sorted(self._datasets(recipe.pairs)):
            source, photos = source_of(self.settings, name), self._photos(name)
            extractors = self.settings.extractors.items()
            having = [key for key, each in extractors if each.dataset == source]
            if having and photos and photos - seen:
                yield (
                    f"{where}.more_features: {len(photos - seen):,} photos of {name} are read as "
                    f"text alone, though {' and '.join(having)} has their features. Name it there, "
                    "if the recipe is to see them"
                )

    def _learnt_by_another(self, name: str, recipe: Recipe) -> Iterator[str]:
        """Pair sets of the models it builds upon, whose captions its figures take for unseen."""
        sets = self.settings.evaluations.sts.sets.values()
        if not {chosen.language for chosen in sets}.intersection(recipe.languages):
            return
        own = {*self.settings.pair_sets(recipe.pairs)}
        for other in sorted(builds_upon(self.settings, self.all, name).keys() - {name}):
            for pairs in self.settings.pair_sets(self.all[other].pairs):
                if pairs not in own:
                    yield (
                        f"recipes.{name}: {other}, on which it builds, has learnt {pairs}, whose "
                        "captions count as unseen in its sentence similarity: as seen counts what "
                        f"is in {recipe.pairs}. Read that figure of all pairs, not of the unseen"
                    )

    def _few_to_validate(self, where: str, recipe: Recipe) -> Iterator[str]:
        """A recipe whose validation photos cannot tell what is learnt from chance."""
        photos, captions = self._validation(recipe)
        if not all(captions.values()) or recipe.select_by != RECALL_SUM:
            return
        chance, deviation = chance_recall_sums([(photos, count) for count in captions.values()])
        highest = PERFECT_RECALL_SUM * len(captions)
        if chance + CHANCE_DEVIATIONS * deviation >= highest:
            yield (
                f"{where}: {photos} validation photos are too few to tell what is learnt from "
                f"chance, whose sum of recalls is {chance:.0f} ± {deviation:.0f} of {highest}. "
                "Give more photos the split val"
            )

    def _validation(self, recipe: Recipe) -> tuple[int, dict[str, int]]:
        """Return a recipe's validation photos and captions by language; 0 of what is not known."""
        counts, photos = dict.fromkeys(recipe.languages, 0), 0
        for name in self.settings.pair_sets(recipe.pairs):
            chosen = self.settings.pairs.get(name)
            data = self.data.get(chosen.dataset) if chosen else None
            kinds = chosen.validation_kinds if data else {}
            photos = max(photos, data.photos.get(VAL, 0) if kinds else 0)
            for language in kinds.keys() & counts.keys():
                counts[language] += sum(
                    data.captions.get((VAL, language, kind), 0) for kind in kinds[language]
                )
        return photos, counts


def _weights_problems(extractor: Extractor) -> Iterator[str]:
    """Yield how its weights are named amiss."""
    weights, known = extractor.weights, BACKBONES.get(extractor.backbone)
    if not extractor.weights_are_named and not digest_in_name(Path(weights)):
        yield (
            "weights: expected a file named after the first 8 digits of its SHA-256, such as "
            f"resnet50-0676ba61.pth, found {weights}"
        )
    if known and extractor.weights_are_named:
        yield from unknown("weights", [weights], known.weights)


def _lacking(where: str, kind: str, split: str, dataset: str, there: list[str]) -> str:
    found = ", ".join(there) or "no captions in that language"
    return f"{where}: {dataset} has none of the kind {kind} in the split {split}. It has {found}"


def _listed(photos: dict[str, int]) -> str:
    return ", ".join(f"{split}: {count}" for split, count in sorted(photos.items()))


def _meant(split: str, photos: dict[str, int]) -> str:
    """Return a hint at a split that is there by another name."""
    other = [name for name in photos if name not in SPLITS and intended_split(name) == split]
    return f". Did you mean {split!r} for {other[0]!r}?" if other else ""
