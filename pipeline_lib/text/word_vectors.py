"""Word vectors: read from files, or trained by fastText on the captions of a pair set."""

import codecs
import math
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Set
from html import unescape
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import numpy as np
from tqdm import tqdm

from pipeline_lib.contract.problems import ContractError, raise_problems
from pipeline_lib.running.publishing import file_sha256
from pipeline_lib.settings.text import FastTextVectors, VectorFiles
from pipeline_lib.text.common_kernel import import_on_common_kernel

if TYPE_CHECKING:
    from gensim.models import FastText

_LONGEST_HEADER = 100
"""Bytes of the first line that are read: a file of another form may be one line."""

Words = tuple[list[str], np.ndarray]
"""Words in alphabetical order, and their vectors ``float32 [words, dim]``."""

_MOST_FAULTS = 20
"""Faulty lines of a file that are named; a file of another form has no others."""

_MOST_UNREADABLE = 0.1
"""Share of words with letters beyond ASCII that may be no UTF-8: published files have a few."""


def load_vectors(options: VectorFiles, words: Mapping[str, Set[str]]) -> dict[str, Words]:
    """Read one file of vectors per language; see :func:`read_vec`.

    Args:
        options: Where the files are.
        words: Words that need a vector, by language.

    Raises:
        ContractError: Lists what is wrong with all files, by line.
    """
    folder, found, problems = Path(options.source), {}, []
    for language, name in tqdm(sorted(options.files.items()), "word vectors", unit="file"):
        if language not in words:
            problems.append(f"{name}: pairs.{options.pairs} has no training caption in {language}")
            continue
        try:
            found[language] = read_vec(folder / name, words[language])
        except ContractError as error:
            problems.append(str(error))
    raise_problems(f"word vectors in {folder}", problems)
    return found


def file_attributes(options: VectorFiles) -> dict[str, object]:
    """Return what identifies vectors that were read from files: their names and hashes."""
    folder = Path(options.source)
    hashes = {
        language: {"name": name, "sha256": file_sha256(folder / name)}
        for language, name in options.files.items()
    }
    return {"method": options.method, "files": hashes}


def vec_dim(path: Path) -> int:
    """Return the number of dimensions of a file that :func:`read_vec` reads, of its header alone.

    Raises:
        ContractError: If it has no such header.
    """
    with open(path, "rb") as file:
        return _header(path.name, file)[1]


def read_vec(path: Path, words: Set[str]) -> Words:
    """Read the vectors of some words from a text file in word2vec's form (fastText's ``.vec``).

    The first line holds the number of words and of dimensions; each other line a word and its
    numbers, separated by spaces. The file is read line by line: memory holds only what is kept. Of
    a word that published files repeat, or have with accents composed and decomposed, the line that
    spells it as captions do counts, the first of several: they begin with the frequent words. A
    word that stands there with capitals alone, as German nouns do, has the first of those lines.
    What Moses writes with an entity (``l&apos;``) has the line that spells it plainly (``l'``).

    Args:
        path: The file, UTF-8.
        words: Words to keep, as far as the file has them.

    Raises:
        ContractError: Lists every problem with its line, at most 20 of them: header, numbers per
            line, numbers that are none, vectors without a direction, an encoding other than UTF-8.
    """
    if not path.is_file():
        raise ContractError(f"{path.name}: not found. Expected a file of word vectors there.")
    # Bytes, because words of published files hold all kinds of Unicode spaces and line ends.
    wanted = {unescape(word).encode(): word for word in words} | {w.encode(): w for w in words}
    with open(path, "rb") as file:
        count, dim = _header(path.name, file)
        found, problems, lines = _read_lines(file, wanted, dim)
    if lines != count and len(problems) < _MOST_FAULTS:
        hint = ": is it cut short?" if lines < count else ". Mend the number in the header"
        problems.append(f"expected {count} words by the header, found {lines}{hint}")
    if not found and not problems:
        problems.append(f"none of {len(wanted)} words is in it: expected the captions' language")
    raise_problems(path.name, problems)
    kept = sorted(found)
    return kept, np.stack([found[word] for word in kept])


def train_fasttext(
    sentences: Mapping[str, list[list[str]]],
    words: Mapping[str, Set[str]],
    options: FastTextVectors,
) -> dict[str, Words]:
    """Train vectors of each language by itself, and scale them to unit length.

    Published aligned vectors have unit length too, so both start a model at the same scale.
    One thread trains, so that equal input gives equal bytes.

    Args:
        sentences: Tokens to learn from, by language.
        words: Words that get a vector, by language. Those that the sentences lack, or have too
            rarely, get the mean of their n-grams' vectors; without an n-gram they get none.
        options: The numbers of the training.

    Raises:
        ContractError: Lists every problem: languages without frequent words, impossible n-grams.
    """
    raise_problems("fastText", _training_problems(sentences, words, options))
    return {
        language: _vectors(_skip_gram(sentences[language], options), words[language])
        for language in tqdm(sorted(words), "fastText", unit="language")
    }


def fasttext_attributes(options: FastTextVectors) -> dict[str, object]:
    """Return what identifies trained vectors: the library, its version, and the numbers."""
    settings = options.model_dump(exclude={"method"})
    return {"method": options.method, "library": f"gensim {version('gensim')}"} | settings


def _header(name: str, file: BinaryIO) -> tuple[int, int]:
    """Return how many words and dimensions the first line says."""
    line = file.readline(_LONGEST_HEADER).removeprefix(codecs.BOM_UTF8)
    fields = line.split()
    if len(fields) != 2 or not all(field.isdigit() and int(field) for field in fields):
        raise ContractError(
            f"{name}: line 1: expected the numbers of words and of dimensions, found "
            f"{line[:60]!r}. Use vectors in fastText's text form (.vec), unpacked."
        )
    return int(fields[0]), int(fields[1])


def _wanted_word(key: bytes, wanted: Mapping[bytes, str]) -> tuple[str | None, int]:
    """Return the word that a file spells so, and how.

    0 alike, 1 composed or without Moses' entities, 2 with capitals.

    Raises:
        UnicodeDecodeError: If it is no UTF-8.
    """
    if key in wanted:
        return wanted[key], int(wanted[key].encode() != key)
    if key.isascii():
        return wanted.get(key.lower()), 2
    composed = unicodedata.normalize("NFC", key.decode())
    if word := wanted.get(composed.encode()):
        return word, 1
    return wanted.get(composed.lower().encode()), 2


def _read_lines(
    lines: Iterable[bytes], wanted: Mapping[bytes, str], dim: int
) -> tuple[dict[str, np.ndarray], list[str], int]:
    """Return the vectors of wanted words, what is wrong, and how many lines were read."""
    found: dict[str, np.ndarray] = {}
    ranks: dict[str, int] = {}
    problems: list[str] = []
    unreadable: list[int] = []
    number, foreign, empty = 1, 0, 0
    for number, line in enumerate(lines, start=2):
        if not line.rstrip():
            empty += 1
            continue
        key, _, numbers = line.rstrip(b" \r\n").partition(b" ")
        foreign += not key.isascii()
        try:
            word, rank = _wanted_word(key, wanted)
        except UnicodeDecodeError:
            word, rank = None, 0
            unreadable.append(number)
        try:
            if word is not None or numbers.count(b" ") != dim - 1:
                vector = _parse(numbers, dim)
        except ValueError as error:
            problems.append(f"line {number}, {key.decode(errors='replace')!r}: {error}")
            if len(problems) == _MOST_FAULTS:
                problems.append(f"the lines after {number} were not read")
                break
        else:
            if word is not None and rank < ranks.get(word, math.inf):
                found[word], ranks[word] = vector, rank
    if len(unreadable) > _MOST_UNREADABLE * foreign:
        problems.append(
            f"expected UTF-8, found {len(unreadable):,} of {foreign:,} words with letters beyond "
            f"ASCII that are none (first: line {unreadable[0]}). Convert the file to UTF-8"
        )
    return found, problems, number - 1 - empty


def _parse(numbers: bytes, dim: int) -> np.ndarray:
    fields = numbers.split(b" ")
    if len(fields) != dim:
        raise ValueError(f"expected {dim} numbers after the word, found {len(fields)}")
    if b"_" in numbers:  # which Python reads as a thousands separator
        raise ValueError(
            f"expected numbers such as -0.01, found {numbers.decode('ascii', 'replace')!r}"
        )
    try:
        vector = np.array([float(field) for field in fields], np.float32)
    except ValueError as error:
        raise ValueError(f"{error}. Write numbers such as -0.01") from error
    if not np.isfinite(vector).all() or not vector.any():
        raise ValueError("expected a vector with a direction, found zero, NaN or infinity")
    return vector


def _skip_gram(sentences: list[list[str]], options: FastTextVectors) -> "FastText":
    return import_on_common_kernel("gensim.models").FastText(
        sentences,
        sg=1,
        vector_size=options.dim,
        window=options.window,
        min_count=options.min_count,
        min_n=options.min_n,
        max_n=options.max_n,
        bucket=options.buckets,
        negative=options.negatives,
        sample=options.subsampling,
        alpha=options.learning_rate,
        epochs=options.epochs,
        seed=options.seed,
        workers=1,
    )


def _vectors(model: "FastText", words: Set[str]) -> Words:
    ordered = sorted(words)
    matrix = np.stack([model.wv.get_vector(word) for word in ordered]).astype(np.float64)
    lengths = np.array([math.sqrt(math.fsum((row * row).tolist())) for row in matrix])
    rows = np.flatnonzero(lengths)
    unit = matrix[rows] / lengths[rows, None]
    return [ordered[row] for row in rows], unit.astype(np.float32)


def _training_problems(
    sentences: Mapping[str, list[list[str]]],
    words: Mapping[str, Set[str]],
    options: FastTextVectors,
) -> Iterator[str]:
    if options.min_n > options.max_n:
        yield f"expected min_n at most max_n, found {options.min_n} and {options.max_n}"
    if not words:
        yield f"no training caption in {options.source}: expected some to learn from"
    for language in sorted(words):
        counts = Counter(chain.from_iterable(sentences.get(language, [])))
        if max(counts.values(), default=0) < options.min_count:
            yield (
                f"{language}: no word of the training captions in {options.source} occurs "
                f"{options.min_count} times or more: lower min_count, or add captions"
            )
