"""All names of a study, section by section."""

from collections.abc import Iterator

from pipeline_lib.settings.entries import cycles
from pipeline_lib.settings.references.questions import (
    claim_problems,
    comparison_problems,
    evaluation_problems,
    growth_problems,
    reranking_problems,
    translated_query_problems,
)
from pipeline_lib.settings.references.recipes import departure_problems, recipe_problems
from pipeline_lib.settings.references.sources import (
    extractor_problems,
    lexicon_problems,
    pair_set_problems,
    pseudopair_problems,
    translation_problems,
    translator_problems,
    word_vector_problems,
)
from pipeline_lib.settings.strict import NONE, RANDOM
from pipeline_lib.settings.study import Settings


def reference_problems(settings: Settings) -> Iterator[str]:
    """Yield every name in the file that names nothing, and every name that is taken."""
    yield from _reserved_names(settings)
    yield from cycles(_sections(settings))
    for problems in (
        extractor_problems, pair_set_problems, translator_problems, translation_problems,
        pseudopair_problems, word_vector_problems, lexicon_problems, departure_problems,
        recipe_problems, reranking_problems, translated_query_problems, growth_problems,
        claim_problems, evaluation_problems, comparison_problems,
    ):  # fmt: skip
        yield from problems(settings)


def _sections(settings: Settings) -> dict[str, dict[str, dict[str, object]]]:
    """Return the values of all entries; recipes merged, as far as they can be."""
    return {
        **settings.model_dump(exclude={"recipes", "papers", "shared"}),
        "recipes": settings.rows,
    }


def _reserved_names(settings: Settings) -> Iterator[str]:
    """A data set called ``none`` would write where the empty artefact of that name stands."""
    for section in type(settings).model_fields:
        table = getattr(settings, section)
        for name in {NONE, RANDOM} & set(table) if isinstance(table, dict) else ():
            yield f"{section}.{name}: the name stands for the empty input. Take another one"
