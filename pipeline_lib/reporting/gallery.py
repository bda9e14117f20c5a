"""Queries with what a model found for them, right and wrong, as small pictures in the page.

No query is chosen by hand: the ones shown are spread evenly over those found, in order of id, and
over those missed, in order of rank.
"""

import base64
import io
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from xml.etree.ElementTree import Element

import numpy as np
import pandas as pd
from PIL import Image

from pipeline_lib.images.decoding import decode
from pipeline_lib.reporting.markup import block, element, span

_SIDE = 160
_QUALITY = 72
_PICTURES = 40
_PICTURES_PER_LANGUAGE = 6
"""With one found and one missed query of each direction."""


@dataclass(frozen=True)
class Shown:
    """What one model made of one language.

    Attributes:
        recipe: Name of the model's recipe.
        language: Its code.
        queries: Rows of contract.queries.QUERIES, of one seed.
        texts: Captions of the pool by id.
        captions_of: Ids of each image's captions in the pool.
        files: Path of each image by its id.
    """

    recipe: str
    language: str
    queries: pd.DataFrame
    texts: Mapping[str, str]
    captions_of: Mapping[str, list[str]]
    files: Mapping[str, Path]


def language_gallery(shown: Shown, each: int) -> Element:
    """Show so many found and missed queries of each direction, with what was found."""
    boxes = []
    for direction, box in _BOXES.items():
        asked = shown.queries[shown.queries["direction"] == direction]
        for _, query in asked.iloc[spread(asked["rank"].to_numpy(), each)].iterrows():
            boxes.append(block("query", _heading(query), *box(shown, query)))
    return block("gallery", *boxes)


def queries_each(languages: int) -> int:
    """Return how many queries of a kind to show, so that the page has about forty pictures."""
    return max(1, _PICTURES // (_PICTURES_PER_LANGUAGE * languages))


def spread(ranks: np.ndarray, each: int) -> list[int]:
    """Return rows of ``each`` queries that were found and of as many that were missed.

    They stand in the middle of equal parts: of the found ones in their order, of the missed ones
    in order of rank.
    """
    found, missed = np.flatnonzero(ranks == 1), np.flatnonzero(ranks > 1)
    missed = missed[np.argsort(ranks[missed], kind="stable")]
    parts = [part for rows in (found, missed) for part in np.array_split(rows, each)]
    return [int(part[len(part) // 2]) for part in parts if len(part)]


def thumbnail(path: Path) -> str:
    """Return an image, at most 160 pixels wide and high, as the address of its own content."""
    image = Image.fromarray(decode(path))
    image.thumbnail((_SIDE, _SIDE))
    content = io.BytesIO()
    image.save(content, "JPEG", quality=_QUALITY, optimize=True)
    return f"data:image/jpeg;base64,{base64.b64encode(content.getvalue()).decode()}"


def _caption_query(shown: Shown, query: pd.Series) -> Iterator[Element]:
    yield element("blockquote", {"lang": shown.language}, [shown.texts[query["query_id"]]])
    shots = [_shot(shown, image, words, right) for image, words, right in _answers(query)]
    yield block("shots", *shots)


def _image_query(shown: Shown, query: pd.Series) -> Iterator[Element]:
    answers = [
        element(
            "li",
            {"class": "right" if right else "wrong"},
            [
                span("place", words),
                element("span", {"lang": shown.language}, [shown.texts[caption]]),
            ],
        )
        for caption, words, right in _answers(query)
    ]
    yield block(
        "answer",
        _shot(shown, query["query_id"], "the query", False),
        element("ul", {}, answers),
    )


_BOXES: dict[str, Callable[[Shown, pd.Series], Iterator[Element]]] = {
    "text_to_image": _caption_query,
    "image_to_text": _image_query,
}
_NAMES = {"text_to_image": "Caption → image", "image_to_text": "Image → caption"}


def _answers(query: pd.Series) -> Iterator[tuple[str, str, bool]]:
    """Yield the id of each candidate that is shown, what it is, and whether it is right."""
    rank = query["rank"]
    right = query["right_id"], f"rank {rank:,}, right", True
    if pd.isna(query["wrong_id"]):
        yield right
        return
    wrong = query["wrong_id"], "best wrong one" if rank == 1 else "rank 1, wrong", False
    yield from [right, wrong] if rank == 1 else [wrong, right]


def _heading(query: pd.Series) -> Element:
    found = query["rank"] == 1
    words = "found" if found else f"missed, rank {query['rank']:,}"
    verdict = span("verdict right" if found else "verdict wrong", words)
    return element("p", {"class": "note"}, [f"{_NAMES[query['direction']]} · ", verdict])


def _shot(shown: Shown, image_id: str, words: str, right: bool) -> Element:
    described = shown.texts[shown.captions_of[image_id][0]]
    attributes = {"src": thumbnail(shown.files[image_id]), "alt": described}
    picture = element("img", {**attributes, "lang": shown.language, "loading": "lazy"})
    caption = element("figcaption", {}, [words])
    return element("figure", {"class": "shot right" if right else "shot"}, [picture, caption])
