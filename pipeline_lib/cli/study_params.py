"""What a new study holds: its raw data and its params.yaml."""

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from ruamel.yaml import YAML
from tqdm import tqdm

from pipeline_lib.contract.problems import ContractError, raise_problems, warn
from pipeline_lib.contract.tables import ANNOTATIONS
from pipeline_lib.corpora import coco, flickr8k, multi30k
from pipeline_lib.corpora.columns import SPLITS
from pipeline_lib.corpora.corpus import Corpus, language_problems, split_hint
from pipeline_lib.corpora.own_table import DEFAULTS, complete_table
from pipeline_lib.corpora.readers import READERS
from pipeline_lib.corpora.selection import select
from pipeline_lib.corpora.table import is_file, is_inside, table_corpus
from pipeline_lib.images.decoding import ImageError, decode
from pipeline_lib.settings.strict import LANGUAGE_CODE
from pipeline_lib.settings.text import Tokenizer
from pipeline_lib.text.languages import WITHOUT_SPACES, two_letters
from pipeline_lib.text.latent_semantics import largest_dim
from pipeline_lib.text.tokenizers import tokenize_captions

_LEAST_UPDATES, _LEAST_EPOCHS, _BATCH, _LARGEST_WORD_DIM = 100, 40, 128, 512

_SELECTION_SEED = 1

_LIKE_ENGLISH = {"tokenizer": "moses", "lowercase": True, "normalize": True}

_LONG = 12
"""Characters, from which on a caption is not one word."""

_MIN_COUNT = 2
"""Training photos of a word that decides word vectors: words of fewer are chance."""

_FEW_PHOTOS = 2000
"""Training photos below which our own recipe learns less by heart: see docs/polyview.md."""

_OF_FEW_PHOTOS = {
    "sentence_dropout": 0.3,
    "image_hidden_dim": 512,
    "image_dropout": 0.6,
    "learning_rate": 2e-3,
}


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


Door = Callable[[Source, Path], Found]
"""Reads what the user named, checks it, and writes or links it into the folder of raw data."""


def _table(source: Source, raw: Path) -> Found:
    """Write the user's table, completed, beside a link to the photos."""
    problems: list[str] = []
    table = complete_table(source.captions, problems)
    drawn = table["split"].equals(DEFAULTS["split"](table))
    if source.languages:
        problems += language_problems([*source.languages], table["language"].unique())
        table = _of_languages(table, source.languages)
    problems += _gaps(table, _DRAWN if drawn else _NAMED)
    problems += _bad_photos(table["image"].unique(), source.images)
    corpus = table_corpus(table, source.captions, source.images, source.name, problems)
    home = raw / source.name
    home.mkdir(parents=True)
    form = {"sep": "\t", "index": False, "quoting": csv.QUOTE_NONE}
    table.drop(columns="line").to_csv(home / "captions.tsv", **form)
    (home / "images").symlink_to(source.images)
    return Found({"reader": "table", "raw": f"data/raw/{source.name}"}, corpus)


def _of_languages(table: pd.DataFrame, languages: Sequence[str]) -> pd.DataFrame:
    """Return the rows of some languages, as translations of each other alone.

    Where a translation was made by way of a language that is left out, it names what that one
    translated.
    """
    left_out = set(table["language"]) - set(languages)
    source = table["translation_of"]
    caption = table["image"].str.cat(table[["language", "annotation", "position"]], sep="/")
    for _ in range(len(table).bit_length()):  # each doubles the steps: circles end, too
        passed = _language(source).isin(left_out)
        if not passed.any():
            break
        behind = dict(zip(caption, source, strict=True))
        source = source.mask(passed, (table["image"] + "/" + source).map(behind).fillna(""))
    table = table.assign(translation_of=source.mask(_language(source).isin(left_out), ""))
    return table[table["language"].isin(languages)].reset_index(drop=True)


def _language(caption: pd.Series) -> pd.Series:
    return caption.str.split("/", n=1).str[0]


def _corpus(reader: str, known: Iterable[str], **options: object) -> Door:
    def door(source: Source, raw: Path) -> Found:
        """Link a corpus in its publishers' layout, and its photos."""
        chosen = {"languages": [*(source.languages or known)], **options}
        corpus = READERS[reader](source.captions, source.name, **chosen)
        found = [
            *_gaps(corpus.captions, _OF_CORPUS),
            *_bad_photos(corpus.images["path"], source.images),
        ]
        raise_problems(source.captions, found)
        home = raw / source.name
        home.mkdir(parents=True)
        (home / "corpus").symlink_to(source.captions)
        (home / "images").symlink_to(source.images)
        return Found({"reader": reader, "raw": f"data/raw/{source.name}/corpus", **chosen}, corpus)

    return door


DOORS: dict[str, Door] = {
    "table": _table,
    "multi30k": _corpus("multi30k", multi30k.LANGUAGES, splits=[*SPLITS], validation_images="all"),
    "flickr8k": _corpus(
        "flickr8k",
        (*flickr8k.FILES, *flickr8k.MULTI30K_LANGUAGES),
        split_column="flickr8k_split",
    ),
    "coco": _corpus("coco", coco.LANGUAGES, japanese="stair", splits="karpathy"),
}
"""From the name of a layout to what reads it."""


_NAMED = (
    "Name the splits so, or leave the column split out: it is then drawn, a tenth of the photos "
    "each for val and test"
)
_DRAWN = (
    "Of few photos the draw, a tenth each for val and test, may take none: add photos, or name "
    "each photo's split in the column split"
)
_OF_CORPUS = "Complete the corpus, or choose other languages with --language"


def _gaps(captions: pd.DataFrame, remedy: str) -> Iterator[str]:
    """Yield the splits of too few photos, with a remedy, and the languages without a test."""
    photo = "image" if "image" in captions else "image_id"
    photos = captions.drop_duplicates(photo)["split"].value_counts()
    there = set(photos.index)
    for split in SPLITS:
        if there and split not in there:
            yield (
                f"split: expected photos of train, val and test, found none of {split} among "
                f"{', '.join(sorted(there))}{split_hint(there)} {remedy}"
            )
        elif there and photos[split] < 2:  # a caption is told from another's
            yield f"split: expected 2 photos or more of {split}, found {photos[split]}. {remedy}"
    codes = captions["language"].str.fullmatch(LANGUAGE_CODE)  # what is none has been named
    for language, own in captions[codes].groupby("language"):
        kind = _tested_kind(own)
        if there.issuperset(SPLITS) and kind is None:
            counts = own.groupby(["annotation", "split"]).size()
            found = ", ".join(f"{count} {' of '.join(key)}" for key, count in counts.items())
            yield (
                f"language {language}: expected captions of one kind in train, val and test, found "
                f"{found}. Add some, or choose the other languages with --language"
            )
        ranked = own[own["annotation"] == kind].groupby("split")[photo].nunique()
        for split in ("val", "test"):
            if ranked.get(split) == 1 < photos[split]:
                yield (
                    f"language {language}: expected {kind}s of 2 photos or more in {split}, found "
                    "one photo: alone it ranks first whatever was learnt. Add some, or choose the "
                    "other languages with --language"
                )


def _bad_photos(paths: Iterable[str], folder: Path) -> Iterator[str]:
    """Yield the photos that are there and cannot be decoded."""
    for path in tqdm(paths, "photos", leave=False, disable=None):
        try:
            if is_inside(path) and is_file(folder / path):
                decode(folder / path)
        except ImageError as error:
            yield f"{folder / path}: {error}. Mend the photo, or leave its captions out"


def _tested_kind(captions: pd.DataFrame) -> str | None:
    """Return the first kind of caption that all splits have."""
    splits = captions.groupby("annotation")["split"].agg(set)
    return next((kind for kind in ANNOTATIONS if splits.get(kind, set()).issuperset(SPLITS)), None)


def study_params(root: Path, source: Source, found: Found) -> str:
    """Return the text of a new study's params.yaml.

    Args:
        root: Of the checkout; what all studies evaluate is taken from its own params.yaml.
        source: What the user named.
        found: What was found there.

    Raises:
        ContractError: If no word stands in the captions of two training photos.
    """
    world = YAML(typ="safe").load((root / "params.yaml").read_text(encoding="utf-8"))
    name, captions = source.name, found.corpus.captions
    by_language = {language: own for language, own in captions.groupby("language")}
    kinds = {
        language: sorted(set(own["annotation"][own["split"] == "train"]), key=ANNOTATIONS.index)
        for language, own in by_language.items()
    }
    tokenizers = {each: _tokenizer(each, world["tokenizers"]) for each in by_language}
    for language, own in by_language.items():
        _warn_of_clauses(language, own["text"], tokenizers[language])
    photos = captions.loc[captions["split"] == "train", "image_id"].nunique()
    pairs = {
        "dataset": name, "captions": kinds, "per_image": "all",
        "images": "all", "exclude_images": "none", "validation": "same", "plus": "none",
    }  # fmt: skip
    word_dim = _word_dim(source, captions, pairs, tokenizers)
    params = {
        "root": "checkout",
        "worlds": {},
        "datasets": {name: found.dataset},
        "tokenizers": tokenizers,
        "extractors": {f"{name}_lite0": _extractor(name)},
        "selection_seed": _SELECTION_SEED,
        "pairs": {name: pairs},
        **{section: {} for section in ("translators", "translations", "pseudopairs")},
        "word_vectors": {
            f"{name}_latent": {
                "method": "latent_semantic",
                "source": f"data/pairs/{name}.parquet",
                "pairs": "none",
                "dim": word_dim,
                "min_count": _MIN_COUNT,
            }
        },
        "lexicons": {},
        "pools": {language: _tested_kind(own) for language, own in by_language.items()},
        "evaluations": _evaluations(world["evaluations"], found),
        **{section: {} for section in ("comparisons", "claims")},
        **{section: {} for section in ("rerankings", "translated_queries", "growth")},
        "departures": {},
        "recipes": {name: _recipe(name, [*by_language], photos, word_dim)},
    }  # fmt: skip
    yaml, text = YAML(), io.StringIO()
    yaml.default_flow_style = False
    yaml.dump(params, text)
    return f'# The study "{name}", made by polyview new.\n{text.getvalue()}'


def _warn_of_clauses(language: str, texts: pd.Series, tokenizer: Mapping[str, object]) -> None:
    """Warn of a language that is to be read by spaces, and has few: its code may be wrong."""
    if tokenizer["tokenizer"] != "moses":
        return
    long = texts[texts.str.len() >= _LONG]
    whole = long[~long.str.strip().str.contains(r"\s")]
    if len(whole) > len(long) / 2:
        warn(
            f"{language}: {len(whole)} of {len(long)} captions of {_LONG} characters or more have "
            f"no space (first: {whole.iloc[0]!r}), and each is read as one word. Is the code "
            "right? Japanese is ja, Chinese zh. Else put spaces between the words of the captions"
        )


def _tokenizer(language: str, known: dict[str, dict[str, object]]) -> dict[str, object]:
    """Return world's tokenizer of a language, or else one as of English where it can have it."""
    code = two_letters(language)
    if code in known or code not in WITHOUT_SPACES:
        return dict(known.get(code, _LIKE_ENGLISH))  # its own: YAML names what is shared
    warn(
        f"{language} is written without spaces between words, and there is no tokenizer of it: "
        "what stands between two spaces, a clause or a sentence, is read as one word, and few "
        "captions share one. Put spaces between the words of the captions with a segmenter of the "
        "language, and later of the queries, or take the other languages alone with --language"
    )
    return {"tokenizer": "whitespace", "lowercase": True, "normalize": False}


def _extractor(name: str) -> dict[str, object]:
    return {
        "dataset": name,
        "images": f"data/raw/{name}/images",
        "backbone": "efficientnet_lite0",
        "weights": "package",
        "transform": "squash_mirror",
        "resize": 288,
        "crop": 288,
        "precision": "bf16",
        "batch_size": 32,
        "layers": "stages",
    }


def _evaluations(world: dict[str, object], found: Found) -> dict[str, object]:
    """Return world's evaluations without what belongs to its data."""
    return {
        **world,
        "sts": {"source": found.dataset["raw"], "sets": {}},
        "word_translation": {**world["word_translation"], "lexicon": "none"},
    }


def _recipe(name: str, languages: list[str], photos: int, word_dim: int) -> dict[str, object]:
    """Return our own recipe, in as many updates as a small set of photos needs."""
    return {
        "paper": "polyview",
        "languages": languages,
        "seeds": [1],
        "dataset": name,
        "pairs": name,
        "features": f"{name}_lite0",
        "more_features": "none",
        "initial": "none",
        "word_vectors": f"{name}_latent",
        "lexicon": "none",
        "word_dim": word_dim,
        "text_photos": 0,
        "batch_size": min(_BATCH, photos),
        "max_epochs": max(_LEAST_EPOCHS, -(-_LEAST_UPDATES * _BATCH // photos)),
        **(_OF_FEW_PHOTOS if photos < _FEW_PHOTOS else {}),
    }


def _word_dim(
    source: Source,
    captions: pd.DataFrame,
    pairs: dict[str, object],
    tokenizers: dict[str, dict[str, object]],
) -> int:
    """Return the size of word vectors that the training captions of the pair set suffice for."""
    learnt = select(
        captions, kinds=pairs["captions"], per_image=pairs["per_image"], images=pairs["images"],
        excluded=(), validation={}, seed=_SELECTION_SEED,
    )  # fmt: skip
    settings = {each: Tokenizer.model_validate(own) for each, own in tokenizers.items()}
    largest = largest_dim(tokenize_captions(learnt, settings), _MIN_COUNT)
    if not largest:
        raise ContractError(
            f"{source.captions}: expected words that stand in the captions of {_MIN_COUNT} "
            "training photos or more, found none: word vectors are learnt from them. Add captions"
        )
    # Directions beyond half the number of photos are chance.
    return min(_LARGEST_WORD_DIM, learnt["image_id"].nunique() // 2, largest)
