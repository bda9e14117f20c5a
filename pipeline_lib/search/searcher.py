"""Queries of words and photos against an index: exact scores of all photos, and the best."""

import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from PIL import Image

from pipeline_lib.contract.problems import ContractError
from pipeline_lib.images.encoding import Photo
from pipeline_lib.models.embedder import Embedder
from pipeline_lib.search.index import PhotoIndex
from pipeline_lib.search.languages import LanguageDetector
from pipeline_lib.search.names import printable


@dataclass(frozen=True)
class Term:
    """A part of a query.

    Attributes:
        text: What was asked, or the photo's name.
        vector: In the joint space ``float32 [dim]``.
        sign: 1 for what a photo shall show, -1 for what it shall not.
        language: Of words; empty for a photo.
        unknown: Words that the training captions did not have.
        guessed: The language was detected, though half of the words or more are unknown in it.
        unread: Tokens at its end that the model does not read: it reads so many, and no more.
    """

    text: str
    vector: np.ndarray
    sign: int = 1
    language: str = ""
    unknown: list[str] = field(default_factory=list)
    guessed: bool = False
    unread: int = 0


@dataclass(frozen=True)
class Hit:
    """A photo of the index and its score: the sum over the terms of sign times similarity."""

    number: int
    score: float


class QueryEmbedder:
    """Terms of words and of photos, for which no index is needed."""

    def __init__(self, embedder: Embedder) -> None:
        """Take the model that embeds them."""
        self.embedder, self.languages = embedder, LanguageDetector(embedder)

    def load(self) -> None:
        """Load now what the first query of each language would load."""
        for language in self.embedder.languages:
            self.words("a", language)
        self.languages.load()

    def load_network(self) -> None:
        """Load now what the first photo of a query would load: seconds."""
        white = io.BytesIO()
        Image.new("RGB", (64, 64), "white").save(white, "PNG")
        self.embedder.embed_each([white])

    def words(self, text: str, language: str | None = None, sign: int = 1) -> Term:
        """Return a term of words; their language is detected if none is named.

        Raises:
            LanguageError: If it is not named, and seems to be none of the model's.
            ContractError: If there is no word, or a byte that is no UTF-8, or the model does
                not have the language.
        """
        if not any(map(str.isalnum, text)):
            raise ContractError(f"query: expected words, found {text!r}")
        if text != printable(text):
            raise ContractError(f"query: expected UTF-8, found {text!r}. Set the terminal to UTF-8")
        read_as = language or self.languages.detect(text)
        tokens = self.embedder.tokens([text], read_as)
        vector = self.embedder.embed_tokens(tokens, read_as)[0]
        words = self.embedder.words(text, read_as)
        unknown = [word for word, known in words.items() if not known]
        guessed = language is None and 2 * len(unknown) >= len(words)
        unread = max(0, len(tokens[0]) - self.embedder.max_tokens)
        return Term(text, np.float32(vector), sign, read_as, unknown, guessed, unread)

    def photo(self, photo: Photo, name: str) -> Term:
        """Return a term of a photo that need not be in the index.

        Raises:
            ImageError: If it cannot be read.
        """
        (vector,) = self.embedder.embed_each([photo])
        if isinstance(vector, Exception):
            raise vector
        return Term(name, np.float32(vector), sign=1)


class Searcher(QueryEmbedder):
    """A model, the index of a folder, and the languages of queries."""

    def __init__(self, embedder: Embedder, index: PhotoIndex) -> None:
        """Take a model and the index that it made."""
        super().__init__(embedder)
        self.index = index

    def indexed(self, number: int, sign: int = 1) -> Term:
        """Return a term of a photo of the index.

        Raises:
            ContractError: If there is none of this number.
        """
        name = Path(self.index.path(number)).name
        return Term(name, self.index.vectors[number], sign)

    def best(self, terms: Sequence[Term], count: int) -> list[Hit]:
        """Return the best photos, best first; of equal ones that whose path comes first.

        Copies of one photo have one score: of equal rows a product of matrices may differ in its
        last bit, by their places.
        """
        vectors = np.stack([term.vector for term in terms])
        scores = self.embedder.scores(self.index.vectors, vectors)
        scores = scores @ np.array([term.sign for term in terms], np.float32)
        return top(scores[self.index.originals], count)


def top(scores: np.ndarray, count: int) -> list[Hit]:
    """Return the highest of scores ``[photos]``, in order."""
    count = min(count, len(scores))
    rows = np.arange(len(scores))
    if count < len(scores):
        least = np.partition(scores, -count)[-count]
        rows = np.flatnonzero(scores >= least)  # with all that equal the last one
    ranked = rows[np.lexsort((rows, -scores[rows]))[:count]]
    return [Hit(int(row), float(scores[row])) for row in ranked]
