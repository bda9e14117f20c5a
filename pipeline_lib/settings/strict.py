"""What all parts of params.yaml are made of."""

import difflib
from collections.abc import Container, Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Annotated, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic_core import PydanticCustomError

T = TypeVar("T")

NONE = "none"
"""Name of every empty input (pair set, features, lexicon, model): a real, empty artefact."""

RANDOM = "random"
"""Name of the empty word vectors: words start from draws."""

Count = Annotated[int, Field(ge=1)]
Whole = Annotated[int, Field(ge=0)]
Rate = Annotated[float, Field(gt=0)]
Seed = Annotated[int, Field(ge=0, lt=2**32)]
"""Of random numbers: what numpy, torch and gensim all take."""

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_]*$")]
Precision = Literal["bf16", "f32", "f64"]
"""``bf16``: matrix products of bfloat16 where the hardware has them, else ``f32``. ``f32``: single
precision. ``f64``: the reference, whose results are the same on every CPU (compute/arithmetic)."""

LANGUAGE_CODE = "[a-z]{2,3}"
Language = Annotated[str, Field(pattern=f"^{LANGUAGE_CODE}$")]


def _each_once(values: list[T]) -> list[T]:
    if any(value in values[:place] for place, value in enumerate(values)):
        raise PydanticCustomError("twice", "each entry once")
    return values


def _ascending(numbers: list[int]) -> list[int]:
    if any(low >= high for low, high in pairwise(numbers)):
        raise PydanticCustomError("order", "ascending numbers")
    return numbers


Ascending = Annotated[list[Count], AfterValidator(_ascending)]

Sentence = Annotated[str, AfterValidator(lambda text: " ".join(text.split()))]
"""Text of a table's cell or title: YAML may have broken its lines."""

Several = Annotated[list[T], Field(min_length=1), AfterValidator(_each_once)]
"""One or more different ones."""


class SettingsError(ValueError):
    """params.yaml is not what the pipeline can run."""


class Strict(BaseModel):
    """A mapping of which every key is required and no other is allowed."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


def choose(table: Mapping[str, T], name: str, kind: str) -> T:
    """Return ``table[name]``; if there is none, name the closest entry."""
    if name not in table:
        raise SettingsError(f"no {kind} is called {name!r}.{suggest(name, table)}")
    return table[name]


def unknown(where: str, names: Iterable[str], known: Container[str]) -> Iterator[str]:
    """Yield a sentence for each name that names nothing."""
    for name in names:
        if name not in known:
            yield f"{where}: nothing is called {name!r}.{suggest(name, known)}"


def unknown_keys(where: str, keys: Iterable[str], known: Container[str]) -> Iterator[str]:
    """Yield a sentence for each key that names nothing, with its own place."""
    for key in keys:
        yield from unknown(f"{where}.{key}", [key], known)


def suggest(name: str, known: object) -> str:
    """Return a hint that names the closest legal name, or all of them."""
    close = difflib.get_close_matches(str(name), [str(item) for item in known], n=1)
    if close:
        return f" Did you mean {close[0]!r}?"
    legal = ", ".join(sorted(str(item) for item in known))
    if legal in ("", NONE, RANDOM):
        return f" No name is defined there yet{f', {legal} is no input' if legal else ''}."
    return f" Legal names: {legal}."
