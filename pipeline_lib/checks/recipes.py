"""What each recipe learns from and is tested on."""

from collections.abc import Iterator

from pipeline_lib.checks.data import Data
from pipeline_lib.checks.known import Known
from pipeline_lib.checks.sources import lacking
from pipeline_lib.contract.tables import VAL
from pipeline_lib.images.transforms import TRANSFORMS
from pipeline_lib.settings.recipes import Recipe


def recipe_problems(known: Known) -> Iterator[str]:
    """What a recipe learns from and is tested on; without one there is nothing to report."""
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
    learnt, validated = known.languages(recipe.pairs), known.validated(recipe.pairs)
    for language in recipe.languages:
        for kind, known in (("", learnt), ("validation ", validated)):
            if known is not None and language not in known:
                yield (
                    f"{where}.languages: {language} is in no {kind}captions of the pair set "
                    f"{recipe.pairs}, which has {', '.join(sorted(known)) or 'none'}"
                )
                break


def _pool_problems(known: Known, recipe: Recipe, data: Data) -> Iterator[str]:
    for language in recipe.languages:
        kind, there = known.settings.pools[language], data.annotations(known.split, language)
        if kind not in there:
            yield lacking(f"pools.{language}", kind, known.split, recipe.dataset, there)
        elif len(data.captioned.get((known.split, language, kind), ())) == 1:
            yield (
                f"pools.{language}: expected {kind}s of 2 photos or more in the split "
                f"{known.split} of {recipe.dataset}, found one photo: alone it ranks first "
                "whatever was learnt. Add captions, or another split or language"
            )


def _crop_problems(known: Known, where: str, recipe: Recipe) -> Iterator[str]:
    """Crops that a recipe chooses among, and an extractor does not keep side by side."""
    extractor = known.settings.extractors.get(recipe.features)
    wanted = getattr(recipe, "image_crops", None)
    made = TRANSFORMS[extractor.transform].vectors if extractor else wanted
    if wanted is not None and wanted != made:
        yield (
            f"{where}.image_crops: expected {made}, as many as {recipe.features} keeps of an "
            f"image by transform {extractor.transform}, found {wanted}"
        )


def _feature_problems(known: Known, where: str, recipe: Recipe) -> Iterator[str]:
    """Photos that a recipe reads and no extractor of its features has."""
    extractors, seen = known.seen(recipe)
    sets = {known.settings.extractors[extractor].dataset for extractor in extractors}
    taught = () if recipe.reads_text_alone else known.datasets(recipe.pairs)
    read = {recipe.dataset, *taught}
    for name in sorted(read):
        photos = known.photos(name)
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
        yield from _text_problems(known, where, recipe, extractors, seen)


def _text_problems(
    known: Known, where: str, recipe: Recipe, extractors: list[str], seen: set[str]
) -> Iterator[str]:
    """Photos without features where a recipe that reads text alone needs them, too."""
    without = f"by {' and '.join(extractors)}"
    for name in known.settings.pair_sets(recipe.pairs):
        if lacking := known.rows[name][VAL] - seen:
            yield (
                f"{where}.pairs: expected features of all validation photos, {name} has "
                f"{len(lacking):,} (first: {min(lacking)}) without {without}. Leave their "
                f"captions out by pairs.{name}.validation, or name their extractor in "
                "more_features"
            )
    learnt = known.learnt(recipe.pairs)
    if learnt and not learnt & seen:
        yield (
            f"{where}.features: expected features of some of the {len(learnt):,} training "
            f"photos of {recipe.pairs}, found none {without}. Name their extractor"
        )
