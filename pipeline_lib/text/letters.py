"""A sentence on one line, and what of it its marks, cases and blanks do not change."""

import unicodedata


def one_line(text: str) -> str:
    """Return a text in Unicode's normal form NFC, stripped, each inner whitespace one blank."""
    return " ".join(unicodedata.normalize("NFC", text).split())


def letters(text: str) -> str:
    """Return a sentence's letters and digits, with the marks on them, in Unicode's case folding.

    Vowel signs, of Hindi or Thai for two, are marks that stand on a letter. What chooses between
    forms of a character, such as of a heart, is a mark to Unicode and none here.
    """
    folded = unicodedata.normalize("NFKC", text).casefold()
    return "".join(c for c in folded if c.isalnum() or _is_mark(c))


def _is_mark(character: str) -> bool:
    selects = "VARIATION SELECTOR" in unicodedata.name(character, "")
    return unicodedata.category(character).startswith("M") and not selects
