"""Pairs of sentences with human scores of how alike they are.

A scored set is a UTF-8 text file without a header, one pair per line, three columns between tabs:
score, first sentence, second sentence. A pair with an empty score was never judged and is left
out, as in the SemEval tasks (Agirre et al. 2014; 2015).
"""

import math
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from pipeline_lib.contract.problems import raise_problems
from pipeline_lib.corpora.files import note_lines, read_lines
from pipeline_lib.text.letters import letters


def read_scored_pairs(path: Path) -> pd.DataFrame:
    """Read the judged pairs of a scored set.

    Returns:
        Columns ``line`` (from 1), ``score``, ``first``, ``second``; sentences in Unicode form NFC.

    Raises:
        ContractError: Lists every line that has not three columns, a score that is no number, or
            no sentence; or there is no judged pair.
    """
    problems: list[str] = []
    lines = [unicodedata.normalize("NFC", line) for line in read_lines(path, problems)]
    rows = [(number, *line.rstrip("\r").split("\t")) for number, line in enumerate(lines, 1)]
    note_lines(problems, path, [(row[0], found) for row in rows for found in _line_problems(row)])
    judged = [row for row in rows if row[1].strip()]
    if not problems and not judged:
        problems.append(f"{path}: expected pairs with a score in the first column, found none")
    raise_problems("scored pairs", problems)
    pairs = pd.DataFrame(judged, columns=["line", "score", "first", "second"])
    return pairs.astype({"score": float})


def _line_problems(row: tuple[int, *tuple[str, ...]]) -> Iterator[str]:
    _, score, *sentences = row
    if len(sentences) != 2:
        yield f"expected score, tab, sentence, tab, sentence; found {len(row) - 1} column(s)"
    elif score.strip() and not _is_finite(score):
        yield f"expected a number or nothing as the score, found {score!r}"
    elif score.strip() and not all(map(letters, sentences)):
        yield f"expected two sentences, found {sentences!r}"


def _is_finite(text: str) -> bool:
    try:
        return "_" not in text and math.isfinite(float(text))  # Python reads 1_0 as 10
    except ValueError:
        return False
