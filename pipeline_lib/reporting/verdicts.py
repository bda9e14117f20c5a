"""Who is best in each language and by how much, with a paired test against the runner-up."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import comb

import pandas as pd

from pipeline_lib.evaluation.hits import image_contributions, paired_p
from pipeline_lib.evaluation.retrieval import CUTOFFS
from pipeline_lib.evaluation.significance import bootstrap_interval, bootstrap_totals
from pipeline_lib.reporting.markup import Child, code, element
from pipeline_lib.reporting.svg import Estimate
from pipeline_lib.settings.evaluations import RetrievalEvaluation

LANGUAGES = {
    "cs": "Czech", "de": "German", "en": "English", "fr": "French", "ja": "Japanese",
    "zh": "Chinese",
}  # fmt: skip
"""English names of the languages of the four papers."""


@dataclass(frozen=True)
class Lead:
    """How far the best recipe is ahead of the second; the test is paired over images."""

    second: str
    difference: float
    low: float
    high: float
    p: float

    @property
    def certain(self) -> bool:
        """Whether the interval of the lead excludes none."""
        return self.low > 0


@dataclass(frozen=True)
class Verdict:
    """The best recipe of one language; ``lead`` is None where it is the only one."""

    language: str
    best: pd.Series
    lead: Lead | None


def verdicts(
    summary: pd.DataFrame, hits: Mapping[str, pd.DataFrame], settings: RetrievalEvaluation
) -> list[Verdict]:
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
        best, *others = (row for _, row in ranked.iterrows())
        lead = _lead(best, others[0], language, hits, settings) if others else None
        found.append(Verdict(str(language), best, lead))
    return found


def sentence(verdict: Verdict) -> Iterator[Child]:
    """Yield who is best and by how much, in words."""
    best, lead = str(verdict.best["recipe"]), verdict.lead
    yield element("strong", {}, [code(best)])
    if lead is None:
        yield " is the only recipe in this language"
    else:
        yield f" {'wins' if lead.certain else 'leads'} by {lead.difference:.1f} over "
        yield code(lead.second)
        yield "" if lead.certain else ", which may be chance"


def evidence(verdict: Verdict, confidence: float) -> str:
    """Return what a verdict rests on: the interval, the test, and how often the first is right."""
    best, lead, level = verdict.best, verdict.lead, f"{100 * confidence:g} % interval"
    if lead is None:
        low, high = best["sum_of_recalls_low"], best["sum_of_recalls_high"]
        found = f"{level} {low:.1f} to {high:.1f}"
    else:
        found = f"{level} of the lead {_signed(lead.low)} to {_signed(lead.high)}, {_p(lead.p)}"
    texts, images = best["text_to_image_r1"], best["image_to_text_r1"]
    return f"{found} · first hit right for {texts:.0f} % of captions, {images:.0f} % of images"


def estimate(row: pd.Series, best: bool) -> Estimate:
    """Return the sum of recalls of one row of the summary as charts draw it."""
    columns = ("sum_of_recalls", "sum_of_recalls_low", "sum_of_recalls_high")
    return Estimate(row["recipe"], *(float(row[column]) for column in columns), best)


def chance(images: int, captions: int) -> float:
    """Return the sum of recalls of a blind guess, with equally many captions per image."""
    right = captions // images
    tops = [min(k, captions) for k in CUTOFFS]
    misses = sum(comb(captions - right, k) / comb(captions, k) for k in tops)
    return 100 * (len(CUTOFFS) - misses + sum(min(k / images, 1) for k in CUTOFFS))


def _lead(
    best: pd.Series,
    second: pd.Series,
    language: str,
    hits: Mapping[str, pd.DataFrame],
    settings: RetrievalEvaluation,
) -> Lead:
    asked = [hits[row["recipe"]] for row in (best, second)]
    # Both are sorted by image id, so that rows are pairs.
    a, b = (image_contributions(table, language).to_numpy()[:, None] for table in asked)
    draws = bootstrap_totals(a - b, settings.bootstrap_samples, settings.seed)[:, 0]
    low, high = bootstrap_interval(draws, settings.confidence)
    p = paired_p(*asked, language, settings.bootstrap_samples, settings.seed)
    return Lead(str(second["recipe"]), float((a - b).sum()), float(low), float(high), p)


def _signed(value: float) -> str:
    return f"{value:+.1f}".replace("-", "−")


def _p(value: float) -> str:
    text = "p < .001" if value < 0.001 else f"p = {value:.3f}".replace("0.", ".")
    return text.replace(" ", "\N{NO-BREAK SPACE}")
