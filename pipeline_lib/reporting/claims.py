"""What papers claim, and what this study's tests say to it."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import NamedTuple

import numpy as np
import pandas as pd

from pipeline_lib.evaluation.seed_noise import DifferenceTest
from pipeline_lib.reporting.comparisons import CORRECTED, difference_cells, p_value
from pipeline_lib.reporting.differences import Asked, Difference
from pipeline_lib.reporting.figures import COLUMNS, KEY
from pipeline_lib.reporting.table import Table, mean_cell
from pipeline_lib.settings.claims import MEASURES, Claim
from pipeline_lib.settings.strict import NONE

Claims = Mapping[str, Claim]

VERDICTS = ("reproduced", "not decided", "contradicted")

_OF = ["name", "paper", "claim", "printed", "measure", "item", "row", "against", "expected"]

_OURS = ["value", "sd", "against_value", "against_sd"]
"""Our figures of both rows, means over seeds and their deviations; NaN where there are none."""


def asked_by_claims(claims: Claims) -> Iterator[Asked]:
    """Yield the comparisons that decide the claims."""
    for claim in claims.values():
        for item in claim.compared:
            yield _asked(claim, item)


def judged(
    claims: Claims,
    tests: Mapping[Asked, Difference],
    cells: Mapping[tuple, NamedTuple],
    confidence: float,
) -> pd.DataFrame:
    """Return a row per claim and item: what was compared, the test, and the verdict.

    Args:
        claims: Of the study.
        tests: Of differences.differences, all of :func:`asked_by_claims` among them.
        cells: Every figure by its name (differences.Measured).
        confidence: Level of the study, such as 0.95.

    Returns:
        Columns ``name``, ``paper``, ``claim``, ``printed``, ``measure``, ``item``, ``row``,
        ``against``, ``expected``, our figures of both (:data:`_OURS`), the fields of
        differences.Difference, ``verdict``, one of :data:`VERDICTS`, and ``why`` where nothing is
        decided.
    """
    rows = []
    for name, claim in claims.items():
        for item, compared in claim.compared.items():
            asked = _asked(claim, item)
            found = tests[asked]
            verdict, why = _verdict(claim, found, 1 - confidence)
            own = {**claim.model_dump(), **compared.model_dump(), "name": name, "item": item}
            own |= dict(zip(_OURS, _ours(asked, cells), strict=True))
            rows.append({**own, **asdict(found), "verdict": verdict, "why": why})
    return pd.DataFrame(rows, columns=[*_OF, *_OURS, *asdict(Difference(0.0)), "verdict", "why"])


def claim_table(table: pd.DataFrame) -> Table | None:
    """Return the claims with their verdicts.

    Args:
        table: Of :func:`judged`.
    """
    ours = table["printed"] == NONE
    title = f"What the papers claim: {_counted(table[~ours])}. "
    if ours.any():
        title += f"Our own questions: {_counted(table[ours])}. "
    header = ["paper", "claim", "printed", "measure", "of", "row", "expected", "verdict", "ours"]
    header += ["difference", "p"]
    return Table(
        "claims",
        f"{title}Differences are the row minus the other, {CORRECTED}. "
        "Where other draws of the test might turn it, nothing is decided",
        header,
        [_line(row) for row in table.to_dict("records")],
        labels=8,
    ) if len(table) else None  # fmt: skip


def reranked_figures(
    rerankings: Mapping[str, dict], translators: Mapping[str, str]
) -> pd.DataFrame:
    """Return BLEU of re-ranked translations, and of what their translators chose, as figures.

    Args:
        rerankings: Report of each entry that ran.
        translators: Translator of each entry.
    """
    rows = []
    for asked, test, before, _ in _rerankings(rerankings, translators):
        ranked = {asked.recipe: [*test["reranked"].values()], asked.baseline: [test[before]]}
        for name, found in ranked.items():
            values = pd.Series([each["bleu"] for each in found])
            cells = (name, *asked.figure, len(values), values.mean(), values.std())
            rows.append(dict(zip([*KEY, "seeds", "value", "sd"], cells, strict=True)))
    return pd.DataFrame(rows, columns=COLUMNS)


def reranking_tests(
    rerankings: Mapping[str, dict], translators: Mapping[str, str]
) -> dict[Asked, DifferenceTest]:
    """Return the tests of re-ranked translations against what their translators chose.

    Args:
        rerankings: Report of each entry that ran; those of one seed are not tested.
        translators: Translator of each entry.
    """
    return {
        asked: DifferenceTest(*test[gain]["interval"], test[gain]["p"])
        for asked, test, _, gain in _rerankings(rerankings, translators)
        if test[gain]["p"] is not None
    }


def _rerankings(
    rerankings: Mapping[str, dict], translators: Mapping[str, str]
) -> Iterator[tuple[Asked, dict, str, str]]:
    """Yield what claims may ask of a re-ranking, its test split, and two keys in there.

    They are of what it is compared with, and of what it gains.
    """
    for name in sorted(translators.keys() & rerankings.keys()):
        for measure, before, gain in (
            ("bleu", "own", "bleu_gain"),
            ("bleu_over_control", "control", "bleu_gain_over_control"),
        ):
            task, variant, metric, _ = MEASURES[measure]
            asked = Asked(name, translators[name], task, name, variant, metric)
            yield asked, rerankings[name]["test"], before, gain


def _asked(claim: Claim, item: str) -> Asked:
    chosen, measure = claim.compared[item], MEASURES[claim.measure]
    return Asked(chosen.row, chosen.against, measure.task, item, measure.variant, measure.metric)


def _ours(asked: Asked, cells: Mapping[tuple, NamedTuple]) -> Iterator[float]:
    for name in (asked.recipe, asked.baseline):
        cell = cells.get((name, *asked.figure))
        yield from (np.nan, np.nan) if cell is None else (cell.value, cell.sd)


def _verdict(claim: Claim, found: Difference, level: float) -> tuple[str, str]:
    if found.untested:
        return "not decided", found.untested
    side = found.side(level)
    if side >= 0:
        drawn = "" if side else f", ± {p_value(2 * found.error)}: other draws might turn it"
        return "not decided", f"p {p_value(found.holm)} after correction{drawn}"
    as_expected = (found.difference > 0) == (claim.expected == "more")
    return ("reproduced", "") if as_expected else ("contradicted", "")


def _counted(table: pd.DataFrame) -> str:
    counts, claims = table["verdict"].value_counts(), table["name"].nunique()
    found = ", ".join(f"{counts.get(verdict, 0)} {verdict}" for verdict in VERDICTS)
    return f"{found} (in {len(table)} comparisons of {claims} claims)"


def _line(row: Mapping[str, object]) -> list[str]:
    found = Difference(**{name: row[name] for name in asdict(Difference(0.0))})
    form = MEASURES[row["measure"]].form
    plain = form.removeprefix("+")
    ours = (mean_cell(row[mean], row[sd], plain) for mean, sd in (_OURS[:2], _OURS[2:]))
    cells = difference_cells(found, form)
    words = [row[name] for name in ("paper", "claim", "printed", "measure", "item")]
    than = f"{row['expected']} than {row['against']}"
    return [*words, row["row"], than, row["verdict"], " against ".join(ours), *cells]
