"""Punctuation and tokens as the Moses scripts make them, so that text equals the field's files.

Multi30k's public ``lc.norm.tok`` files are lowercase | normalize-punctuation | tokenizer (Koehn et
al. 2007, "Moses: Open Source Toolkit for Statistical Machine Translation"). Both scripts are
sacremoses'; used as here, its tokens are those of the files on all 116,000 training lines.
"""

from collections.abc import Callable


def punctuation_normalizer(language: str, apostrophes: bool) -> Callable[[str], str]:
    """Return the function that rewrites the punctuation of one line.

    Args:
        language: Of the line.
        apostrophes: Whether ’ is always an apostrophe. Moses' script makes a quotation mark of it
            unless it stands between two of a to z, also in l’école.
    """
    from sacremoses import MosesPunctNormalizer  # takes a second to import

    normalize = MosesPunctNormalizer(language, perl_parity=not apostrophes).normalize

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
