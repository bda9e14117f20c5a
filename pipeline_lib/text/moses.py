"""Punctuation and tokens as the Moses scripts make them, so that text equals the field's files.

Multi30k's public ``lc.norm.tok`` files are lowercase | normalize-punctuation | tokenizer (Koehn et
al. 2007, "Moses: Open Source Toolkit for Statistical Machine Translation"). Both scripts are
sacremoses'; used as here, its tokens are those of the files on all 116,000 training lines.
"""

from collections.abc import Callable


def punctuation_normalizer(language: str, every_letter: bool) -> Callable[[str], str]:
    """Return the function that rewrites the punctuation of one line.

    Args:
        language: Of the line.
        every_letter: Whether all letters are letters beside an apostrophe. Moses' script reads
            bytes, so that to it only a to z are: it makes a quotation mark of the one in l’école.
    """
    from sacremoses import MosesPunctNormalizer  # takes a second to import

    normalize = MosesPunctNormalizer(language, perl_parity=not every_letter).normalize

    def normalize_line(text: str) -> str:
        # The script sees a line with its line feed, which its rule for a full stop before a
        # closing quotation mark takes for a character.
        return normalize(text + "\n").strip()

    return normalize_line


def has_rules(language: str) -> bool:
    """Return whether Moses knows a language: which of its abbreviations keep their full stop."""
    from sacremoses.corpus import NonbreakingPrefixes  # takes a second to import

    return language in NonbreakingPrefixes().available_langs.values()


def moses_tokenizer(language: str) -> Callable[[str], list[str]]:
    """Return Moses' tokenizer of ``language``; it writes ``'`` and ``&`` as XML entities.

    The list of abbreviations that keep their full stop is the language's own where Moses has one,
    and the English one elsewhere, as in Moses.
    """
    from sacremoses import MosesTokenizer  # takes a second to import

    return MosesTokenizer(language).tokenize
