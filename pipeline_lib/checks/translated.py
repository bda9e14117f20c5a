"""What translators learn from, what they translate, and what is ranked anew of it."""

from collections.abc import Iterator

from pipeline_lib.checks.known import Known
from pipeline_lib.checks.shown import (
    Photos,
    builds_upon,
    learnt_pair_sets,
    shared_photos,
    translators_of,
)
from pipeline_lib.contract.tables import TRAIN, VAL
from pipeline_lib.settings.rerankings import Reranking


def translator_language_problems(known: Known) -> Iterator[str]:
    """Yield the languages of a translator that its data set has no training captions in."""
    for name, chosen in known.settings.translators.items():
        data = known.data.get(chosen.dataset)
        for key in ("source_language", "target_language") if data else ():
            language = getattr(chosen, key)
            if language not in (there := data.languages(TRAIN)):
                yield (
                    f"translators.{name}.{key}: {chosen.dataset} has no captions in {language} "
                    f"in the split train. It has {', '.join(sorted(there))}"
                )


def translator_problems(known: Known) -> Iterator[str]:
    """Yield which translators have nothing to learn from, or to be validated on."""
    for name, chosen in known.settings.translators.items():
        for split, photos in (known.taught[name] or {}).items():
            if not photos:
                yield (
                    f"translators.{name}: expected parallel text of {chosen.dataset} in the split "
                    f"{split}, found none that exclude_images ({chosen.exclude_images}) and "
                    f"exclude_pairs ({chosen.exclude_pairs}) leave. Name another data set to learn "
                    "from"
                )


def translation_problems(known: Known) -> Iterator[str]:
    """Yield which translations have no captions to translate, or would add to others."""
    for name, chosen in known.settings.translations.items():
        own = known.data.get(chosen.dataset)
        if own is None:
            continue
        kinds = {(language, kind) for _, language, kind in own.captions}
        if (chosen.source_language, chosen.annotation) not in kinds:
            there = sorted(kind for language, kind in kinds if language == chosen.source_language)
            yield (
                f"translations.{name}.annotation: {chosen.dataset} has none of the kind "
                f"{chosen.annotation} in {chosen.source_language}. It has "
                f"{', '.join(there) or 'no captions in that language'}"
            )
        if (chosen.target_language, "machine") in kinds:
            yield (
                f"translations.{name}.target_language: expected no machine translations into "
                f"{chosen.target_language} yet, {chosen.dataset} has some. Translate a data set "
                "that has none"
            )
        yield from _learnt(known, name)


def reranking_problems(known: Known) -> Iterator[str]:
    """Yield which re-rankings lack lists, or rank those of photos that their model has learnt."""
    for name, chosen in known.settings.rerankings.items():
        own = known.data.get(chosen.dataset)
        text = own.parallel.get(chosen.translator) if own else None
        if text and not {VAL, "test"} <= text.keys():
            yield (
                f"rerankings.{name}.dataset: expected parallel text in the splits {VAL} and "
                f"test of {chosen.dataset}, found it in {', '.join(sorted(text))}. Name a "
                "translator of a data set that has both"
            )
        elif text:
            ranked = _ranked_photos(known, chosen, text)
            yield from _nothing_ranked(known, name, ranked)
            yield from _ranked_photos_learnt(known, name, ranked)


def _nothing_ranked(known: Known, name: str, ranked: Photos) -> Iterator[str]:
    """Yield that translations are to be ranked by photos that none of the sentences has."""
    chosen = known.settings.rerankings[name]
    if "image" not in chosen.similarities:
        return
    pictured = known.data.get(known.settings.extractors[chosen.features].dataset)
    drawn = pictured and pictured.images is None and known.data[chosen.dataset].images is None
    empty = [split for split, photos in ranked.items() if not photos]
    if pictured and not drawn and empty:
        yield (
            f"rerankings.{name}.features: expected features of photos of {chosen.dataset}, whose "
            f"sentences are translated, found none by {chosen.features} in {' and '.join(empty)}. "
            "Name an extractor of these photos, or leave image out of similarities"
        )


def _ranked_photos(known: Known, chosen: Reranking, text: Photos) -> Photos:
    """Return the photos whose translations are ranked, of those of the translated sentences."""
    ranked = {split: text[split] for split in (VAL, "test")}
    if "image" not in chosen.similarities:
        return ranked
    # Of a photo without features no sentence is taken.
    pictured = known.data.get(known.settings.extractors[chosen.features].dataset)
    listed = pictured and pictured.images is not None
    there = set(pictured.images["image_id"]) if listed else set()
    return {split: ids & there for split, ids in ranked.items()}


def _ranked_photos_learnt(known: Known, name: str, ranked: Photos) -> Iterator[str]:
    """Yield which photos are ranked by a recipe that has learnt them, or builds upon one that has.

    Args:
        known: What is known of the study.
        name: Of the re-ranking.
        ranked: Photos whose translations it ranks.
    """
    recipe = known.settings.rerankings[name].recipe
    where, of_them = f"rerankings.{name}.recipe", f"of the photos whose translations {recipe}"
    # Weights are tuned on the split val, where a model may have been validated, too.
    forbidden = {TRAIN: ranked[VAL] | ranked["test"], VAL: ranked["test"]}
    for teacher, said in builds_upon(known.settings, known.recipes, recipe).items():
        who = f"{recipe} learns from" if teacher == recipe else said
        seen: Photos = {TRAIN: set(), VAL: set()}
        translators = {}
        for pairs, splits in learnt_pair_sets(known.settings, known.recipes[teacher]):
            translators |= dict.fromkeys(translators_of(known.settings, pairs), pairs)
            for split in splits:
                seen[split] |= known.shown[pairs][split]
        if shared := shared_photos(seen, forbidden):
            yield (
                f"{where}: {who} {len(shared)} {of_them} would rank (first: {min(shared)}). Name a "
                "recipe that has not seen them"
            )
        for translator, pairs in translators.items():
            if shared := shared_photos(known.taught[translator] or {}, forbidden):
                yield (
                    f"{where}: {who} {pairs}, translated by {translator}, which learnt "
                    f"{len(shared)} {of_them} would rank (first: {min(shared)}). Name a recipe "
                    "whose translator has not seen them"
                )


def query_problems(known: Known) -> Iterator[str]:
    """Yield which translated queries have no sentence in the split that is tested on."""
    for name, chosen in known.settings.translated_queries.items():
        made = known.settings.translations[chosen.translation]
        own, kind = known.data.get(made.dataset), (made.source_language, made.annotation)
        there = own.captions if own else {}
        splits = {split for split, language, made_by in there if (language, made_by) == kind}
        if splits and known.split not in splits:
            yield (
                f"translated_queries.{name}.translation: expected captions to translate in the "
                f"split {known.split}, {made.dataset} has those of the kind {made.annotation} in "
                f"{made.source_language} in {', '.join(sorted(splits))} alone. Add some, or leave "
                "this entry out"
            )


def _learnt(known: Known, name: str) -> Iterator[str]:
    """Yield which photos of a translation its translator learnt that are evaluated on."""
    settings = known.settings
    dataset = settings.translations[name].dataset
    translator = settings.translator_of(settings.translations[name])
    found = known.taught[translator] if translator else None
    if found and (shared := shared_photos(found, known.data[dataset].forbidden)):
        yield (
            f"translations.{name}.model: {translator} learnt {len(shared)} photos (first: "
            f"{min(shared)}) that {dataset} validates or tests on. Name it in exclude_images of "
            f"{translator}"
        )
