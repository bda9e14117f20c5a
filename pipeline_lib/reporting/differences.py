"""Differences of two recipes in one figure, tested over seeds and photos, corrected for many tests.

The sum of recalls has hits of each seed and photo (hits.HITS). What re-ranking gains was tested by
its stage. Of the other figures each model's own interval is known. There, two recipes are tested as
if each were measured on units of its own, and models of one recipe as if they agreed on every unit:
both make a difference harder to show.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cached_property
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
import pandas as pd

from pipeline_lib.evaluation.retrieval.hits import image_contributions, pool_of
from pipeline_lib.evaluation.seed_noise import (
    DifferenceTest,
    SeedNoise,
    difference_tests,
    noise_draws,
    normal_draws,
    seed_noise,
    two_sided_p,
)
from pipeline_lib.evaluation.significance import bootstrap_interval, holm
from pipeline_lib.reporting.figures import KEY, tested_alike
from pipeline_lib.settings.claims import MEASURES
from pipeline_lib.settings.evaluations import Evaluations
from pipeline_lib.settings.recipes import Recipe
from pipeline_lib.settings.strict import NONE

Pool = tuple[str, str, str]
"""A language, the data set of its captions, and the digest of the images that they query."""

_OF_CAPTIONS = ("retrieval", "sentence_retrieval")
"""Tasks whose queries are captions of a recipe's data set."""

ONE_SEED = "one seed: not tested"
ONE_START = "seeds that start from one model: not tested"
OTHER_QUERIES = "different test queries: not tested"


class Asked(NamedTuple):
    """Two recipes, and the figure (figures.KEY) that they are compared by."""

    recipe: str
    baseline: str
    task: str
    item: str
    variant: str
    metric: str

    @classmethod
    def sums(cls, recipe: str, baseline: str, language: str) -> "Asked":
        """Ask for the sums of recalls in a language."""
        return cls(recipe, baseline, "retrieval", language, "", "sum_of_recalls")

    @property
    def is_sum(self) -> bool:
        """Whether the figure is the one that has hits."""
        return self == Asked.sums(self.recipe, self.baseline, self.item)

    @property
    def figure(self) -> tuple[str, ...]:
        """Its name, less the recipe."""
        return self[2:]

    @property
    def turned(self) -> "Asked":
        """The same with recipe and baseline exchanged."""
        return self._replace(recipe=self.baseline, baseline=self.recipe)


@dataclass(frozen=True)
class Difference:
    """One recipe's figure less another's; means over their seeds.

    Attributes:
        difference: In the figure's unit; NaN where one of them has no such figure.
        low: Lower end of its interval over seeds and photos, or sentences; NaN where it is not
            tested.
        high: Upper end.
        p: Of no difference, two-sided.
        holm: The same, corrected for all tests of the study.
        error: Standard error of ``holm``, which rests on draws.
        untested: Why there is no test; empty where there is one.
    """

    difference: float
    low: float = np.nan
    high: float = np.nan
    p: float = np.nan
    holm: float = np.nan
    error: float = field(default=np.nan, compare=False)
    untested: str = ""

    def side(self, level: float) -> int:
        """Return -1 where the corrected p is below a level, or the level, and 1 where it is above.

        Where other draws might turn it, 0: within two standard errors.
        """
        if abs(self.holm - level) <= 2 * self.error:
            return 0
        return -1 if self.holm <= level else 1

    @property
    def turned(self) -> "Difference":
        """The same comparison with the recipe and the baseline exchanged."""
        return replace(self, difference=-self.difference, low=-self.high, high=-self.low)


@dataclass(frozen=True)
class Measured:
    """What intervals over seeds, and tests, are made of.

    Attributes:
        figures: Of figures.figures: bounds are those of single models.
        hits: Of every seed and image (hits.HITS), of the recipes that have any.
        recipes: Those that ran.
        settings: Of the study's evaluations.
        tested: Tests that the stage which measured the figures has made, of their difference in
            this order.
        datasets: The data set of each recipe's queries: two engines translate the same photos'
            captions.
    """

    figures: pd.DataFrame
    hits: Mapping[str, pd.DataFrame]
    recipes: Mapping[str, Recipe]
    settings: Evaluations
    tested: Mapping[Asked, DifferenceTest] = field(default_factory=dict)
    datasets: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def cells(self) -> dict[tuple, NamedTuple]:
        """Every figure by its name (figures.KEY)."""
        rows = self.figures.drop_duplicates(KEY).itertuples(index=False)
        return {tuple(getattr(row, key) for key in KEY): row for row in rows}

    @cached_property
    def pools(self) -> dict[Pool, dict[str, np.ndarray]]:
        """What each image adds to each seed's sum ``[seeds, images]``, by pool and recipe."""
        found = defaultdict(dict)
        for name, hits in self.hits.items():
            for language in hits["language"].unique():
                own = image_contributions(hits, language)
                found[self.pool(name, language)][name] = own
        return dict(found)

    @cached_property
    def pooled(self) -> dict[Pool, SeedNoise]:
        """Deviation of the seeds' sums, of the pools in which a recipe has two."""
        several = {
            pool: [rows[name] for name in self._first({n for n in rows if len(rows[n]) > 1})]
            for pool, rows in self.pools.items()
        }
        return {pool: seed_noise(rows) for pool, rows in several.items() if rows}

    def pool(self, recipe: str, language: str) -> Pool | None:
        """Return the pool of a recipe; None if its hits are not stored."""
        found = pool_of(self.hits[recipe], language) if recipe in self.hits else None
        return (language, self.datasets.get(recipe, ""), found) if found else None

    def seeds(self, recipe: str, language: str) -> list[int]:
        """Return the seeds that a recipe has hits of in a language."""
        hits = self.hits[recipe]
        return hits.loc[hits["language"] == language, "seed"].tolist()

    @cached_property
    def several(self) -> dict[tuple, dict[str, NamedTuple]]:
        """Every figure of several seeds, by its name without the recipe, and by recipe."""
        found = defaultdict(dict)
        for key, row in self.cells.items():
            if row.seeds > 1:
                found[key[1:]][key[0]] = row
        return dict(found)

    def figure_noise(self, figure: Sequence[str], queries: float) -> SeedNoise:
        """Pool the deviation of seeds in a figure over the recipes that have it of as many."""
        rows = self.several[tuple(figure)]
        alike = {name for name, row in rows.items() if tested_alike([row.queries, queries])}
        several = [(rows[name].seeds - 1, rows[name].sd ** 2) for name in self._first(alike)]
        degrees = sum(each for each, _ in several)
        return SeedNoise(sum(each * sd2 for each, sd2 in several) / degrees, 0.0, int(degrees))

    def _first(self, names: Set[str]) -> list[str]:
        """Return the recipes that start from no other one of these, nor from the same as another.

        One that does, by way of others too, has its seeds: what they deviate by would count again.
        Left out is one whose seeds all start from one model: they deviate by less.
        """
        found: dict[str, str] = {}
        for name in sorted(each for each in names if not self.share_a_start(each)):
            starts = [*self._starts(name)]
            if not names.intersection(starts):
                found.setdefault([name, *starts][-1], name)
        return sorted(found.values())

    def share_a_start(self, name: str) -> bool:
        """Return whether a recipe starts from one of one seed: no run of its seeds is its own."""
        starts = (self.recipes[each] for each in self._starts(name) if each in self.recipes)
        return any(len(each.seeds) == 1 for each in starts)

    def _starts(self, name: str) -> Iterator[str]:
        """Yield the recipe that one starts from, the one that this starts from, and so on."""
        while name in self.recipes and (name := self.recipes[name].initial) != NONE:
            yield name


def differences(asked: Iterable[Asked], measured: Measured) -> dict[Asked, Difference]:
    """Test all that a study asks, each once, and correct the p-values for their number."""
    asked = list(dict.fromkeys(asked))
    once = list(dict.fromkeys(_either_way(each, measured) for each in asked))
    found = {each: _untested(each, measured) for each in once}
    open_ = [each for each in once if not found[each].untested]
    tests = dict(_tests_of_sums([each for each in open_ if each.is_sum], measured))
    tests |= {
        each: measured.tested.get(each) or _test_of_figures(each, measured)
        for each in open_
        if not each.is_sum
    }
    corrected = holm([tests[each].p for each in open_])
    for each, p in zip(open_, corrected, strict=True):
        test = tests[each]
        own = {"low": test.low, "high": test.high, "p": test.p}
        error = p * _p_error(test, measured.settings.significance.draws) / test.p
        found[each] = replace(found[each], **own, holm=p, error=error)
    return {each: found[each] if each in found else found[each.turned].turned for each in asked}


def _p_error(test: DifferenceTest, draws: int) -> float:
    share = float(np.sqrt(test.p * (1 - test.p) / draws))
    return share if np.isnan(test.p_error) else test.p_error


def _either_way(asked: Asked, measured: Measured) -> Asked:
    """Return the way round in which a question is asked and its turned one are tested, once."""
    ways = asked, asked.turned
    return next((way for way in ways if way in measured.tested), min(ways))


def _untested(asked: Asked, measured: Measured) -> Difference:
    """Return the difference as it is without a test, and why there will be none."""
    names = asked.recipe, asked.baseline
    a, b = rows = [measured.cells.get((name, *asked.figure)) for name in names]
    if None in rows:
        missing = names[rows.index(None)]
        why = "has no such figure" if missing in measured.recipes else "is not trained"
        if asked.task == MEASURES["bleu"].task:  # of which the item is the name
            missing, why = asked.item, "has not run"
        return Difference(np.nan, untested=f"{missing} {why}")
    obstacle = "" if asked in measured.tested else _obstacle(asked, rows, measured)
    return Difference(a.value - b.value, untested=obstacle)


def _obstacle(asked: Asked, rows: Sequence[NamedTuple], measured: Measured) -> str:
    if min(row.seeds for row in rows) < 2:
        return ONE_SEED
    if any(measured.share_a_start(name) for name in asked[:2]):
        return ONE_START
    if asked.task in _OF_CAPTIONS and len({measured.datasets.get(each) for each in asked[:2]}) > 1:
        return OTHER_QUERIES
    if not asked.is_sum:
        if np.isnan([row.low for row in rows]).any():
            return "no interval: not tested"
        return "" if tested_alike([row.queries for row in rows]) else OTHER_QUERIES
    pools = [measured.pool(name, asked.item) for name in (asked.recipe, asked.baseline)]
    if None in pools:
        return "hits of seeds not stored: not tested"
    return "" if pools[0] == pools[1] else OTHER_QUERIES


@dataclass(frozen=True)
class _Pair:
    """What one test of sums compares.

    Attributes:
        asked: The question.
        a: What each image adds to each seed's sum, of the recipe ``[seeds, images]``.
        b: Of its baseline.
        paired: Whether seeds of the same number start from the same weights.
    """

    asked: Asked
    a: np.ndarray
    b: np.ndarray
    paired: bool

    @property
    def mean(self) -> np.ndarray:
        """What each image adds to the difference, mean over seeds ``[images]``."""
        return self.a.mean(axis=0) - self.b.mean(axis=0)


def _tests_of_sums(
    asked: Sequence[Asked], measured: Measured
) -> Iterator[tuple[Asked, DifferenceTest]]:
    """Test the sums of recalls, those of equally many images by the same draws."""
    drawn = measured.settings.drawn
    by_pool: dict[Pool, list[_Pair]] = defaultdict(list)
    for each in asked:
        pool = measured.pool(each.recipe, each.item)
        a, b = (measured.pools[pool][name] for name in (each.recipe, each.baseline))
        # While a recipe is trained anew, the hits of the other may be of other seeds.
        seeds = [measured.seeds(name, each.item) for name in (each.recipe, each.baseline)]
        paired = _share_weights(each, measured) and seeds[0] == seeds[1]
        by_pool[pool].append(_Pair(each, a, b, paired))
    alike = defaultdict(list)
    for pool, pairs in by_pool.items():
        noise = _noise_of_differences(pairs, measured.pooled[pool], drawn)
        alike[len(pairs[0].mean)].append((pairs, noise))
    for parts in alike.values():
        pairs = [pair for own, _ in parts for pair in own]
        means = np.stack([pair.mean for pair in pairs], axis=1)
        tests = difference_tests(means, np.hstack([noise for _, noise in parts]), **drawn)
        yield from zip([pair.asked for pair in pairs], tests, strict=True)


def _noise_of_differences(
    pairs: Sequence[_Pair], pooled: SeedNoise, drawn: Mapping[str, float]
) -> np.ndarray:
    """Draw how far the seeds' own parts move each difference ``[draws, tests]``.

    Pairs that share initial weights differ by less than two rows that do not: they have a noise of
    their own, pooled over them.
    """
    together = [pair for pair in pairs if pair.paired]
    degrees = pooled_degrees([(*pair.asked[:2], len(pair.a)) for pair in together])
    of_pairs = (
        seed_noise([pair.a - pair.b for pair in together])._replace(degrees=degrees)
        if together
        else None
    )
    columns = [
        noise_draws(of_pairs, 1 / len(pair.a), drawn["resamples"], drawn["seed"])
        if pair.paired
        else noise_draws(
            pooled, 1 / len(pair.a) + 1 / len(pair.b), drawn["resamples"], drawn["seed"]
        )
        for pair in pairs
    ]
    return np.stack(columns, axis=1)


def pooled_degrees(pairs: Sequence[tuple[str, str, int]]) -> float:
    """Return the degrees of freedom of the variance pooled over pairs of rows with so many seeds.

    Pairs that have a row in common deviate together: of A − B, A − C and B − C each is made of the
    two others, and of A − B and A − C the variances correlate. The degrees are those whose chi² has
    the mean and the variance of the sum of squares (Satterthwaite 1946), where all rows deviate
    alike.
    """
    mean = variance = 0.0
    for seeds in sorted({seeds for *_, seeds in pairs}):
        own = [(one, other) for one, other, count in pairs if count == seeds]
        names = sorted({name for pair in own for name in pair})
        contrasts = np.array([[(n == a) - (n == b) for n in names] for a, b in own])
        together = contrasts @ contrasts.T  # whole numbers
        mean += (seeds - 1) * int(together.trace())
        variance += (seeds - 1) * int((together**2).sum())
    return mean**2 / variance if pairs else 0.0


def _share_weights(asked: Asked, measured: Measured) -> bool:
    """Return whether each seed of one recipe starts from weights that one of the other has, too."""
    one, other = measured.recipes[asked.recipe], measured.recipes[asked.baseline]
    same = NONE != one.initial == other.initial
    tuned = one.initial == asked.baseline or other.initial == asked.recipe
    return (same or tuned) and one.seeds == other.seeds


def _test_of_figures(asked: Asked, measured: Measured) -> DifferenceTest:
    """Test figures of which only intervals are known."""
    drawn = measured.settings.drawn
    a, b = (measured.cells[name, *asked.figure] for name in asked[:2])
    width = 2 * NormalDist().inv_cdf((1 + drawn["confidence"]) / 2)
    spread = np.sqrt(sum(((row.high - row.low) / width) ** 2 for row in (a, b)))
    noise = measured.figure_noise(asked.figure, a.queries)
    seeds = noise_draws(noise, 1 / a.seeds + 1 / b.seeds, drawn["resamples"], drawn["seed"])
    units = spread * normal_draws(drawn["resamples"], [drawn["seed"], 3])
    difference = a.value - b.value
    low, high = difference + bootstrap_interval(units + seeds, drawn["confidence"])
    return DifferenceTest(float(low), float(high), *two_sided_p(difference, units, seeds))
