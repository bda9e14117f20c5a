"""Who is best in each language and by how much, with a paired test against the runner-up."""

from dataclasses import dataclass
from math import comb

import pandas as pd

from pipeline_lib.evaluation.retrieval.recalls import CUTOFFS
from pipeline_lib.reporting.comparisons import Difference, Hits, difference, p_value, signed
from pipeline_lib.settings.evaluations import RetrievalEvaluation

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
        test: The same, paired over images; None if either has no hits per image.
        certain: Whether the interval excludes none and the test rejects chance at its level.
    """

    second: str
    points: float
    test: Difference | None
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


def verdicts(summary: pd.DataFrame, hits: Hits, settings: RetrievalEvaluation) -> list[Verdict]:
    """Find the best recipe of every pool by the sum of recalls.

    Args:
        summary: Of summary.summary_table, with the ``dataset`` that each recipe is scored on.
        hits: Of every image (hits.HITS), by recipe.
        settings: Bootstrap settings; there are as many permutations as resamples.

    Returns:
        One verdict per data set and language, in the order of the summary.
    """
    found = []
    for (_, language), rows in summary.groupby(["dataset", "language"], sort=False):
        ranked = rows.sort_values("sum_of_recalls", ascending=False, kind="stable")
        first_two = [row for _, row in ranked.head(2).iterrows()]
        lead = _lead(*first_two, str(language), hits, settings) if len(ranked) > 1 else None
        found.append(Verdict(str(language), ranked, lead))
    return found


def evidence(verdict: Verdict, confidence: float) -> str:
    """Return what a verdict rests on: the interval, the test, and how often the first is right."""
    best, lead, level = verdict.best, verdict.lead, f"{100 * confidence:g} % interval"
    if lead is None:
        low, high = best["sum_of_recalls_low"], best["sum_of_recalls_high"]
        found = f"{level} {low:.1f} to {high:.1f}"
    elif lead.test is None:
        found = "no hits per image to test the lead with"
    else:
        low, high = (signed(bound) for bound in (lead.test.low, lead.test.high))
        found = f"{level} of the lead {low} to {high}, {_p(lead.test.p)}"
    texts, images = best["text_to_image_r1"], best["image_to_text_r1"]
    return f"{found} · first hit right for {texts:.0f} % of captions, {images:.0f} % of images"


def chance(images: int, captions: int) -> float:
    """Return the sum of recalls of a blind guess, with equally many captions per image."""
    right = captions // images
    tops = [min(k, captions) for k in CUTOFFS]
    misses = sum(comb(captions - right, k) / comb(captions, k) for k in tops)
    return 100 * (len(CUTOFFS) - misses + sum(min(k / images, 1) for k in CUTOFFS))


def _lead(
    best: pd.Series, second: pd.Series, language: str, hits: Hits, settings: RetrievalEvaluation
) -> Lead:
    names = [str(row["recipe"]) for row in (best, second)]
    points = float(best["sum_of_recalls"] - second["sum_of_recalls"])
    test = difference(*names, hits, language, settings)
    # Near the edge the bootstrap and the randomisation disagree: both must be convinced.
    certain = test is not None and test.low > 0 and test.p <= 1 - settings.confidence
    return Lead(names[1], points, test, certain)


def _p(value: float) -> str:
    sign = "" if value < 0.001 else "= "
    return f"p {sign}{p_value(value)}".replace(" ", "\N{NO-BREAK SPACE}")
