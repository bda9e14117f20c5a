"""What is asked of recipes: evaluations, comparisons, claims, re-rankings, queries, growth."""

from collections.abc import Iterator
from itertools import permutations

from pipeline_lib.settings.claims import MEASURES, Claim, Compared
from pipeline_lib.settings.entries import PAIRS
from pipeline_lib.settings.growth import Growth
from pipeline_lib.settings.rerankings import Reranking
from pipeline_lib.settings.strict import NONE, unknown
from pipeline_lib.settings.study import Settings
from pipeline_lib.settings.translated_queries import TranslatedQueries


def evaluation_references(settings: Settings) -> Iterator[str]:
    """Yield names in ``evaluations`` that name nothing."""
    lexicon, where = settings.evaluations.word_translation.lexicon, "evaluations.word_translation"
    yield from unknown(f"{where}.lexicon", [lexicon], [NONE, *settings.lexicons])
    for name, scored in settings.evaluations.sts.sets.items():
        where = f"evaluations.sts.sets.{name}.language"
        yield from unknown(where, [scored.language], settings.tokenizers)


def comparison_references(settings: Settings) -> Iterator[str]:
    """Yield names in ``comparisons`` that name nothing."""
    for name, comparison in settings.comparisons.items():
        where, members = f"comparisons.{name}", comparison.recipes
        yield from unknown(f"{where}.baseline", [comparison.baseline], settings.recipes)
        yield from unknown(f"{where}.recipes", members, settings.recipes)
        if comparison.baseline in members:
            yield f"{where}.recipes: expected others than the baseline, found it among them"


def claim_references(settings: Settings) -> Iterator[str]:
    """Yield names in ``claims`` that name nothing, and what does not fit them."""
    for name, chosen in settings.claims.items():
        yield from _of_claim(settings, f"claims.{name}", chosen)


def _of_claim(settings: Settings, where: str, claim: Claim) -> Iterator[str]:
    yield from unknown(f"{where}.paper", [claim.paper], settings.papers)
    reranked = MEASURES[claim.measure].task == "reranking"
    known = [*settings.rerankings, *settings.translators] if reranked else settings.recipes
    for item, compared in claim.compared.items():
        place, names = f"{where}.compared.{item}", [compared.row, compared.against]
        yield from unknown(place, names, known)
        if compared.row == compared.against:
            yield f"{place}: expected two different rows, found {compared.row} twice"
        if reranked:
            yield from unknown(place, [item], [compared.row])
            yield from _of_reranked_claim(settings, place, compared)
            continue
        for name in [name for name in names if name in settings.merged_recipes]:
            yield from unknown(f"{place}: {name}", [item], _measured(settings, claim, name))


def _of_reranked_claim(settings: Settings, place: str, compared: Compared) -> Iterator[str]:
    """Yield what is wrong with a claim about BLEU: the stage tests against its translator."""
    reranking = settings.rerankings.get(compared.row)
    if reranking is None:
        yield f"{place}.row: expected an entry of rerankings, found {compared.row}"
    elif compared.against != reranking.translator:
        yield (
            f"{place}.against: {compared.row} ranks translations of {reranking.translator}, "
            f"found {compared.against}"
        )


def _measured(settings: Settings, claim: Claim, recipe: str) -> list[str]:
    """Return what a measure is of, in the figures of a recipe."""
    languages = settings.merged_recipes[recipe]["languages"]
    task = MEASURES[claim.measure].task
    if task == "retrieval":
        return languages
    if task == "sts":
        return [n for n, own in settings.evaluations.sts.sets.items() if own.language in languages]
    return ["-".join(pair) for pair in permutations(languages, 2)]


def reranking_references(settings: Settings) -> Iterator[str]:
    """Yield names in ``rerankings`` that name nothing, and what does not fit them."""
    for name, chosen in settings.rerankings.items():
        yield from _of_reranking(settings, f"rerankings.{name}", chosen)


def _of_reranking(settings: Settings, where: str, chosen: Reranking) -> Iterator[str]:
    row = settings.merged_recipes.get(chosen.recipe, {})
    translator = settings.translators.get(chosen.translator)
    yield from unknown(f"{where}.translator", [chosen.translator], settings.translators)
    yield from unknown(f"{where}.recipe", [chosen.recipe], settings.recipes)
    yield from unknown(f"{where}.features", [chosen.features], [NONE, *settings.extractors])
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
            f"{where}.dataset: {chosen.translator} has {translator.dataset}, found {chosen.dataset}"
        )
    read = [translator.target_language]
    if "sentence" in chosen.similarities:
        read.append(translator.source_language)
    unread = sorted(set(read) - {*row.get("languages", read)})
    if unread:
        yield f"{where}.recipe: {chosen.recipe} does not read {', '.join(unread)}"


def translated_query_references(settings: Settings) -> Iterator[str]:
    """Yield names in ``translated_queries`` that name nothing, and what does not fit them."""
    for name, chosen in settings.translated_queries.items():
        yield from _of_queries(settings, f"translated_queries.{name}", chosen)
    yield from _repeated_queries(settings)


def _of_queries(settings: Settings, where: str, chosen: TranslatedQueries) -> Iterator[str]:
    row = settings.merged_recipes.get(chosen.recipe, {})
    translation = settings.translations.get(chosen.translation)
    yield from unknown(f"{where}.recipe", [chosen.recipe], settings.recipes)
    yield from unknown(f"{where}.features", [chosen.features], settings.extractors)
    yield from unknown(f"{where}.translation", [chosen.translation], settings.translations)
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


def _repeated_queries(settings: Settings) -> Iterator[str]:
    """Yield the entries whose figures would have the name of another one's."""
    first: dict[tuple[str, ...], str] = {}
    for name, chosen in settings.translated_queries.items():
        made = settings.translations.get(chosen.translation)
        if made:
            pair = made.source_language, made.target_language
            other = first.setdefault((chosen.recipe, *pair), name)
            if other != name:
                yield (
                    f"translated_queries.{name}: {other} has the recipe {chosen.recipe} and "
                    f"translations from {' to '.join(pair)}, too. Keep one of the two"
                )


def growth_references(settings: Settings) -> Iterator[str]:
    """Yield names in ``growth`` that name nothing, and what does not fit them."""
    for name, chosen in settings.growth.items():
        yield from _of_growth(settings, name, chosen)


def _of_growth(settings: Settings, name: str, chosen: Growth) -> Iterator[str]:
    where = f"growth.{name}"
    row = settings.merged_recipes.get(name, {})
    yield from unknown(where, [name], settings.recipes)
    for key in ("pairs", "features", "word_vectors"):
        if row and getattr(chosen, key) != row[key]:
            yield f"{where}.{key}: the recipe has {row[key]}, found {getattr(chosen, key)}"
    for key in ("more_features", "initial", "lexicon"):
        if row and row[key] != NONE:
            yield f"{where}: expected a recipe with {key}: {NONE}, found {row[key]}"
    if row and not {*chosen.seeds} <= {*row["seeds"]}:
        yield f"{where}.seeds: the recipe has {row['seeds']}, found {chosen.seeds}"
    made = settings.word_vectors.get(chosen.word_vectors)
    source = PAIRS.format(chosen.pairs)
    if getattr(made, "method", None) != "latent_semantic" or made.source != source:
        yield (
            f"{where}.word_vectors: expected an entry of word_vectors with method: "
            f"latent_semantic and source: {source}, found {chosen.word_vectors}"
        )
