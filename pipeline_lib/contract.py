"""The data contract: the form of every artefact that passes from one stage to another.

Tables are parquet, vectors are HDF5. Each ``write_*`` checks before it publishes and each
``read_*`` checks what it finds, so a broken artefact stops at the stage that made it. A check
collects every problem and raises one :class:`ContractError`.

Identity travels with the data: every row carries its ids, and joins are by id, never by position.
An ``image_id`` names the photo itself, not its place in one data set (``flickr:1000268201``,
``coco:391895``, ``world:000017``), so that two data sets that share photos can be told apart from
two that do not.
"""

import json
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from pipeline_lib.publishing import publish

ANNOTATIONS = ("caption", "translation", "machine")
"""Kinds of text: written for the image, translated from a caption by people, or by a machine."""

_TEXT = pa.string()
_CAPTION_FIELDS = [
    pa.field("caption_id", _TEXT, nullable=False),
    pa.field("image_id", _TEXT, nullable=False),
    pa.field("dataset", _TEXT, nullable=False),
    pa.field("split", _TEXT, nullable=False),
    pa.field("language", _TEXT, nullable=False),
    pa.field("annotation", _TEXT, nullable=False),
    pa.field("position", pa.int16(), nullable=False),
    pa.field("text", _TEXT, nullable=False),
    pa.field("tokens", pa.list_(_TEXT), nullable=False),
    pa.field("source_caption_id", _TEXT, nullable=True),
]
CAPTIONS = pa.schema(_CAPTION_FIELDS)
"""One sentence about one image. ``source_caption_id`` names the caption that it translates."""

IMAGES = pa.schema(
    [
        pa.field("image_id", _TEXT, nullable=False),
        pa.field("dataset", _TEXT, nullable=False),
        pa.field("split", _TEXT, nullable=False),
        pa.field("path", _TEXT, nullable=False),
    ]
)
"""One image. ``path`` is relative to the folder of images that the extractor names."""

PAIRS = pa.schema([*_CAPTION_FIELDS, pa.field("set", _TEXT, nullable=False)])
"""Captions that a recipe trains and validates on; ``set`` names the pair set that added the row."""

FEATURES_VERSION = 1


class ContractError(ValueError):
    """An artefact does not have the form that the contract promises."""


@dataclass(frozen=True)
class Features:
    """Image features, un-normalised.

    Attributes:
        image_ids: Ids of the images ``[images]``.
        vectors: One row per image, ``float32 [images, dim]``.
        attributes: What made them: backbone, layer, crops, transform, weights and their sha256.
    """

    image_ids: np.ndarray
    vectors: np.ndarray
    attributes: dict[str, object]


@dataclass(frozen=True)
class Embeddings:
    """Vectors of one trained model (one seed) for the images and captions of a data set."""

    image_ids: np.ndarray
    images: np.ndarray
    caption_ids: np.ndarray
    captions: np.ndarray


def write_captions(captions: pd.DataFrame, path: Path) -> None:
    """Check a captions table (schema :data:`CAPTIONS`) and publish it, sorted by ``caption_id``."""
    _write_table(captions, CAPTIONS, "caption_id", check_captions, path)


def read_captions(path: Path) -> pd.DataFrame:
    """Read and check a captions table; ``tokens`` holds one list of strings per row."""
    return _read_table(path, CAPTIONS, check_captions)


def write_images(images: pd.DataFrame, path: Path) -> None:
    """Check an images table (schema :data:`IMAGES`) and publish it, sorted by ``image_id``."""
    _write_table(images, IMAGES, "image_id", check_images, path)


def read_images(path: Path) -> pd.DataFrame:
    """Read and check an images table."""
    return _read_table(path, IMAGES, check_images)


def write_pairs(pairs: pd.DataFrame, path: Path) -> None:
    """Check a pairs table (schema :data:`PAIRS`) and publish it, sorted by set and caption."""
    _write_table(pairs, PAIRS, ["set", "caption_id"], check_pairs, path)


def read_pairs(path: Path) -> pd.DataFrame:
    """Read and check a pairs table."""
    return _read_table(path, PAIRS, check_pairs)


def empty_pairs() -> pd.DataFrame:
    """Return a pairs table without rows: what ``plus: none`` adds."""
    return PAIRS.empty_table().to_pandas()


def check_captions(captions: pd.DataFrame) -> Iterator[str]:
    """Yield every way in which a captions table breaks the contract."""
    yield from _duplicates(captions, ["caption_id"])
    yield from _caption_rows(captions)


def check_pairs(pairs: pd.DataFrame) -> Iterator[str]:
    """Yield every way in which a pairs table breaks the contract."""
    yield from _duplicates(pairs, ["set", "caption_id"])
    yield from _caption_rows(pairs)


def check_images(images: pd.DataFrame) -> Iterator[str]:
    """Yield every way in which an images table breaks the contract."""
    yield from _duplicates(images, ["image_id"])
    yield from _empty_text(images, ["image_id", "dataset", "split", "path"])
    absolute = images["path"].str.startswith("/")
    yield from _rows(images[absolute], "image_id", "have an absolute path; expected a relative one")


def check_captions_have_images(captions: pd.DataFrame, images: pd.DataFrame) -> None:
    """Raise :class:`ContractError` unless each caption's image is there with the same split."""
    split = captions["image_id"].map(images.set_index("image_id")["split"])
    problems = [
        *_rows(captions[split.isna()], "caption_id", "name an image that the images table lacks"),
        *_rows(
            captions[split.notna() & (split != captions["split"])],
            "caption_id",
            "have another split than their image",
        ),
    ]
    raise_problems("captions and images", problems)


def write_features(features: Features, path: Path) -> None:
    """Check features and publish them as contiguous, uncompressed HDF5."""
    raise_problems(path, check_features(features))
    with publish(path) as temporary, h5py.File(temporary, "w") as file:
        file.create_dataset("features", data=features.vectors.astype(np.float32, copy=False))
        file.create_dataset("image_id", data=_encode(features.image_ids), dtype=h5py.string_dtype())
        file.attrs["version"] = FEATURES_VERSION
        for key, value in sorted(features.attributes.items()):
            file.attrs[key] = json.dumps(value, sort_keys=True)


def read_features(path: Path) -> Features:
    """Read and check a features file, whole, into memory."""
    with h5py.File(path, "r") as file:
        version = file.attrs.get("version")
        if version != FEATURES_VERSION:
            raise ContractError(
                f"{path}: expected features of version {FEATURES_VERSION}, found {version}. "
                "Extract them again: dvc repro --force on the stage that wrote the file."
            )
        features = Features(
            image_ids=file["image_id"].asstr()[:].astype(object),
            vectors=file["features"][:],
            attributes={k: json.loads(v) for k, v in file.attrs.items() if k != "version"},
        )
    raise_problems(path, check_features(features))
    return features


def empty_features() -> Features:
    """Return features of no image: what ``more_features: none`` adds."""
    return Features(np.empty(0, object), np.empty((0, 0), np.float32), {})


def check_features(features: Features) -> Iterator[str]:
    """Yield every way in which features break the contract."""
    ids, vectors = features.image_ids, features.vectors
    if vectors.ndim != 2 or len(ids) != len(vectors):
        yield f"expected one row per image id; found {len(ids)} ids, vectors of {vectors.shape}"
        return
    yield from _duplicates(pd.DataFrame({"image_id": ids}), ["image_id"])
    rows = pd.DataFrame({"image_id": ids})
    yield from _rows(rows[~np.isfinite(vectors).all(axis=1)], "image_id", "have NaN or infinity")
    yield from _rows(rows[~vectors.any(axis=1)], "image_id", "are all zero")


def write_embeddings(by_seed: dict[int, Embeddings], path: Path) -> None:
    """Publish the embeddings of one recipe, one group per seed."""
    with publish(path) as temporary, h5py.File(temporary, "w") as file:
        for seed, item in sorted(by_seed.items()):
            group = file.create_group(f"seed-{seed}")
            for kind, ids, vectors in (
                ("images", item.image_ids, item.images),
                ("captions", item.caption_ids, item.captions),
            ):
                raise_problems(f"{path} {kind}", _check_vectors(ids, vectors))
                group.create_dataset(f"{kind}/id", data=_encode(ids), dtype=h5py.string_dtype())
                group.create_dataset(f"{kind}/vectors", data=vectors.astype(np.float32, copy=False))


def read_embeddings(path: Path) -> dict[int, Embeddings]:
    """Read the embeddings of one recipe, by seed."""

    def read(group: h5py.Group) -> tuple[np.ndarray, np.ndarray]:
        ids, vectors = group["id"].asstr()[:].astype(object), group["vectors"][:]
        raise_problems(f"{path} {group.name}", _check_vectors(ids, vectors))
        return ids, vectors

    with h5py.File(path, "r") as file:
        return {
            int(name.removeprefix("seed-")): Embeddings(
                *read(group["images"]), *read(group["captions"])
            )
            for name, group in file.items()
        }


def raise_problems(where: object, problems: Iterable[str]) -> None:
    """Raise one :class:`ContractError` that lists all ``problems``; do nothing if there is none."""
    problems = list(problems)
    if problems:
        listed = "\n".join(f"  - {problem}" for problem in problems)
        raise ContractError(f"{where}: {len(problems)} problem(s)\n{listed}")


def _caption_rows(captions: pd.DataFrame) -> Iterator[str]:
    yield from _empty_text(captions, ["caption_id", "image_id", "dataset", "split", "language"])
    unknown = ~captions["annotation"].isin(ANNOTATIONS)
    yield from _rows(captions[unknown], "caption_id", f"have an annotation not in {ANNOTATIONS}")
    denormal = ~captions["text"].map(lambda text: unicodedata.is_normalized("NFC", text))
    yield from _rows(captions[denormal], "caption_id", "are not in Unicode normal form NFC")
    empty = captions["tokens"].map(len) == 0
    yield from _rows(captions[empty], "caption_id", "have no token")


def _check_vectors(ids: np.ndarray, vectors: np.ndarray) -> Iterator[str]:
    if vectors.ndim != 2 or len(ids) != len(vectors):
        yield f"expected one row per id; found {len(ids)} ids, vectors of shape {vectors.shape}"
    elif not np.isfinite(vectors).all():
        yield "vectors contain NaN or infinity"


def _write_table(
    frame: pd.DataFrame,
    schema: pa.Schema,
    order: str | list[str],
    check: Callable[[pd.DataFrame], Iterator[str]],
    path: Path,
) -> None:
    missing = [name for name in schema.names if name not in frame.columns]
    if missing:
        raise ContractError(f"{path}: columns missing: {', '.join(missing)}")
    frame = frame[schema.names].sort_values(order, kind="stable")
    raise_problems(path, check(frame))
    table = pa.Table.from_pandas(frame, schema=schema, preserve_index=False)
    with publish(path) as temporary:
        # Without pandas' own metadata the bytes depend on the content and pyarrow's version only.
        pq.write_table(table.replace_schema_metadata(None), temporary)


def _read_table(
    path: Path, schema: pa.Schema, check: Callable[[pd.DataFrame], Iterator[str]]
) -> pd.DataFrame:
    table = pq.read_table(path)
    if not table.schema.equals(schema):
        raise ContractError(
            f"{path}: expected columns {schema.names}, found {table.schema.names} "
            "(or other types). The file was written by another version: run dvc repro."
        )
    frame = table.to_pandas()
    if "tokens" in frame:
        frame["tokens"] = table["tokens"].to_pylist()
    raise_problems(path, check(frame))
    return frame


def _duplicates(frame: pd.DataFrame, key: list[str]) -> Iterator[str]:
    repeated = frame[frame.duplicated(key)]
    yield from _rows(repeated, key[-1], f"are repeated (expected unique {' + '.join(key)})")


def _empty_text(frame: pd.DataFrame, columns: list[str]) -> Iterator[str]:
    for column in columns:
        empty = frame[column].isna() | (frame[column] == "")
        yield from _rows(frame[empty], column, f"have no {column}")


def _rows(frame: pd.DataFrame, column: str, what: str) -> Iterator[str]:
    """Yield one sentence that counts the offending rows and names the first."""
    if len(frame):
        yield f"{len(frame)} rows {what} (first: {frame[column].iloc[0]!r})"


def _encode(ids: Iterable[str]) -> list[bytes]:
    return [item.encode() for item in ids]
