"""What each recipe learns from and is tested on."""

from collections.abc import Iterator

from pipeline_lib.checks.data import Data, no_such_kind, one_photo
from pipeline_lib.checks.features import vectors_of
from pipeline_lib.checks.known import Known
from pipeline_lib.contract.tables import VAL
from pipeline_lib.settings.recipes import Recipe


def recipe_problems(known: Known) -> Iterator[str]:
    """Yield what a recipe cannot learn from, or be tested on; none at all can report nothing."""
    if not known.recipes:
        yield "recipes: expected 1 or more, found none"
    for name, recipe in known.recipes.items():
        where = f"recipes.{name}"
        yield from _language_problems(known, where, recipe)
        data = known.data.get(recipe.dataset)
        if data and known.split in data.photos:
            yield from _pool_problems(known, recipe, data)
        yield from _crop_problems(known, where, recipe)
        yield from _feature_problems(known, where, recipe)


def _language_problems(known: Known, where: str, recipe: Recipe) -> Iterator[str]:
    """Languages that a recipe cannot learn, or whose learning nothing would measure."""
    learnt, validated = (
        known.training_languages(recipe.pairs),
        _validation_languages(known, recipe.pairs),
    )
    for language in recipe.languages:
        for kind, there in (("", learnt), ("validation ", validated)):
            if there is not None and language not in there:
                yield (
                    f"{where}.languages: {language} is in no {kind}captions of the pair set "
                    f"{recipe.pairs}, which has {', '.join(sorted(there)) or 'none'}"
                )
                break


def _validation_languages(known: Known, pairs: str) -> set[str] | None:
    """Return the languages of validation captions; None if there is no such pair set.

    A teacher lends training captions alone.
    """
    own, chain = known.settings.pairs, known.settings.pair_sets(pairs)
    sets = [own[name] for name in chain if name in own]
    return {language for each in sets for language in each.validation_kinds} if chain else None


def _pool_problems(known: Known, recipe: Recipe, data: Data) -> Iterator[str]:
    for language in recipe.languages:
        kind, there = known.settings.pools[language], data.annotations(known.split, language)
        if kind not in there:
            yield no_such_kind(f"pools.{language}", kind, known.split, recipe.dataset, there)
        elif len(data.captioned.get((known.split, language, kind), ())) == 1:
            said = one_photo(f"pools.{language}", f"{kind}s", known.split, recipe.dataset)
            yield f"{said} Add captions, or another split or language"


def _crop_problems(known: Known, where: str, recipe: Recipe) -> Iterator[str]:
    """Crops that a recipe chooses among, and an extractor does not keep side by side."""
    extractor = known.settings.extractors.get(recipe.features)
    wanted = getattr(recipe, "image_crops", None)
    made = vectors_of(extractor) if extractor else wanted
    if wanted is not None and wanted != made:
        transform = getattr(extractor, "transform", None)
        by = f"by transform {transform}" if transform else "as features that are given"
        yield (
            f"{where}.image_crops: expected {made}, as many as {recipe.features} keeps of an "
            f"image {by}, found {wanted}"
        )


def _feature_problems(known: Known, where: str, recipe: Recipe) -> Iterator[str]:
    """Photos that a recipe reads and no extractor of its features has."""
    extractors, seen = known.extractors_and_photos(recipe)
    if seen is None:
        return
    sets = {known.settings.extractors[extractor].dataset for extractor in extractors}
    taught = () if recipe.reads_text_alone else known.datasets(recipe.pairs)
    for name in sorted({recipe.dataset, *taught}):
        if unseen := (known.photos(name) or set()) - seen:
            drawn = known.data[name].images is None
            lacking = (
                f"the photos of {name}"
                if drawn
                else f"{len(unseen):,} photos of {name} (first: {min(unseen)})"
            )
            yield (
                f"{where}.features: {lacking} have no features by {' and '.join(extractors)}, of "
                f"{', '.join(sorted(sets))}. Name an extractor of {name} in more_features"
            )
    if recipe.reads_text_alone:
        yield from _text_problems(known, where, recipe, extractors, seen)


def _text_problems(
    known: Known, where: str, recipe: Recipe, extractors: list[str], seen: set[str]
) -> Iterator[str]:
    """Photos without features where a recipe that reads text alone needs them, too."""
    without = f"by {' and '.join(extractors)}"
    for name in known.settings.pair_sets(recipe.pairs):
        if unseen := known.rows[name][VAL] - seen:
            yield (
                f"{where}.pairs: expected features of all validation photos, {name} has "
                f"{len(unseen):,} (first: {min(unseen)}) without {without}. Leave their "
                f"captions out by pairs.{name}.validation, or name their extractor in "
                "more_features"
            )
    learnt = known.training_photos(recipe.pairs)
    if known.rows_known(recipe.pairs) and learnt and not learnt & seen:
        yield (
            f"{where}.features: expected features of some of the {len(learnt):,} training "
            f"photos of {recipe.pairs}, found none {without}. Name their extractor"
        )
