"""Punctuation and tokens as the Moses scripts make them, so that text equals the field's files.

Multi30k's public ``lc.norm.tok`` files are lowercase | normalize-punctuation | tokenizer (Koehn et
al. 2007, "Moses: Open Source Toolkit for Statistical Machine Translation"). The tokenizer is
sacremoses'. Its normaliser follows later versions of the script, in which single quotation marks
become apostrophes, so the rules of the version that made those files stand here.

Two properties of the original show in its output and are kept: it sees each line with its line
feed, which counts as a character after a closing quotation mark; and it reads bytes, so that a
letter is ``a`` to ``z`` and a digit ``0`` to ``9`` only.
"""

import re
from collections.abc import Callable

Rule = tuple[str, str]

_SPACING: tuple[Rule, ...] = (
    (r"\r", ""),
    (r"\(", " ("),
    (r"\)", ") "),
    (r" +", " "),
    (r"\) ([.!:?;,])", r")\1"),
    (r"\( ", "("),
    (r" \)", ")"),
    (r"([0-9]) %", r"\1%"),
    (r" ([:;])", r"\1"),
)
"""One space outside a bracket and none inside; none before ``%``, colon and semicolon."""

_QUOTES_AND_DASHES: tuple[Rule, ...] = (
    (r"`", "'"),
    (r"''", ' " '),
    (r"[„“”]", '"'),
    (r"–", "-"),
    (r"—", " - "),
    (r" +", " "),
    (r"´", "'"),
    # One mark after the other, each letter used once: in ``a’b’c`` only the first is an apostrophe.
    (r"([a-zA-Z])‘([a-zA-Z])", r"\1'\2"),
    (r"([a-zA-Z])’([a-zA-Z])", r"\1'\2"),
    (r"[‘‚’]", '"'),
    (r"''", '"'),
    (r"…", "..."),
)
"""Typographic marks to ASCII; a single mark is an apostrophe only between two letters."""

_GUILLEMETS: tuple[Rule, ...] = (
    (r"\u00a0«\u00a0", ' "'),
    (r"«\u00a0?", '"'),
    (r"\u00a0»\u00a0", '" '),
    (r"\u00a0?»", '"'),
)
"""French quotation marks, with the no-break spaces that French typography sets beside them."""

_NO_BREAK_SPACES: tuple[Rule, ...] = (
    (r"\u00a0%", "%"),
    (r"nº\u00a0", "nº "),
    (r"\u00a0(ºC|cm)", r" \1"),
    (r"\u00a0([:?!;])", r"\1"),
    (r",\u00a0", ", "),
    (r" +", " "),
)
"""No-break spaces before punctuation go, those beside units and after commas become spaces."""

_QUOTE_THEN_STOP: tuple[Rule, ...] = (
    (r',"', '",'),
    # The last group takes the line feed at a line's end, so that a final ``."`` is turned round.
    (r'(\.+)"([ \t\n\f\v]*[^<])', r'"\1\2'),
)
_STOP_THEN_QUOTE: tuple[Rule, ...] = ((r'"([,.]+)', r'\1"'),)
_STOPS_BY_LANGUAGE: dict[str, tuple[Rule, ...]] = {"en": _STOP_THEN_QUOTE, "cs": ()}
"""English sets stops inside quotation marks, Czech as it likes, all others outside."""

_DECIMAL_COMMA = frozenset({"cs", "de", "es", "fr"})
"""Languages in which a no-break space between two digits becomes a comma, elsewhere a point."""


def punctuation_normalizer(language: str) -> Callable[[str], str]:
    """Return the function that rewrites the punctuation of one line of ``language``."""
    compiled = [(re.compile(pattern), replacement) for pattern, replacement in _rules(language)]

    def normalize(text: str) -> str:
        text += "\n"
        for pattern, replacement in compiled:
            text = pattern.sub(replacement, text)
        return text.strip()

    return normalize


def moses_tokenizer(language: str) -> Callable[[str], list[str]]:
    """Return Moses' tokenizer of ``language``; it writes ``'`` and ``&`` as XML entities.

    The list of abbreviations that keep their full stop is the language's own where Moses has one,
    and the English one elsewhere, as in Moses.
    """
    from sacremoses import MosesTokenizer  # takes a second to import

    return MosesTokenizer(language).tokenize


def _rules(language: str) -> tuple[Rule, ...]:
    mark = "," if language in _DECIMAL_COMMA else "."
    return (
        *_SPACING,
        *_QUOTES_AND_DASHES,
        *_GUILLEMETS,
        *_NO_BREAK_SPACES,
        *_STOPS_BY_LANGUAGE.get(language, _QUOTE_THEN_STOP),
        (r"([0-9])\u00a0([0-9])", rf"\1{mark}\2"),
    )
