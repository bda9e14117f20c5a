"""Sentences from forms: ``PLACE SUBJECT: there is SUBJECT [in PLACE] | in PLACE there is SUBJECT``.

Before the colon stand the names of the parts, in the order in which their words are chosen; all
choices draw from one generator, so another order gives another corpus. After it stand patterns, of
which one that fits is chosen. In a pattern, a name in capitals stands for the part, any other word
for itself, and what is in brackets is left out where a part in it is empty.
"""

import re
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from functools import cache
from itertools import chain

from pipeline_lib.corpora.world.scenes import Entity, Scene
from pipeline_lib.corpora.world.wording import Choose, Phrase, Sentence

Part = Callable[[Scene, Choose], Phrase]
"""Says one part of a message; the phrase is empty where the message has no such part."""

_OPTIONAL = {"PLACE", "RELATION", "OBJECT"}
"""What only some messages state. A pattern must not leave out what a message does state."""


@dataclass(frozen=True)
class Language:
    """How a language says each form of message and the parts of one, and how it is written."""

    forms: Mapping[str, str]
    parts: Mapping[str, Part]
    write: Callable[[Phrase], Sentence]


def realise(form: str, parts: Mapping[str, Part], message: Scene, choose: Choose) -> Phrase:
    """Choose the words of each part of a message, then the pattern that they are put in."""
    names, patterns = _parse(form)
    said = {name: parts[name](message, choose) for name in names}
    stated = {name for name, phrase in said.items() if phrase}
    return _fill(choose([pattern for pattern in patterns if _fits(pattern, stated)]), said)


def of(index: int, say: Callable[[Entity, Choose], Phrase]) -> Part:
    """Return the part that says something of the first (0) or the second (1) entity."""
    return lambda message, choose: say(message.entities[index], choose)


@dataclass(frozen=True)
class _Pattern:
    """Groups of words: what one pair of brackets holds, or one word outside brackets."""

    groups: tuple[tuple[str, ...], ...]
    names: frozenset[str]
    required: frozenset[str]


@cache
def _parse(form: str) -> tuple[list[str], list[_Pattern]]:
    names, patterns = form.split(":")
    return names.split(), [_parse_pattern(pattern) for pattern in patterns.split("|")]


def _parse_pattern(pattern: str) -> _Pattern:
    found = re.findall(r"\[(.+?)\]|(\S+)", pattern)
    groups = tuple(tuple((bracketed or word).split()) for bracketed, word in found)
    names = frozenset(word for group in groups for word in group if word.isupper())
    return _Pattern(groups, names, required=names & {word for _, word in found})


def _fits(pattern: _Pattern, stated: Set[str]) -> bool:
    """Tell whether the pattern says all that the message states, and nothing that it does not."""
    return pattern.required <= stated and stated & _OPTIONAL <= pattern.names


def _fill(pattern: _Pattern, said: Mapping[str, Phrase]) -> Phrase:
    filled: Phrase = []
    for group in pattern.groups:
        pieces = [said[word] if word in pattern.names else [word] for word in group]
        if all(pieces):
            filled += chain.from_iterable(pieces)
    return filled
