"""Who is best in each language and by how much, with a test against the runner-up."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pandas as pd

from pipeline_lib.reporting.comparisons import p_value, signed
from pipeline_lib.reporting.differences import Asked, Difference

LANGUAGES = {
    "cs": "Czech", "de": "German", "en": "English", "fr": "French", "ja": "Japanese",
    "zh": "Chinese",
}  # fmt: skip
"""English names of the languages of the four papers."""


@dataclass(frozen=True)
class Lead:
    """How far the best recipe is ahead of the second.

    Attributes:
        second: Name of the second.
        points: Difference of the sums of recalls.
        test: The same, over seeds and photos; None where it was not tested.
        untested: Why there is no test.
        certain: Whether the test rejects chance at the study's level, corrected for all its tests,
            whatever its draws.
    """

    second: str
    points: float
    test: Difference | None
    untested: str
    certain: bool


@dataclass(frozen=True)
class Verdict:
    """The best recipe of one language.

    Attributes:
        language: Its code.
        ranking: Rows of the summary, best first.
        lead: Of the first over the second; None where there is only one.
    """

    language: str
    ranking: pd.DataFrame
    lead: Lead | None

    @property
    def best(self) -> pd.Series:
        """The first row."""
        return self.ranking.iloc[0]


def asked_by_verdicts(summary: pd.DataFrame) -> Iterator[Asked]:
    """Yield the comparison of the best recipe of every pool with the second."""
    for language, ranked in _rankings(summary):
        if len(ranked) > 1:
            yield _first_two(ranked, language)


def verdicts(
    summary: pd.DataFrame, tests: Mapping[Asked, Difference], confidence: float
) -> list[Verdict]:
    """Find the best recipe of every pool by the sum of recalls.

    Args:
        summary: Of summary.summary_table, with the ``dataset`` that each recipe is scored on.
        tests: Of differences.differences, all of :func:`asked_by_verdicts` among them.
        confidence: Level of the study, such as 0.95.

    Returns:
        One verdict per data set and language, in the order of the summary.
    """
    return [
        Verdict(
            language,
            ranked,
            _lead(tests[_first_two(ranked, language)], ranked, confidence)
            if len(ranked) > 1
            else None,
        )
        for language, ranked in _rankings(summary)
    ]


def _rankings(summary: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    for (_, language), rows in summary.groupby(["dataset", "language"], sort=False):
        yield str(language), rows.sort_values("sum_of_recalls", ascending=False, kind="stable")


def _first_two(ranked: pd.DataFrame, language: str) -> Asked:
    return Asked.sums(*ranked["recipe"].head(2), language)


def evidence(verdict: Verdict, confidence: float) -> str:
    """Return what a verdict rests on: the interval, the test, and how often the first is right."""
    best, lead, level = verdict.best, verdict.lead, f"{100 * confidence:g} % interval"
    if lead is None:
        low, high = best["sum_of_recalls_low"], best["sum_of_recalls_high"]
        found = f"{level} {low:.1f} to {high:.1f}"
    elif lead.test is None:
        found = lead.untested
    else:
        low, high = (signed(bound) for bound in (lead.test.low, lead.test.high))
        found = f"{level} of the lead {low} to {high}, {_p(lead.test.holm)} after correction"
    texts, images = best["text_to_image_r1"], best["image_to_text_r1"]
    return f"{found} · R@1: {texts:.0f} % of captions, {images:.0f} % of images"


def _lead(found: Difference, ranked: pd.DataFrame, confidence: float) -> Lead:
    certain = found.difference > 0 and found.side(1 - confidence) < 0
    test = None if found.untested else found
    second = str(ranked["recipe"].iloc[1])
    return Lead(second, found.difference, test, found.untested, certain)


def _p(value: float) -> str:
    sign = "" if value < 0.001 else "= "
    return f"p {sign}{p_value(value)}".replace(" ", "\N{NO-BREAK SPACE}")
