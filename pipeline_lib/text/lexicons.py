"""Bilingual lexicons from MUSE's dictionaries, or files in their form, and their two protocols.

Mohammadshahi et al. 2019 learn from MUSE's full and test dictionaries and are tested on its
training dictionary (§4.1), all of which is in the full one. So their test is of words that were
learnt. Next to their folds (``paper``) stand clean ones, in which no test source word is learnt.
"""

import codecs
import io
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Set
from pathlib import Path

import pandas as pd

from pipeline_lib.contract.lexicons import LEXICON
from pipeline_lib.contract.problems import raise_problems
from pipeline_lib.settings.text import Lexicon

Translations = set[tuple[str, str]]
"""Pairs of a source word and one of its translations."""

_MOST_FAULTS = 20
"""Faulty lines of a file that are named; a file of another form has no others."""


def load_lexicon(lexicon: Lexicon, words: Mapping[str, Set[str]]) -> pd.DataFrame:
    """Read a lexicon's files, keep what captions say in both languages, and fold it.

    Args:
        lexicon: Where the files are, and which of them are for what.
        words: Words of the training captions by language; pairs with another word are left out.

    Returns:
        A table of contract.lexicons.LEXICON.

    Raises:
        ContractError: Lists every problem: languages without captions, files that are missing or
            malformed, folds of which nothing is left.
    """
    folder = Path(lexicon.source)
    problems = [
        f"no training caption of pairs.{lexicon.pairs} is in {language!r}: expected one of "
        f"{', '.join(sorted(words)) or 'none'}"
        for language in lexicon.languages
        if language not in words
    ]
    folds = {
        fold: _read_all([folder / name for name in names], problems)
        for fold, names in (("train", lexicon.train), ("test", lexicon.test))
    }
    raise_problems(f"lexicon in {folder}", problems)
    source, target = (words[language] for language in lexicon.languages)
    kept = {
        fold: {(a, b) for a, b in pairs if a in source and b in target}
        for fold, pairs in folds.items()
    }
    by_protocol = {"paper": kept, "clean": without_test_words(kept)}
    raise_problems(f"lexicon in {folder}", _empty_folds(by_protocol, folds))
    return _table(by_protocol, lexicon.languages)


def without_test_words(folds: Mapping[str, Translations]) -> dict[str, Translations]:
    """Return the folds with no pair in ``train`` whose source word ``test`` has."""
    tested = {source for source, _ in folds["test"]}
    train = {pair for pair in folds["train"] if pair[0] not in tested}
    return {"train": train, "test": folds["test"]}


def parse_dictionary(lines: Iterable[str]) -> tuple[Translations, list[str]]:
    """Read lines of two words each, as in MUSE's dictionaries.

    Words are brought to Unicode normal form NFC, as captions are.

    Returns:
        The pairs, and one sentence per line of another form; after 20 of those the rest is left.
    """
    pairs: Translations = set()
    problems: list[str] = []
    for number, line in enumerate(lines, start=1):
        words = unicodedata.normalize("NFC", line).split()
        if len(words) == 2:
            pairs.add((words[0], words[1]))
        else:
            problems.append(f"line {number}: expected two words, found {line.rstrip()!r}")
        if len(problems) == _MOST_FAULTS:
            problems.append(f"the lines after {number} were not read")
            break
    return pairs, problems


def _read_all(paths: Iterable[Path], problems: list[str]) -> Translations:
    pairs: Translations = set()
    for path in paths:
        if not path.is_file():
            problems.append(f"{path.name}: not found")
            continue
        content = path.read_bytes().removeprefix(codecs.BOM_UTF8)
        try:
            text = content.decode()
        except UnicodeDecodeError as error:
            line = content.count(b"\n", 0, error.start) + 1
            problems.append(
                f"{path.name}: expected UTF-8, found byte {content[error.start]:#04x} in line "
                f"{line}. Convert the file to UTF-8"
            )
            continue
        found, faults = parse_dictionary(io.StringIO(text, newline="\n"))
        pairs |= found
        problems += [f"{path.name}: {fault}" for fault in faults]
    return pairs


def _empty_folds(
    by_protocol: Mapping[str, Mapping[str, Translations]], files: Mapping[str, Translations]
) -> Iterator[str]:
    said = by_protocol["paper"]
    for protocol, folds in by_protocol.items():
        for fold, pairs in folds.items():
            if not pairs:
                yield (
                    f"{protocol}: none of {len(files[fold])} pairs is left to {fold} on. "
                    + (_ALL_TESTED if said[fold] else _NONE_SAID)
                )


_NONE_SAID = (
    "Expected pairs of words of the training captions: check languages, their order, case and "
    "tokenisation"
)
_ALL_TESTED = (
    "Each source word that captions have is one of the test's: add pairs of other words, or test "
    "fewer"
)


def _table(
    by_protocol: Mapping[str, Mapping[str, Translations]], languages: list[str]
) -> pd.DataFrame:
    rows = [
        (*languages, *pair, fold, protocol)
        for protocol, folds in by_protocol.items()
        for fold, pairs in folds.items()
        for pair in sorted(pairs)
    ]
    return pd.DataFrame(rows, columns=LEXICON.names)
