"""N-best lists in Moses' text format: ``id ||| hypothesis ||| features ||| score``.

Features are written ``name= value``, one value each; a name may have several values in a file of
Moses, which become ``name_1``, ``name_2``. Ids count source sentences from 0 and never decrease.
Bars within a hypothesis are escaped as Moses escapes them.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pipeline_lib.contract.problems import raise_problems
from pipeline_lib.corpora.files import note_lines, read_lines
from pipeline_lib.running.publishing import publish

SPLITS = ("val", "test")
"""Lists are written of both: weights are tuned on the first, and measured on the second."""

_SEPARATOR = " ||| "
_BARS, _ESCAPED = "|||", 3 * "&#124;"


@dataclass(frozen=True)
class NBest:
    """Translations of several sentences, some of each.

    Attributes:
        sentence: Number of the source sentence ``[hypotheses]``, never decreasing.
        text: Translations ``[hypotheses]``.
        names: Names of the features.
        features: ``float64 [hypotheses, features]``.
        scores: The model's own score ``[hypotheses]``.
    """

    sentence: np.ndarray
    text: list[str]
    names: tuple[str, ...]
    features: np.ndarray
    scores: np.ndarray


def read_nbest(path: Path) -> NBest:
    """Read n-best lists.

    Raises:
        ContractError: Lists every line that has not four parts, that has other features than the
            first, a value that is no finite number, or an id smaller than the line before.
    """
    problems: list[str] = []
    rows = [line.rstrip("\r").split(_SEPARATOR) for line in read_lines(path, problems)]
    note_lines(problems, path, _line_problems(rows))
    raise_problems("n-best lists", problems)
    features = [_features(row[2]) for row in rows]
    return NBest(
        sentence=np.array([int(row[0]) for row in rows], np.int64),
        text=[row[1].strip().replace(_ESCAPED, _BARS) for row in rows],
        names=tuple(features[0]),
        features=np.array([list(named.values()) for named in features], np.float64),
        scores=np.array([float(row[3]) for row in rows]),
    )


def write_nbest(lists: NBest, path: Path) -> None:
    """Publish n-best lists; numbers are written so that they are read back exactly.

    Raises:
        ContractError: A translation contains a line break, sentences are not in order, or the
            parts differ in length.
    """
    raise_problems(path, _list_problems(lists))
    with publish(path) as temporary, open(temporary, "w", encoding="utf-8", newline="\n") as file:
        for number, text, values, score in zip(
            lists.sentence.tolist(),
            lists.text,
            lists.features.tolist(),
            lists.scores.tolist(),
            strict=True,
        ):
            escaped = text.replace(_BARS, _ESCAPED)
            named = (f"{name}= {value!r}" for name, value in zip(lists.names, values, strict=True))
            file.write(_SEPARATOR.join([str(number), escaped, " ".join(named), repr(score)]) + "\n")


def _features(text: str) -> dict[str, float]:
    """Return the values by name; ``LM0= -3 TM0= -1 -2`` has LM0, TM0_1 and TM0_2."""
    values: dict[str, list[float]] = {}
    for word in text.split():
        if word.endswith("="):
            name = word.removesuffix("=")
            values[name] = []
        elif not values:
            raise ValueError(f"the value {word!r} before any name")
        else:
            values[name].append(_number(word))
    return {
        name if len(several) == 1 else f"{name}_{place}": value
        for name, several in values.items()
        for place, value in enumerate(several, 1)
    }


def _number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"expected a finite number, found {text!r}")
    return value


def _line_problems(rows: list[list[str]]) -> Iterator[tuple[int, str]]:
    expected, previous = None, 0
    for number, row in enumerate(rows, 1):
        if len(row) != 4:
            yield (
                number,
                f"expected id ||| hypothesis ||| features ||| score, found {len(row)} parts",
            )
            continue
        try:
            sentence, names, _ = int(row[0]), list(_features(row[2])), _number(row[3])
        except ValueError as error:
            yield number, f"expected numbers in the form 'name= value', found: {error}"
            continue
        expected = names if expected is None else expected
        if names != expected:
            yield number, f"expected the features {expected} of the first line, found {names}"
        if sentence < previous:
            yield number, f"expected ids that never decrease, found {sentence} after {previous}"
        previous = sentence


def _list_problems(lists: NBest) -> Iterator[str]:
    rows = {len(lists.sentence), len(lists.text), len(lists.features), len(lists.scores)}
    if len(rows) > 1 or lists.features.shape[1:] != (len(lists.names),):
        yield f"expected one entry per hypothesis everywhere, found {sorted(rows)}"
    if (np.diff(lists.sentence, prepend=0) < 0).any():
        yield "expected sentences from 0 in order, found a smaller number after a larger one"
    if not (np.isfinite(lists.features).all() and np.isfinite(lists.scores).all()):
        yield "expected finite features and scores, found NaN or infinity"
    broken = [text for text in lists.text if "\n" in text or "\r" in text]
    if broken:
        yield f"{len(broken)} translations contain a line break (first: {broken[0]!r})"
