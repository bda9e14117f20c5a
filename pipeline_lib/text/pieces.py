"""Pieces of words: what a word that is in no vocabulary is read as.

A piece is a run of letters, the marks of a word's begin and end among them, that several words of
the training captions share. A word is cut into the longest pieces from left to right; what no piece
covers is left out.
"""

from collections import Counter
from collections.abc import Collection, Iterable

MARK = "\ue000"
"""Stands before a piece, so that it is no word: a character for private use."""

LONGEST, SHARED_BY = 6, 4
"""Characters of the longest piece, and words that must have one."""

_SHORTEST = 2
_FIRST_IDEOGRAPH = "\u2e80"
"""From here on one character is a piece."""


def shared_pieces(words: Iterable[str]) -> tuple[str, ...]:
    """Return the pieces that enough of some different words share, in alphabetical order."""
    counts = Counter(piece for word in words for piece in _runs(f"<{word}>"))
    return tuple(sorted(MARK + piece for piece, count in counts.items() if count >= SHARED_BY))


def cut(word: str, known: Collection[str]) -> list[str]:
    """Return the pieces of ``known`` that a word is read as, from left to right."""
    text, start, found = f"<{word}>", 0, []
    while start < len(text):
        ends = range(min(len(text), start + LONGEST), start, -1)
        piece = next((p for end in ends if (p := MARK + text[start:end]) in known), None)
        if piece:
            found.append(piece)
        start += len(piece) - len(MARK) if piece else 1
    return found


def _runs(text: str) -> set[str]:
    found = {
        text[start : start + length]
        for length in range(_SHORTEST, LONGEST + 1)
        for start in range(len(text) - length + 1)
    }
    return found | {letter for letter in text if letter >= _FIRST_IDEOGRAPH}
