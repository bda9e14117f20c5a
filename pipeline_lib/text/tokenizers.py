"""Sentences to tokens, by the tokenizer that params.yaml names for their language.

Each tokenizer's package is imported when the first one of its kind is built, so that who works
with European languages pays nothing for the dictionaries of the others.
"""

import unicodedata
import warnings
from collections.abc import Callable, Iterator, Mapping
from itertools import chain

import pandas as pd

from pipeline_lib.compute.forks import on_all_cores
from pipeline_lib.contract.problems import raise_problems
from pipeline_lib.settings.strict import SettingsError
from pipeline_lib.settings.text import Tokenizer
from pipeline_lib.text.languages import two_letters
from pipeline_lib.text.moses import moses_tokenizer, punctuation_normalizer

_WITH_DOTLESS_I = {"tr", "az"}

Tokenize = Callable[[str], list[str]]

_PART = 2048
"""Captions that a core takes at a time."""

_LONGEST = 1000
"""Characters that MeCab and jieba are given at a time, far more than a caption has.

MeCab ends the process on 100,000 digits or letters in a row, and jieba takes the square of the time
for twice as many characters that form no words.
"""


def tokenize_captions(captions: pd.DataFrame, tokenizers: Mapping[str, Tokenizer]) -> pd.DataFrame:
    """Return captions with the column ``tokens`` added: one list of strings per row.

    Args:
        captions: Rows with ``caption_id``, ``language`` and ``text``.
        tokenizers: How each language becomes tokens.

    Raises:
        ContractError: Lists every language without a tokenizer, or every caption without a token.
    """
    languages = sorted(captions["language"].unique())
    raise_problems("tokenizers", _languages_without(tokenizers, languages))
    tokenize = {
        language: build_tokenizer(language, **tokenizers[language].model_dump())
        for language in languages
    }
    rows = [*zip(captions["language"], captions["text"], strict=True)]
    parts = [rows[start : start + _PART] for start in range(0, len(rows), _PART)]

    def tokenize_part(part: list[tuple[str, str]]) -> list[list[str]]:
        return [tokenize[language](text) for language, text in part]

    found = chain.from_iterable(on_all_cores(tokenize_part, parts))
    tokens = pd.Series([*found], captions.index)
    raise_problems("captions", _captions_without_token(captions[tokens.map(len) == 0]))
    return captions.assign(tokens=tokens)


def build_tokenizer(
    language: str, tokenizer: str, lowercase: bool, normalize: bool | str
) -> Tokenize:
    """Return the function from a sentence to its tokens; Unicode form NFC comes before all else.

    Args:
        language: Code of the language, such as ``de``.
        tokenizer: Name in :data:`TOKENIZERS`.
        lowercase: Lower-case first (``ß`` and umlauts stay letters). In Turkish and Azerbaijani
            ``I`` becomes ``ı``, and in all languages ``İ`` becomes ``i``.
        normalize: Rewrite punctuation as Moses does, before the tokenizer; ``unicode``: with ’ as
            an apostrophe wherever it stands.

    Raises:
        SettingsError: If no tokenizer has that name.
    """
    if tokenizer not in TOKENIZERS:
        raise SettingsError(
            f"tokenizers.{language}: no tokenizer is called {tokenizer!r}. "
            f"Legal names: {', '.join(sorted(TOKENIZERS))}."
        )
    steps = [
        _to_nfc,
        # Some letters have a composed form in lower case only, such as ẖ.
        *([_lower_case(language), _to_nfc] if lowercase else []),
        *([punctuation_normalizer(language, normalize == "unicode")] if normalize else []),
        TOKENIZERS[tokenizer](language),
    ]

    def tokenize(text: str) -> list[str]:
        for step in steps:
            text = step(text)
        return text

    return tokenize


def _parts(text: str) -> list[str]:
    return [text[start : start + _LONGEST] for start in range(0, len(text), _LONGEST)]


def _mecab_tokenizer(_language: str) -> Tokenize:
    """Segmentation by MeCab with the IPA dictionary."""
    import fugashi
    import ipadic

    tagger = fugashi.GenericTagger(f"{ipadic.MECAB_ARGS} -Owakati")

    def tokenize(text: str) -> list[str]:
        text = text.replace("\0", " ")  # where MeCab would end
        return [token for part in _parts(text) for token in tagger.parse(part).split()]

    return tokenize


def _jieba_tokenizer(_language: str) -> Tokenize:
    """Segmentation by jieba's default: its HMM finds the words that its dictionary lacks."""
    with warnings.catch_warnings():  # its source has escape sequences that Python warns of
        warnings.simplefilter("ignore")
        import jieba

    segmenter = jieba.Tokenizer()
    # Its own initialize() logs, and keeps the dictionary under a fixed name in the folder for
    # temporary files, where it trusts what another user or version has left.
    segmenter.FREQ, segmenter.total = segmenter.gen_pfdict(segmenter.get_dict_file())
    segmenter.initialized = True

    def tokenize(text: str) -> list[str]:
        tokens = (token for part in _parts(text) for token in segmenter.cut(part))
        return [token for token in tokens if not token.isspace()]

    return tokenize


def _unicode_tokenizer(_language: str) -> Tokenize:
    """Words as Unicode's Annex 29 bounds them: with their marks, joiners and apostrophes."""
    import regex

    boundaries = regex.compile(r"\b", regex.WORD | regex.VERSION1)
    # Signs of direction, and joiners that join nothing: Annex 29 leaves them on what they stand by.
    around = regex.compile(r"^\p{Cf}+|\p{Cf}+$")

    def tokenize(text: str) -> list[str]:
        words = (word for part in text.split() for word in boundaries.split(part))
        return [token for word in words if (token := around.sub("", word))]

    return tokenize


def _whitespace_tokenizer(_language: str) -> Tokenize:
    return str.split


TOKENIZERS: dict[str, Callable[[str], Tokenize]] = {
    "moses": moses_tokenizer,
    "mecab": _mecab_tokenizer,
    "jieba": _jieba_tokenizer,
    "unicode": _unicode_tokenizer,
    "whitespace": _whitespace_tokenizer,
}
"""From a name to the function that builds the tokenizer of a language."""


def _lower_case(language: str) -> Callable[[str], str]:
    def lower(text: str) -> str:
        # Python's own makes two characters of it, i and a dot, of which Moses makes two tokens.
        return text.replace("İ", "i").lower()

    def with_two_i(text: str) -> str:
        return lower(text.replace("I", "ı"))

    return with_two_i if two_letters(language) in _WITH_DOTLESS_I else lower


def _to_nfc(text: str) -> str:
    return unicodedata.normalize("NFC", text)


def _languages_without(tokenizers: Mapping[str, Tokenizer], languages: list[str]) -> Iterator[str]:
    for language in languages:
        if language not in tokenizers:
            yield (
                f"captions in {language!r}, but params.yaml names no tokenizer for it: "
                f"add tokenizers.{language}, or leave the language out of the data set"
            )


def _captions_without_token(empty: pd.DataFrame) -> Iterator[str]:
    for caption_id, text in zip(empty["caption_id"], empty["text"], strict=True):
        yield f"{caption_id}: no token in {text!r}; mend or remove the caption at its source"
