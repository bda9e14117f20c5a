"""Words as integers: one table per language, or one for all (Kádár et al. 2019, §3.1).

Ids 0 to 3 belong to the special entries in :data:`SPECIALS`, words follow. Specials are ids and
never looked up by their spelling: a word spelled ``<unk>`` in a caption is a word like any other.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import chain, repeat

import numpy as np

from pipeline_lib.contract.problems import ContractError, raise_problems
from pipeline_lib.text.pieces import cut, shared_pieces

SPECIALS = ("<pad>", "<unk>", "<start>", "<end>")
"""Entries with ids 0, 1, 2, 3, in every table whatever its markers and rule for unknown words."""

PAD, UNK, START, END = range(len(SPECIALS))

_MARKERS = {"both": (1, 1), "end": (0, 1), "none": (0, 0)}
"""How many markers stand before and after a sentence."""

_RULES = ("unk", "drop", "pieces")
"""What may become of an unknown word."""


@dataclass(frozen=True)
class WordTable:
    """Words that some languages share, frequent first; ``words[i]`` has id ``i + 4``.

    Pieces of words, if any, have the ids that follow.
    """

    languages: tuple[str, ...]
    words: tuple[str, ...]
    pieces: tuple[str, ...] = ()

    @property
    def entries(self) -> tuple[str, ...]:
        """Words and pieces in the order of their ids."""
        return self.words + self.pieces


@dataclass(frozen=True)
class Vocabulary:
    """From tokens to ids, with a recipe's markers and its rule for unknown words.

    Attributes:
        tables: One table of all languages (pooled), or one of each.
        markers: What stands around a sentence: ``both`` start and end, ``end``, or ``none``.
        oov: An unknown word becomes ``<unk>`` (``unk``), disappears (``drop``), or is read as
            pieces of other words (``pieces``, see text.pieces).
        max_tokens: A sentence keeps its first so many words, before unknown ones are dropped and
            markers added.
    """

    tables: tuple[WordTable, ...]
    markers: str
    oov: str
    max_tokens: int

    @classmethod
    def build(
        cls,
        tokens_by_language: Mapping[str, Iterable[Sequence[str]]],
        *,
        pooled: bool,
        min_count: int,
        markers: str,
        oov: str,
        max_tokens: int,
    ) -> "Vocabulary":
        """Count the words of training captions and keep those that are frequent enough.

        Args:
            tokens_by_language: Tokens of every training caption, and of no other caption.
            pooled: One table for all languages, in which their counts add up.
            min_count: Words with fewer occurrences are unknown.
            markers: See :class:`Vocabulary`.
            oov: See :class:`Vocabulary`.
            max_tokens: See :class:`Vocabulary`.

        Raises:
            ContractError: Lists the tables that would be empty.
        """
        counts = {
            (language,): Counter(chain.from_iterable(sentences))
            for language, sentences in sorted(tokens_by_language.items())
        }
        if pooled:
            counts = {tuple(sorted(tokens_by_language)): sum(counts.values(), Counter())}
        tables = tuple(
            WordTable(languages, *_entries(count, min_count, oov))
            for languages, count in counts.items()
        )
        raise_problems("vocabulary", _empty_tables(tables, min_count))
        return cls(tables, markers, oov, max_tokens)

    @property
    def languages(self) -> tuple[str, ...]:
        """The languages that it can encode, in alphabetical order."""
        return tuple(sorted(self._ids))

    def table(self, language: str) -> WordTable:
        """Return the table that a language has, of its own or with others.

        Raises:
            ContractError: If it has none.
        """
        self._numbered(language)
        return next(table for table in self.tables if language in table.languages)

    def size(self, language: str) -> int:
        """Return the number of ids of ``language``, specials included."""
        return len(SPECIALS) + len(self._numbered(language))

    def word_ids(self, words: Iterable[str], language: str) -> np.ndarray:
        """Return the id of each word of ``language`` ``int64 [words]``, UNK where it has none."""
        table = self._numbered(language)
        return np.array([table.get(word, UNK) for word in words], np.int64)

    def encode(self, tokens: Sequence[str], language: str) -> list[int]:
        """Return the ids of one sentence, markers included; see :meth:`encode_all`."""
        ids, _ = self.encode_all([tokens], language)
        return ids[0].tolist()

    def encode_all(
        self, sentences: Sequence[Sequence[str]], language: str
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the ids of many sentences of one language, and their lengths.

        A sentence without a word left (none known, under ``drop``) becomes one ``<unk>``, so that
        every sentence has a vector.

        Returns:
            Ids ``int64 [sentences, longest]``, zero-padded, and lengths ``int64 [sentences]``,
            both with markers.
        """
        ids, counts = self._word_ids(sentences, language)
        before, after = _MARKERS[self.markers]
        lengths = before + np.maximum(counts, 1) + after
        longest = lengths.max(initial=before + 1 + after)
        encoded = np.zeros((len(counts), longest), dtype=np.int64)
        rows = np.repeat(np.arange(len(counts)), counts)
        first_of_row = np.cumsum(counts) - counts
        encoded[rows, before + np.arange(len(ids)) - first_of_row[rows]] = ids
        encoded[counts == 0, before] = UNK
        encoded[:, :before] = START
        if after:
            encoded[np.arange(len(counts)), lengths - 1] = END
        return encoded, lengths

    def to_json(self) -> dict[str, object]:
        """Return a dictionary that :meth:`from_json` and the json module understand."""
        return {"specials": list(SPECIALS), **asdict(self)}

    @classmethod
    def from_json(cls, content: Mapping[str, object]) -> "Vocabulary":
        """Return the vocabulary that :meth:`to_json` described."""
        if tuple(content["specials"]) != SPECIALS:
            raise ContractError(
                f"vocabulary: expected the special entries {list(SPECIALS)}, found "
                f"{content['specials']}. Another version wrote it: train the model again."
            )
        tables = (
            WordTable(
                tuple(table["languages"]), tuple(table["words"]), tuple(table.get("pieces", ()))
            )
            for table in content["tables"]
        )
        rules = content["markers"], content["oov"], content["max_tokens"]
        raise_problems("vocabulary", _wrong_rules(*rules))
        return cls(tuple(tables), *rules)

    @cached_property
    def _ids(self) -> dict[str, dict[str, int]]:
        ids = {}
        for table in self.tables:
            numbered = {word: i for i, word in enumerate(table.entries, start=len(SPECIALS))}
            ids.update(dict.fromkeys(table.languages, numbered))
        return ids

    def _numbered(self, language: str) -> dict[str, int]:
        if language not in self._ids:
            raise ContractError(
                f"vocabulary: expected one of the languages {', '.join(self.languages)}; "
                f"found {language!r}. Train with captions of the language, or leave it out."
            )
        return self._ids[language]

    def _word_ids(
        self, sentences: Sequence[Sequence[str]], language: str
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the ids of all words in one row, and the number of each sentence's words."""
        kept = [tokens[: self.max_tokens] for tokens in sentences]
        table = self._numbered(language)
        if self.oov == "pieces":
            kept = [_in_pieces(tokens, table) for tokens in kept]
        counts = np.fromiter(map(len, kept), np.int64, len(kept))
        words = chain.from_iterable(kept)
        ids = np.fromiter(map(table.get, words, repeat(UNK)), np.int32, counts.sum())
        if self.oov == "drop":
            known = ids != UNK
            rows = np.repeat(np.arange(len(kept)), counts)
            ids, counts = ids[known], np.bincount(rows[known], minlength=len(kept))
        return ids, counts


def _wrong_rules(markers: object, oov: object, max_tokens: object) -> Iterator[str]:
    """Yield which rules of a file are none."""
    for key, found, legal in (("markers", markers, _MARKERS), ("oov", oov, _RULES)):
        if found not in legal:
            yield f"{key}: expected {', '.join(legal)}, found {found!r}"
    if type(max_tokens) is not int or max_tokens < 1:
        yield f"max_tokens: expected a whole number, 1 or more, found {max_tokens!r}"


def _in_pieces(tokens: Sequence[str], known: Mapping[str, int]) -> list[str]:
    return [part for word in tokens for part in ([word] if word in known else cut(word, known))]


def _entries(
    count: Counter[str], min_count: int, oov: str
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the words of a table, and its pieces: what is spelled as a piece is that piece."""
    pieces = shared_pieces(count) if oov == "pieces" else ()
    taken = {*pieces}
    return tuple(word for word in _frequent(count, min_count) if word not in taken), pieces


def _frequent(count: Counter[str], min_count: int) -> tuple[str, ...]:
    """Return the words that occur ``min_count`` times or more, frequent first, then by spelling."""
    kept = (word for word, occurrences in count.items() if occurrences >= min_count)
    return tuple(sorted(kept, key=lambda word: (-count[word], word)))


def _empty_tables(tables: Iterable[WordTable], min_count: int) -> Iterator[str]:
    for table in tables:
        if not table.words:
            yield (
                f"no word of the training captions in {', '.join(table.languages)} occurs "
                f"{min_count} times or more: lower min_count, or add captions"
            )
