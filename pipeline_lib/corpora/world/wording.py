"""Sentences as pieces, and the choice between ways to say the same."""

import random
from collections.abc import Callable, Sequence
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


def spaced(phrase: Phrase) -> Sentence:
    """Join a phrase in a script that separates words; an apostrophe joins to the right."""
    text = " ".join(_texts(phrase)).replace("' ", "'").replace(" ,", ",")
    return Sentence(f"{text[0].upper()}{text[1:]}.", _words(phrase))


def unspaced(phrase: Phrase) -> Sentence:
    """Join a phrase in a script that does not separate words."""
    return Sentence("".join(_texts(phrase)) + "。", _words(phrase))


def _texts(phrase: Phrase) -> list[str]:
    return [piece.text if isinstance(piece, Word) else piece for piece in phrase]


def _words(phrase: Phrase) -> tuple[Word, ...]:
    return tuple(piece for piece in phrase if isinstance(piece, Word))
