"""Bilingual lexicons from the concepts that the words of the corpus carry."""

import random
from collections import defaultdict
from collections.abc import Iterable

from pipeline_lib.corpora.world.wording import Word

Entry = tuple[str, str]
"""A source word and one of its translations."""
_TEST_SHARE = 0.3


def lexicon(source: Iterable[Word], target: Iterable[Word]) -> list[Entry]:
    """Pair the words of two languages that carry the same concept in the same number.

    A word whose form does not show the number goes with both. All forms of an inflected word
    that occur are translations, in lower case.
    """
    translations: dict[str, set[Word]] = defaultdict(set)
    for word in target:
        translations[word.concept].add(word)
    entries = {
        (word.text.lower(), other.text.lower())
        for word in source
        for other in translations[word.concept]
        if word.number == other.number or None in (word.number, other.number)
    }
    return sorted(entries)


def folds(entries: list[Entry], rng: random.Random) -> dict[str, list[Entry]]:
    """Split a lexicon into ``train`` and ``test`` so that they share no source word."""
    sources = sorted({source for source, _ in entries})
    held_out = set(rng.sample(sources, round(_TEST_SHARE * len(sources))))
    return {
        "train": [entry for entry in entries if entry[0] not in held_out],
        "test": [entry for entry in entries if entry[0] in held_out],
    }
