"""Queries with what a model found for them, right and wrong, as small pictures in the page.

No query is chosen by hand: the ones shown are spread evenly over those found, in order of id, and
over those missed, in order of rank.
"""

import base64
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from pipeline_lib.contract.problems import warn
from pipeline_lib.contract.queries import DIRECTIONS, read_queries
from pipeline_lib.contract.tables import read_captions, read_images
from pipeline_lib.images.decoding import thumbnail
from pipeline_lib.reporting.results import Results
from pipeline_lib.reporting.verdicts import Verdict

_SIDE = 160
_QUALITY = 72
_PICTURES = 40
_PICTURES_PER_LANGUAGE = 6
"""With one found and one missed query of each direction."""


@dataclass(frozen=True)
class Answer:
    """An image or a caption that is shown: the photo's address and text, and what it is."""

    picture: str
    text: str
    words: str
    right: bool


@dataclass(frozen=True)
class Query:
    """A query of one direction, with its best right and its best wrong candidate."""

    direction: str
    rank: int
    asked: Answer
    answers: list[Answer]


@dataclass(frozen=True)
class Gallery:
    """What one model made of one language."""

    recipe: str
    verdict: Verdict
    queries: list[Query]


def galleries(results: Results) -> list[Gallery]:
    """Return what the best recipe of each verdict found, of those whose queries are in data/.

    Queries of photos that are no longer there are left out, with a warning; so are recipes whose
    features were given, without one: nothing says where their photos are.
    """
    shown = [(_best_known(results, verdict), verdict) for verdict in results.verdicts]
    known = [(recipe, verdict) for recipe, verdict in shown if recipe]
    each = queries_each(len(known))
    made = [_gallery(results, recipe, verdict, each) for recipe, verdict in known]
    return [gallery for gallery in made if gallery.queries]


def queries_each(languages: int) -> int:
    """Return how many queries of a kind to show, so that the page has about forty pictures."""
    return max(1, _PICTURES // (_PICTURES_PER_LANGUAGE * max(1, languages)))


def spread(ranks: np.ndarray, each: int) -> list[int]:
    """Return rows of ``each`` queries that were found and of as many that were missed.

    They stand in the middle of equal parts: of the found ones in their order, of the missed ones
    in order of rank.
    """
    found, missed = np.flatnonzero(ranks == 1), np.flatnonzero(ranks > 1)
    missed = missed[np.argsort(ranks[missed], kind="stable")]
    parts = [part for rows in (found, missed) for part in np.array_split(rows, each)]
    return [int(part[len(part) // 2]) for part in parts if len(part)]


def _picture(path: Path) -> str:
    """Return an image, at most 160 pixels wide and high, as the address of its own content."""
    content = base64.b64encode(thumbnail(path, _SIDE, _QUALITY)).decode()
    return f"data:image/jpeg;base64,{content}"


def _queries_path(recipe: str) -> Path:
    return Path(f"data/queries/{recipe}.parquet")


def _best_known(results: Results, verdict: Verdict) -> str | None:
    names = map(str, verdict.ranking["recipe"])
    networks = results.settings.networks
    shown = (name for name in names if results.recipes[name].features in networks)
    return next((name for name in shown if _queries_path(name).is_file()), None)


def _gallery(results: Results, name: str, verdict: Verdict, each: int) -> Gallery:
    recipe, language = results.recipes[name], verdict.language
    captions = read_captions(Path(f"data/captions/{recipe.dataset}.parquet"))
    captions = captions[captions["language"] == language]
    images = read_images(Path(f"data/images/{recipe.dataset}.parquet"))
    folder = Path(results.settings.extractors[recipe.features].images)
    texts = captions.set_index("caption_id")["text"].to_dict()
    first = captions.groupby("image_id")["text"].first().to_dict()
    files = images.set_index("image_id")["path"].map(lambda path: folder / path).to_dict()

    def answer(identity: str, words: str, right: bool) -> Answer:
        if identity in texts:
            return Answer("", texts[identity], words, right)
        return Answer(_picture(files[identity]), first[identity], words, right)

    queries = read_queries(_queries_path(name))
    queries = queries[(queries["language"] == language) & (queries["seed"] == recipe.seeds[0])]
    lost, absent = _lost(queries, files)
    if absent:
        warn(
            f"{folder}: {absent} photos of {recipe.dataset} are not there: the report leaves "
            f"{lost.sum()} queries of {name} in {language} out"
        )
    queries = queries[~lost]
    chosen = [
        query
        for direction in reversed(DIRECTIONS)
        for asked in [queries[queries["direction"] == direction]]
        for _, query in asked.iloc[spread(asked["rank"].to_numpy(), each)].iterrows()
    ]
    shown = [
        Query(
            query["direction"],
            query["rank"],
            answer(query["query_id"], "the query", False),
            [answer(*candidate) for candidate in _candidates(query)],
        )
        for query in chosen
    ]
    return Gallery(name, verdict, shown)


def _lost(queries: pd.DataFrame, files: Mapping[str, Path]) -> tuple[pd.Series, int]:
    """Return which queries name a photo that is not there, and how many such photos there are."""
    named = queries[["query_id", "right_id", "wrong_id"]]
    shown = files.keys() & {*named.stack()}
    absent = [identity for identity in shown if not os.path.isfile(files[identity])]
    return named.isin(absent).any(axis=1), len(absent)


def _candidates(query: pd.Series) -> Iterator[tuple[str, str, bool]]:
    """Yield the id of each candidate that is shown, what it is, and whether it is right."""
    rank = query["rank"]
    right = query["right_id"], f"rank {rank:,}, right", True
    if pd.isna(query["wrong_id"]):
        yield right
        return
    wrong = query["wrong_id"], "best wrong candidate" if rank == 1 else "wrong, at rank 1", False
    yield from [right, wrong] if rank == 1 else [wrong, right]
