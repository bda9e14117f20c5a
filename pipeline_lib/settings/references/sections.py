"""All sections of a study, one after the other."""

from collections.abc import Iterator

from pipeline_lib.settings.entries import cycles
from pipeline_lib.settings.references.questions import (
    claim_references,
    comparison_references,
    evaluation_references,
    growth_references,
    reranking_references,
    translated_query_references,
)
from pipeline_lib.settings.references.recipes import departure_references, recipe_references
from pipeline_lib.settings.references.sources import (
    extractor_references,
    lexicon_references,
    pair_set_references,
    pseudopair_references,
    translation_references,
    translator_references,
    word_vector_references,
)
from pipeline_lib.settings.strict import NONE, RANDOM
from pipeline_lib.settings.study import Settings


def reference_problems(settings: Settings) -> Iterator[str]:
    """Yield every name in the file that names nothing, and every name that is taken."""
    yield from _reserved_names(settings)
    yield from cycles(_sections(settings))
    for problems in (
        extractor_references, pair_set_references, translator_references, translation_references,
        pseudopair_references, word_vector_references, lexicon_references, departure_references,
        recipe_references, reranking_references, translated_query_references, growth_references,
        claim_references, evaluation_references, comparison_references,
    ):  # fmt: skip
        yield from problems(settings)


def _sections(settings: Settings) -> dict[str, dict[str, dict[str, object]]]:
    """Return the values of all entries; recipes merged, as far as they can be."""
    return {
        **settings.model_dump(exclude={"recipes", "papers", "shared"}),
        "recipes": settings.merged_recipes,
    }


def _reserved_names(settings: Settings) -> Iterator[str]:
    """A data set called ``none`` would write where the empty artefact of that name stands."""
    for section in type(settings).model_fields:
        table = getattr(settings, section)
        for name in {NONE, RANDOM} & set(table) if isinstance(table, dict) else ():
            yield f"{section}.{name}: the name stands for the empty input. Take another one"
