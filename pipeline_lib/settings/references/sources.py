"""What recipes are made from: extractors, pair sets, translators, pseudopairs, words, lexicons."""

from collections.abc import Iterator
from pathlib import PurePath

from pipeline_lib.settings.entries import PAIRS, TRANSLATORS
from pipeline_lib.settings.pseudopairs import Pseudopairs
from pipeline_lib.settings.strict import NONE, unknown
from pipeline_lib.settings.study import Settings
from pipeline_lib.settings.synthesis import AnyTranslator, Translation


def extractor_references(settings: Settings) -> Iterator[str]:
    """Yield names in ``extractors`` that name nothing."""
    for name, extractor in settings.extractors.items():
        yield from unknown(f"extractors.{name}.dataset", [extractor.dataset], settings.datasets)


def pair_set_references(settings: Settings) -> Iterator[str]:
    """Yield names in ``pairs`` that name nothing, and what does not fit them."""
    for name, pairs in settings.pairs.items():
        where = f"pairs.{name}"
        yield from unknown(f"{where}.dataset", [pairs.dataset], settings.caption_tables)
        yield from unknown(f"{where}.captions", pairs.captions, settings.tokenizers)
        yield from unknown(f"{where}.plus", [pairs.plus], [NONE, *settings.pairs])
        excluded = [NONE, *settings.datasets]
        yield from unknown(f"{where}.exclude_images", [pairs.exclude_images], excluded)


def translator_references(settings: Settings) -> Iterator[str]:
    """Yield names in ``translators`` that name nothing, and what does not fit them."""
    for name, recipe in settings.translators.items():
        where = f"translators.{name}"
        yield from unknown(f"{where}.dataset", [recipe.dataset], settings.datasets)
        hidden = [NONE, *settings.datasets]
        yield from unknown(f"{where}.exclude_images", [recipe.exclude_images], hidden)
        excluded = [recipe.exclude_pairs]
        yield from unknown(f"{where}.exclude_pairs", excluded, [NONE, *settings.pairs])
        yield from _one_language(where, recipe)


def translation_references(settings: Settings) -> Iterator[str]:
    """Yield names in ``translations`` that name nothing, and what does not fit them."""
    for name, chosen in settings.translations.items():
        where = f"translations.{name}"
        yield from unknown(f"{where}.dataset", [chosen.dataset], settings.caption_tables)
        if name in settings.datasets:
            yield f"{where}: a data set has the same name"
        model, made = PurePath(chosen.model), [TRANSLATORS.format(n) for n in settings.translators]
        if model.parent == PurePath(TRANSLATORS).parent:
            yield from unknown(f"{where}.model", [str(model)], made)
            if (engine := chosen.engine) != "translator":
                yield f"{where}.engine: expected translator, which reads {model}, found {engine}"
        target = chosen.target_language
        yield from unknown(f"{where}.target_language", [target], settings.tokenizers)
        yield from _one_language(where, chosen)
        yield from _languages_of_translator(settings, where, chosen)


def _one_language(where: str, chosen: AnyTranslator | Translation) -> Iterator[str]:
    """Yield that something would translate a language into itself."""
    target = chosen.target_language
    if chosen.source_language == target:
        yield f"{where}.target_language: expected another than the source's, found {target}"


def _languages_of_translator(settings: Settings, where: str, chosen: Translation) -> Iterator[str]:
    """Languages of a translation that are not its translator's."""
    name = settings.translator_of(chosen)
    translator = settings.translators.get(name)
    for key in ("source_language", "target_language") if translator else ():
        has, found = getattr(translator, key), getattr(chosen, key)
        if has != found:
            yield f"{where}.{key}: {name}, its translator, has {has}, found {found}"


def pseudopair_references(settings: Settings) -> Iterator[str]:
    """Yield names in ``pseudopairs`` that name nothing, and what does not fit them."""
    for name, chosen in settings.pseudopairs.items():
        where = f"pseudopairs.{name}"
        yield from unknown(f"{where}.teacher", [chosen.teacher], settings.recipes)
        for key in ("images_of", "captions_of"):
            side = getattr(chosen, key)
            yield from unknown(f"{where}.{key}.pairs", [side.pairs], settings.pairs)
            if side.pairs in settings.pairs:
                spoken = settings.pairs[side.pairs].captions
                yield from unknown(f"{where}.{key}.language", [side.language], spoken)
        yield from unknown(f"{where}.plus", [chosen.plus], [NONE, *settings.pairs])
        others = [NONE, *settings.pseudopairs]
        yield from unknown(f"{where}.compare_with", [chosen.compare_with], others)
        yield from _not_comparable(settings, where, chosen)
        teacher = settings.merged_recipes.get(chosen.teacher, {})
        if teacher and not {*chosen.seeds} <= {*teacher["seeds"]}:
            yield f"{where}.seeds: {chosen.teacher} has {teacher['seeds']}, found {chosen.seeds}"
        if name in settings.pairs:
            yield f"{where}: a pair set has the same name"
        if (chosen.images_of.pairs, chosen.images_of.language) == (
            chosen.captions_of.pairs,
            chosen.captions_of.language,
        ):
            yield (
                f"{where}.captions_of: expected other captions than images_of has, found the same, "
                f"{chosen.captions_of.language} of {chosen.captions_of.pairs}: each lends to itself"
            )
        asked = {chosen.images_of.language, chosen.captions_of.language}
        unread = sorted(asked - {*teacher.get("languages", asked)})
        if unread:
            yield f"{where}.teacher: {chosen.teacher} does not read {', '.join(unread)}"


def _not_comparable(settings: Settings, where: str, chosen: Pseudopairs) -> Iterator[str]:
    """Yield why the captions that two sets lend cannot be compared: the first seed's are."""
    other = settings.pseudopairs.get(chosen.compare_with)
    if other and chosen.seeds[0] not in other.seeds:
        yield (
            f"{where}.compare_with: expected a set of seed {chosen.seeds[0]}, the first here, "
            f"{chosen.compare_with} has {other.seeds}"
        )
    for key in ("images_of", "captions_of") if other else ():
        own, found = (getattr(each, key) for each in (chosen, other))
        if (own.pairs, own.language) != (found.pairs, found.language):
            yield (
                f"{where}.compare_with: expected a set with {key} {own.language} of {own.pairs}, "
                f"{chosen.compare_with} has {found.language} of {found.pairs}"
            )


def word_vector_references(settings: Settings) -> Iterator[str]:
    """Yield names in ``word_vectors`` that name nothing, and what does not fit them."""
    for name, vectors in settings.word_vectors.items():
        where, sets = f"word_vectors.{name}", [*settings.pairs, *settings.pseudopairs]
        if vectors.method != "files":
            made = [PAIRS.format(each) for each in sets]
            yield from unknown(f"{where}.source", [str(PurePath(vectors.source))], made)
        shortest, longest = (getattr(vectors, key, 0) for key in ("min_n", "max_n"))
        if shortest > longest:
            yield f"{where}.min_n: expected at most max_n ({longest}), found {shortest}"
        none = [] if vectors.method == "files" else [NONE]
        yield from unknown(f"{where}.pairs", [vectors.pairs], [*none, *settings.pairs])


def lexicon_references(settings: Settings) -> Iterator[str]:
    """Yield names in ``lexicons`` that name nothing."""
    for name, lexicon in settings.lexicons.items():
        yield from unknown(f"lexicons.{name}.pairs", [lexicon.pairs], settings.pairs)
