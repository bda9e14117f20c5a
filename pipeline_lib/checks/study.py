"""The check of a whole study: what would fail, or mislead, after hours of work."""

from dataclasses import dataclass, field

from pipeline_lib.checks.data import known_data
from pipeline_lib.checks.features import given_features, mixed_features
from pipeline_lib.checks.files import file_problems, folder_problems, missing_files
from pipeline_lib.checks.growth import growth_problems
from pipeline_lib.checks.known import Known
from pipeline_lib.checks.leaks import leaks
from pipeline_lib.checks.memory import memory_problems
from pipeline_lib.checks.recipes import recipe_problems
from pipeline_lib.checks.selections import lender_problems, lone_validation_photos, nothing_left
from pipeline_lib.checks.sources import (
    extractor_problems,
    language_problems,
    pair_set_problems,
    split_problems,
    word_vector_problems,
    world_problems,
)
from pipeline_lib.checks.suspicious import suspicious
from pipeline_lib.checks.translated import (
    query_problems,
    reranking_problems,
    translation_problems,
    translator_language_problems,
    translator_problems,
)
from pipeline_lib.contract.problems import raise_problems, warn
from pipeline_lib.settings.messages import lines_of
from pipeline_lib.settings.study import PARAMS, Settings

CHECKS = (
    world_problems, split_problems, language_problems, extractor_problems, pair_set_problems,
    nothing_left, lone_validation_photos, translator_language_problems, translator_problems,
    translation_problems, query_problems, lender_problems, word_vector_problems, recipe_problems,
    given_features, mixed_features, reranking_problems, leaks, growth_problems, memory_problems,
    folder_problems, file_problems,
)  # fmt: skip
"""What looks for all that would fail, in the order in which it is told."""


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
    known = Known(settings, data)
    for check in CHECKS:
        found.problems += dict.fromkeys(check(known))
    found.missing += missing_files(known)
    found.warnings += suspicious(known)
    return found
