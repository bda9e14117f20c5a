"""Sentences as pieces, and the choice between ways to say the same."""

import random
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

Option = TypeVar("Option")
Choose = Callable[[Sequence[Option]], Option]
"""Picks one of several ways to say the same."""

_FAVOURITE = 0.65
"""How often a style takes the way it likes best of those that remain."""


@dataclass(frozen=True)
class Word:
    """One token that says one concept.

    Attributes:
        number: ``one`` or ``many`` where the form shows it, else None.
    """

    text: str
    concept: str
    number: str | None = None


Phrase = list[str | Word]


@dataclass(frozen=True)
class Sentence:
    """A sentence as text, and its words that carry a concept."""

    text: str
    words: tuple[Word, ...]


ORDERS: dict[str, Callable[[Sequence[Option]], Sequence[Option]]] = {
    "flat": lambda options: options,
    "sketch": lambda options: options[::-1],
}
"""In which order each style likes the ways to say something: the two prefer opposite words."""


def prefer(style: str, rng: random.Random) -> Choose:
    """Return the choice of a style: mostly its favourite, sometimes another way."""

    def choose(options: Sequence[Option]) -> Option:
        *others, last = ORDERS[style](options)
        for option in others:
            if rng.random() < _FAVOURITE:
                return option
        return last

    return choose


def tagged_first(text: str, concept: str) -> Phrase:
    """Split words of which the first carries the concept."""
    word, *others = text.split()
    return [Word(word, concept), *others]


def tagged_last(text: str, concept: str) -> Phrase:
    """Split words of which the last carries the concept."""
    *others, word = text.split()
    return [*others, Word(word, concept)]


def spaced(phrase: Phrase, sandhi: Iterable[tuple[str, str]]) -> Sentence:
    """Join a phrase in a script that separates words.

    Args:
        phrase: What to join.
        sandhi: Regular expressions and replacements that change words by their neighbours.
    """
    text = " ".join(_texts(phrase)).replace(" ,", ",")
    for pattern, replacement in sandhi:
        text = re.sub(pattern, replacement, text)
    return Sentence(f"{text[0].upper()}{text[1:]}.", _words(phrase))


def unspaced(phrase: Phrase) -> Sentence:
    """Join a phrase in a script that does not separate words."""
    return Sentence("".join(_texts(phrase)) + "。", _words(phrase))


def _texts(phrase: Phrase) -> list[str]:
    return [piece.text if isinstance(piece, Word) else piece for piece in phrase]


def _words(phrase: Phrase) -> tuple[Word, ...]:
    return tuple(piece for piece in phrase if isinstance(piece, Word))
