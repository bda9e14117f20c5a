"""What a study may not mean: sentences that warn."""

from collections.abc import Iterator
from itertools import combinations
from math import inf
from pathlib import Path

from pipeline_lib.checks.features import vectors_of
from pipeline_lib.checks.files import unseen_changes
from pipeline_lib.checks.known import Known
from pipeline_lib.checks.photos import photos_in_two_splits
from pipeline_lib.checks.shown import builds_upon, learnt_pair_sets, source_of
from pipeline_lib.contract.recalls import CHANCE_DEVIATIONS, PERFECT_RECALL_SUM, chance_recall_sums
from pipeline_lib.contract.reports import RECALL_SUM
from pipeline_lib.contract.tables import TRAIN, VAL
from pipeline_lib.corpora.columns import SPLITS
from pipeline_lib.corpora.corpus import intended_split
from pipeline_lib.settings.corpora import PairSet
from pipeline_lib.settings.recipes import Recipe
from pipeline_lib.settings.references.recipes import INPUTS
from pipeline_lib.settings.strict import NONE


def suspicious(known: Known) -> Iterator[str]:
    """Yield what may be meant, and more likely is not."""
    if known.split == VAL:
        yield (
            "evaluations.retrieval.split: val are the photos that choose the weights of each "
            "recipe: figures of them flatter it. Name a split that nothing has seen"
        )
    yield from _unused_splits(known)
    yield from _unread_languages(known)
    yield from _unmeasured_languages(known)
    yield from _idle_departures(known)
    for name, recipe in known.recipes.items():
        yield from _crops_side_by_side(known, f"recipes.{name}", recipe)
        yield from _few_to_validate(known, f"recipes.{name}", recipe)
        yield from _photos_read_as_text(known, f"recipes.{name}", recipe)
        yield from _seeds_of_one_start(known, name, recipe)
        yield from _learnt_by_another(known, name, recipe)
        yield from _between_languages(known, name, recipe)
        yield from _words_at_random(known, name, recipe)
    yield from _nothing_compared(known)
    yield from _growth_by_a_teacher(known)
    yield from _halves_that_overlap(known)
    yield from _equal_photos(known)
    yield from unseen_changes(known)
    yield from _batches_of_all(known)


def _growth_by_a_teacher(known: Known) -> Iterator[str]:
    """Runs on fewer photos that learn captions of the photos that they do without."""
    for name in known.settings.growth:
        for pairs in known.settings.pair_sets(known.recipes[name].pairs):
            if borrowed := known.settings.pseudopairs.get(pairs):
                yield (
                    f"growth.{name}: {borrowed.teacher} chose the captions of {pairs} among those "
                    "of all photos, also of such as a run is to do without. What photos bring, "
                    "curves of a recipe without pseudopairs say"
                )


def _unused_splits(known: Known) -> Iterator[str]:
    """Splits that nothing reads, by a name that may stand for another."""
    for name, data in known.data.items():
        for split in sorted(data.photos.keys() - {*SPLITS, known.split}):
            if (meant := intended_split(split)) and name in known.settings.datasets:
                yield (
                    f"datasets.{name}: nothing uses the {data.photos[split]} photos of the "
                    f"split {split!r}. Did you mean {meant!r}?"
                )


def _unread_languages(known: Known) -> Iterator[str]:
    """Languages of raw data sets that no pair set and no translator names."""
    sets = known.settings.pairs.values()
    read = {language for own in sets for language in {*own.captions, *own.validation_kinds}}
    for translator in known.settings.translators.values():
        read |= {translator.source_language, translator.target_language}
    read |= {each.source_language for each in known.settings.translations.values()}
    for name in known.settings.datasets.keys() & known.data.keys():
        captions = known.data[name].captions
        for language in sorted({language for _, language, _ in captions} - read):
            count = sum(n for (_, own, _), n in captions.items() if own == language)
            yield (
                f"datasets.{name}: nothing uses the {count:,} captions in {language}. Name it "
                "in captions of pairs, in pools, and in languages of the recipe"
            )


def _unmeasured_languages(known: Known) -> Iterator[str]:
    """Languages that figures are asked for, and that no recipe reads."""
    read = {language for recipe in known.recipes.values() for language in recipe.languages}
    asked = {f"pools.{language}": language for language in known.settings.pools}
    asked |= {
        f"evaluations.sts.sets.{name}": chosen.language
        for name, chosen in known.settings.evaluations.sts.sets.items()
    }
    for where, language in asked.items():
        if language not in read:
            yield f"{where}: no recipe reads {language}. Name it in languages of the recipe"


def _idle_departures(known: Known) -> Iterator[str]:
    """Departures that concern no recipe."""
    recipes, departures = known.recipes.values(), known.settings.departures
    for key, value in departures.items():
        own = [recipe for recipe in recipes if key in (recipe.paper, *type(recipe).model_fields)]
        if not own:
            yield f"departures.{key}: it concerns no recipe of this study. Remove it"
        elif key in ("paper", *INPUTS):
            yield f"departures.{key}: each row names its own, as dvc.yaml reads it there. Remove it"
        for inner in value if own and key in known.settings.papers else ():
            if not any(inner in type(recipe).model_fields for recipe in own):
                yield f"departures.{key}.{inner}: it concerns no recipe of this study. Remove it"


def _between_languages(known: Known, name: str, recipe: Recipe) -> Iterator[str]:
    """What a recipe of one language is to learn between languages."""
    for key in _BETWEEN_LANGUAGES if len(recipe.languages) == 1 else ():
        if getattr(recipe, key, 0):
            yield (
                f"{known.settings.place_of(name, key)}.{key}: it works between languages, of which "
                f"{name} has one. Set it to 0 in its row"
            )


_BETWEEN_LANGUAGES = (
    "caption_caption_probability", "word_neighbourhood_weight", "classifier_weight",
    "pretraining_epochs",
)  # fmt: skip


def _words_at_random(known: Known, name: str, recipe: Recipe) -> Iterator[str]:
    """Languages whose words have no vectors to start from, or never learn any."""
    vectors = known.settings.word_vectors.get(recipe.word_vectors)
    fixed = not getattr(recipe, "tune_words", True)
    if recipe.initial != NONE or not (vectors or fixed):
        return
    having = known.vector_languages(recipe.word_vectors) if vectors else set()
    if lacking := [language for language in recipe.languages if language not in having]:
        where = known.settings.place_of(name, "word_vectors")
        yield (
            f"{where}.word_vectors: {recipe.word_vectors} has no vectors of words in "
            f"{', '.join(lacking)}, which {name} starts at random"
            + (" and keeps so (tune_words: false)" if fixed else "")
        )


def _nothing_compared(known: Known) -> Iterator[str]:
    """Comparisons of recipes that no figure of the same language can be of."""
    for name, comparison in known.settings.comparisons.items():
        asked = {*known.recipes[comparison.baseline].languages}
        for other in comparison.recipes:
            if asked.isdisjoint(known.recipes[other].languages):
                yield (
                    f"comparisons.{name}.recipes: {other} and the baseline {comparison.baseline} "
                    "have no language in common: nothing of them is compared"
                )


def _crops_side_by_side(known: Known, where: str, recipe: Recipe) -> Iterator[str]:
    """Outputs of an image that a head takes for one, where another chooses among them."""
    extractor = known.settings.extractors.get(recipe.features)
    made = vectors_of(extractor) if extractor else 1
    if made > 1 and not hasattr(recipe, "image_crops"):
        yield (
            f"{where}.image_head: {recipe.image_head} reads the {made} vectors that "
            f"{recipe.features} keeps of an image as one. Take residual, which has "
            "image_crops, or another transform"
        )


def _few_to_validate(known: Known, where: str, recipe: Recipe) -> Iterator[str]:
    """A recipe whose validation photos cannot tell what is learnt from chance."""
    photos, captions = _validation_counts(known, recipe)
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


def _validation_counts(known: Known, recipe: Recipe) -> tuple[int, dict[str, int]]:
    """Return a recipe's validation photos and captions by language; 0 if some are not known."""
    counts, photos = dict.fromkeys(recipe.languages, 0), 0
    for name in known.settings.pair_sets(recipe.pairs):
        chosen = known.settings.pairs.get(name)
        kinds = chosen.validation_kinds if chosen else {}
        if not kinds:
            continue
        if (data := known.data.get(chosen.dataset)) is None:
            return 0, dict.fromkeys(recipe.languages, 0)
        photos = max(photos, data.photos.get(VAL, 0))
        for language in kinds.keys() & counts.keys():
            counts[language] += sum(
                data.captions.get((VAL, language, kind), 0) for kind in kinds[language]
            )
    return photos, counts


def _photos_read_as_text(known: Known, where: str, recipe: Recipe) -> Iterator[str]:
    """Data sets of which a recipe reads captions alone, though an extractor has the photos."""
    _, seen = known.extractors_and_photos(recipe)
    if seen is None or not recipe.reads_text_alone:
        return
    for name in sorted(known.datasets(recipe.pairs)):
        source, photos = source_of(known.settings, name), known.photos(name)
        extractors = known.settings.extractors.items()
        having = [key for key, each in extractors if each.dataset == source]
        if having and photos and photos - seen:
            yield (
                f"{where}.more_features: {len(photos - seen):,} photos of {name} are read as "
                f"text alone, though {' and '.join(having)} has their features. Name it there, "
                "if the recipe is to see them"
            )


def _seeds_of_one_start(known: Known, name: str, recipe: Recipe) -> Iterator[str]:
    """Seeds that the recipe lacks which they continue: they all start from its first."""
    before = known.recipes.get(recipe.initial)
    if before and (lacking := sorted({*recipe.seeds} - {*before.seeds})) and len(recipe.seeds) > 1:
        yield (
            f"recipes.{name}.seeds: {recipe.initial}, which it continues, has no model of "
            f"{', '.join(map(str, lacking))}: they start from that of seed {min(before.seeds)}, "
            "and are no runs of their own, for which tests take them. Train "
            f"{recipe.initial} with these seeds, too"
        )


def _learnt_by_another(known: Known, name: str, recipe: Recipe) -> Iterator[str]:
    """Pair sets of the models it builds upon, whose captions its figures take for unseen."""
    sets = known.settings.evaluations.sts.sets.values()
    scored = {chosen.language for chosen in sets}.intersection(recipe.languages)
    own = {*known.settings.pair_sets(recipe.pairs)}
    for other in sorted(builds_upon(known.settings, known.recipes, name)):
        who = f"{other}, on which it builds, has" if other != name else "its word vectors have"
        learnt = learnt_pair_sets(known.settings, known.recipes[other])
        for pairs in dict.fromkeys(pairs for pairs, _ in learnt):
            if _adds_captions(known, pairs, own, scored):
                yield (
                    f"recipes.{name}: {who} learnt {pairs}, whose captions count as unseen in its "
                    f"sentence similarity: as seen counts what is in {recipe.pairs}. Read that "
                    "figure of all pairs, not of the unseen"
                )


def _adds_captions(known: Known, pairs: str, own: set[str], languages: set[str]) -> bool:
    """Return whether a pair set has captions in some languages that others have not."""
    sets, borrowed = known.settings.pairs, known.settings.pseudopairs
    if pairs in borrowed:
        side = borrowed[pairs].captions_of
        pairs, languages = side.pairs, languages & {side.language}
    return pairs not in own and any(
        not any(_has(known, sets[each], sets[pairs], language, kind) for each in own & sets.keys())
        for language, kinds in sets[pairs].captions.items()
        if language in languages
        for kind in kinds
    )


def _has(known: Known, more: PairSet, less: PairSet, language: str, kind: str) -> bool:
    """Return whether one pair set has all captions of a kind that another has."""
    same = source_of(known.settings, more.dataset) == source_of(known.settings, less.dataset)
    return (
        same
        and kind in more.captions.get(language, ())
        and _most(more) >= _most(less)
        and more.images in ("all", less.images)
        and more.exclude_images in (NONE, less.exclude_images)
    )


def _most(pairs: PairSet) -> float:
    return inf if pairs.per_image == "all" else pairs.per_image


def _halves_that_overlap(known: Known) -> Iterator[str]:
    """Halves of two data sets that have other training photos: each is halved by its own."""
    halves = {"first_half", "second_half"}
    for name, recipe in known.recipes.items():
        own = [
            each for each in known.settings.pair_sets(recipe.pairs) if each in known.settings.pairs
        ]
        for one, other in combinations(own, 2):
            chosen = [known.settings.pairs[each] for each in (one, other)]
            shared = known.rows[one][TRAIN] & known.rows[other][TRAIN]
            if {each.images for each in chosen} == halves and shared:
                yield (
                    f"recipes.{name}: {one} and {other} are the halves of photos of "
                    f"{chosen[0].dataset} and {chosen[1].dataset}, which have other training "
                    f"photos, and share {len(shared):,} (first: {min(shared)}). Halve one data set"
                )


def _equal_photos(known: Known) -> Iterator[str]:
    """Photos of two splits that are the same file."""
    for name, extractor in known.settings.networks.items():
        data = known.data.get(extractor.dataset)
        if data and data.images is not None:
            twins = photos_in_two_splits(data.images, Path(extractor.images))
            yield from (f"extractors.{name}.images: {each}" for each in twins)


def _batches_of_all(known: Known) -> Iterator[str]:
    """Batches that are larger than what they are drawn from."""
    for name, recipe in known.recipes.items():
        most = _largest_batch(known, recipe)
        if most is not None and most < recipe.batch_size:
            yield (
                f"recipes.{name}.batch_size: {recipe.batch_size} is more than the {most} "
                f"training {recipe.batch_of} of {recipe.pairs}: each batch is all of them"
            )


def _largest_batch(known: Known, recipe: Recipe) -> int | None:
    """Return how many of what batches hold a recipe has at most; None if unknown."""
    captions = known.training_captions(recipe)
    if recipe.batch_of == "captions" or captions is None:
        return captions
    if known.rows_known(recipe.pairs):
        return len(known.training_photos(recipe.pairs))
    datasets = {
        source_of(known.settings, known.settings.pairs[name].dataset)
        for name in known.settings.pair_sets(recipe.pairs)
    }
    return sum(known.data[name].photos.get(TRAIN, 0) for name in datasets)
