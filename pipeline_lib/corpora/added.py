"""Captions that a user adds to the photos of a published data set: those of a further language.

``<raw>/added_captions.tsv`` has the form of a user's own table (``own_table``), but for ``split``:
a photo's split is the data set's. ``image`` is the path that the data set gives the photo,
``translation_of`` names a caption of the same photo there or here.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd

from pipeline_lib.contract.problems import raise_problems
from pipeline_lib.corpora.columns import COLUMNS
from pipeline_lib.corpora.corpus import Corpus, assemble
from pipeline_lib.corpora.files import note_rows
from pipeline_lib.corpora.own_captions import (
    note_bad_languages,
    of_languages,
    own_caption_rows,
)
from pipeline_lib.corpora.own_table import complete_table

ADDED = "added_captions.tsv"

_COLUMNS = tuple(column for column in COLUMNS if column != "split")


def added_languages(raw: Path) -> list[str]:
    """Return the languages of what a user has added, as they first come; none without the file."""
    return [*dict.fromkeys(_table(raw, [])["language"])]


def read_added(raw: Path, languages: Sequence[str], published: Sequence[str]) -> pd.DataFrame:
    """Read what a user has added in the languages that are asked for.

    Args:
        raw: Folder of the data set; it need not hold the file.
        languages: Those asked for.
        published: Those that the data set has without the file.

    Returns:
        Columns ``image``, ``language``, ``annotation``, ``position``, ``text``,
        ``translation_of`` as strings, and ``line``; what translates a language that is not asked
        for names what that one translated, or nothing.

    Raises:
        ContractError: Lists every line that cannot be used, and the languages that neither has.
    """
    problems: list[str] = []
    table = _table(raw, problems)
    note_bad_languages(table, raw / ADDED, problems)
    if not problems:  # else lines may be missing
        problems += _language_problems(raw / ADDED, languages, published, {*table["language"]})
    raise_problems(raw, problems)
    return of_languages(table, languages, published)


def with_added(corpus: Corpus, added: pd.DataFrame, raw: Path, dataset: str) -> Corpus:
    """Return a published corpus with the captions of :func:`read_added`.

    Raises:
        ContractError: Lists every caption that cannot be added, and why.
    """
    path, problems = raw / ADDED, list[str]()
    photos = added[["image"]].merge(
        _photos(corpus, dataset), "left", left_on="image", right_on="path"
    )
    known = photos["image_id"].notna()
    example = corpus.images["path"].iloc[0]
    expected = f"the path of a photo that the data set has captions of, such as {example}"
    note_rows(problems, path, added[~known], "image", expected)
    added, photos = added[known], photos[known]
    sources = corpus.captions.set_index("caption_id")["source_caption_id"]
    rows = own_caption_rows(added, photos, dataset, path, problems, sources)
    taken = added[rows["caption_id"].isin(sources.index)]
    note_rows(problems, path, taken, "position", _FREE)
    return assemble([corpus.captions, rows], corpus.images, dataset, raw, problems)


_FREE = "one that no caption of the data set has (say in a column position which it is)"


def _table(raw: Path, problems: list[str]) -> pd.DataFrame:
    if (raw / ADDED).exists():
        return complete_table(raw / ADDED, problems, _COLUMNS)
    return pd.DataFrame(columns=[*_COLUMNS, "line"])


def _photos(corpus: Corpus, dataset: str) -> pd.DataFrame:
    """Return the photos with what names each in the ids of its captions."""
    captions = corpus.captions.drop_duplicates("image_id")
    key = captions["caption_id"].str.removeprefix(f"{dataset}/").str.rsplit("/", n=3).str[0]
    return corpus.images.merge(captions[["image_id"]].assign(key=key), on="image_id")


def _language_problems(
    path: Path, languages: Sequence[str], published: Sequence[str], there: set[str]
) -> Iterator[str]:
    lacking = [each for each in languages if each not in {*published, *there}]
    if lacking:
        yield (
            f"languages: expected some of {', '.join(published)}, or of captions that you add in "
            f"{path}; found {', '.join(lacking)}"
        )
    elif languages and not {*languages} & {*published}:
        yield (
            f"languages: expected one or more of {', '.join(published)}, which name the photos, "
            f"beside {', '.join(languages)}"
        )
