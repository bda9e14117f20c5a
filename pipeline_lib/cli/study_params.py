"""What a new study holds: its raw data and its params.yaml."""

import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from PIL import Image
from ruamel.yaml import YAML

from pipeline_lib.contract.problems import ContractError, raise_problems
from pipeline_lib.corpora import coco, multi30k
from pipeline_lib.corpora.corpus import Corpus
from pipeline_lib.corpora.own_table import complete_table
from pipeline_lib.corpora.readers import READERS

SPLITS = ("train", "val", "test")
KINDS = ("caption", "translation", "machine")
"""The first of these that all splits have is what a language is tested on."""


@dataclass(frozen=True)
class Source:
    """What the user names: the study, the captions (file or folder), the photos, languages."""

    name: str
    captions: Path
    images: Path
    languages: tuple[str, ...]


@dataclass(frozen=True)
class Found:
    """What was found there.

    Attributes:
        dataset: Entry of ``datasets``.
        corpus: Its captions and images.
    """

    dataset: dict[str, object]
    corpus: Corpus

    @property
    def summary(self) -> str:
        """How many captions of which language and kind each split has."""
        counts = self.corpus.captions.pivot_table(
            index=["language", "annotation"], columns="split", aggfunc="size", fill_value=0
        )
        return f"{len(self.corpus.images):,} photos; captions:\n{counts.to_string()}"


def _table(source: Source, raw: Path) -> Found:
    """Write the user's table, completed, beside a link to the photos."""
    table = complete_table(source.captions)
    if source.languages:
        table = table[table["language"].isin(source.languages)]
    home = raw / source.name
    home.mkdir(parents=True)
    table.to_csv(home / "captions.tsv", sep="\t", index=False, quoting=3, escapechar=None)
    (home / "images").symlink_to(source.images)
    return _read(source, home, {"reader": "table", "raw": f"data/raw/{source.name}"})


def _corpus(reader: str, known: tuple[str, ...], **options: object) -> Callable:
    def door(source: Source, raw: Path) -> Found:
        raw.mkdir(parents=True)
        (raw / source.name).symlink_to(source.captions)
        (raw / "photos").symlink_to(source.images)
        entry = {"reader": reader, "raw": f"data/raw/{source.name}"}
        entry |= {"languages": [*(source.languages or known)], **options}
        return _read(source, raw / source.name, entry)

    return door


DOORS: dict[str, Callable[[Source, Path], Found]] = {
    "table": _table,
    "multi30k": _corpus("multi30k", multi30k.LANGUAGES, splits=[*SPLITS], validation_images="all"),
    "flickr8k": _corpus(
        "flickr8k", ("en", "de", "fr", "cs", "ja", "zh"), split_column="flickr8k_split"
    ),
    "coco": _corpus("coco", coco.LANGUAGES, japanese="stair", splits="karpathy"),
}
"""From the name of a layout to what reads it."""


def _read(source: Source, home: Path, entry: dict[str, object]) -> Found:
    options = {key: value for key, value in entry.items() if key not in ("reader", "raw")}
    try:
        corpus = READERS[entry["reader"]](home, source.name, **options)
    except ContractError as error:  # in the user's own words
        words = str(error)
        for place, own in (
            (home / "captions.tsv", source.captions),
            (home / "images", source.images),
            (home, source.captions),
        ):
            words = words.replace(str(place), str(own))
        raise ContractError(words) from error
    raise_problems(
        source.captions, [*_problems(corpus.captions), *_bad_photos(corpus.images, source.images)]
    )
    return Found(entry, corpus)


def _problems(captions: pd.DataFrame) -> Iterator[str]:
    there = set(captions["split"])
    for split in SPLITS:
        if split not in there:
            yield (
                f"split: expected photos of train, val and test, found none of {split} among "
                f"{', '.join(sorted(there))}. Name the splits so, or leave the column out: it is "
                "then drawn, a tenth of the photos each for val and test"
            )
    for language, own in captions.groupby("language"):
        if there.issuperset(SPLITS) and _tested_kind(own) is None:
            yield (
                f"language {language}: expected captions of one kind in train, val and test, found "
                f"{own.groupby(['split', 'annotation']).size().to_dict()}. Add some, or choose "
                "the other languages with --language"
            )


def _bad_photos(images: pd.DataFrame, folder: Path) -> Iterator[str]:
    for path in images["path"]:
        try:
            with Image.open(folder / path) as photo:
                photo.verify()
        except (OSError, SyntaxError, Image.DecompressionBombError) as error:
            yield f"{folder / path}: expected a photo, found: {error}. Mend it or drop its captions"


def _tested_kind(captions: pd.DataFrame) -> str | None:
    splits = captions.groupby("annotation")["split"].agg(set)
    return next((kind for kind in KINDS if splits.get(kind, set()).issuperset(SPLITS)), None)


def study_params(root: Path, source: Source, found: Found) -> str:
    """Return the text of a new study's params.yaml.

    Args:
        root: Of the checkout; what all studies evaluate is taken from its own params.yaml.
        source: What the user named.
        found: What was found there.
    """
    world = YAML(typ="safe").load((root / "params.yaml").read_text(encoding="utf-8"))
    name, captions = source.name, found.corpus.captions
    by_language = {language: own for language, own in captions.groupby("language")}
    kinds = {
        language: sorted(set(own["annotation"][own["split"] == "train"]), key=KINDS.index)
        for language, own in by_language.items()
    }
    moses = world["tokenizers"]["en"]
    params = {
        "root": "checkout",
        "worlds": {},
        "datasets": {name: found.dataset},
        "tokenizers": {each: world["tokenizers"].get(each, moses) for each in by_language},
        "extractors": {f"{name}_lite0": _extractor(name, found)},
        "selection_seed": 1,
        "pairs": {
            name: {
                "dataset": name, "captions": kinds, "per_image": 5, "images": "all", "plus": "none",
            }
        },
        **{section: {} for section in ("translators", "translations", "pseudopairs")},
        **{section: {} for section in ("word_vectors", "lexicons")},
        "pools": {language: _tested_kind(own) for language, own in by_language.items()},
        "evaluations": _evaluations(world["evaluations"], found),
        **{section: {} for section in ("rerankings", "translated_queries")},
        "departures": {},
        "recipes": {name: _recipe(name, [*by_language])},
    }  # fmt: skip
    yaml, text = YAML(), io.StringIO()
    yaml.default_flow_style = False
    yaml.dump(params, text)
    return f'# The study "{name}", made by polyview new.\n{text.getvalue()}'


def _extractor(name: str, found: Found) -> dict[str, object]:
    own = found.dataset["reader"] == "table"
    return {
        "dataset": name,
        "images": f"data/raw/{name}/images" if own else "data/raw/photos",
        "backbone": "efficientnet_lite0",
        "weights": "package",
        "transform": "squash",
        "resize": 224,
        "crop": 224,
        "precision": "bf16",
        "batch_size": 32,
    }


def _evaluations(world: dict[str, object], found: Found) -> dict[str, object]:
    """Return world's evaluations without what belongs to its data."""
    return {
        **world,
        "sts": {"source": found.dataset["raw"], "sets": {}},
        "alignment": {**world["alignment"], "lexicon": "none"},
        "comparisons": {},
    }


def _recipe(name: str, languages: list[str]) -> dict[str, object]:
    return {
        "paper": "kadar2019",
        "languages": languages,
        "seeds": [1],
        "dataset": name,
        "pairs": name,
        "features": f"{name}_lite0",
        "more_features": "none",
        "initial": "none",
        "word_vectors": "random",
        "lexicon": "none",
        "normalize_features": False,
        "min_count": 1,
        "image_dropout": 0.2,
        "sentence_dropout": 0.2,
        "caption_caption_probability": 0.5 if len(languages) > 1 else 0.0,
        "caption_caption_below_loss": "none",
        "validate_every_updates": "epoch",
        "max_epochs": 30,
    }
