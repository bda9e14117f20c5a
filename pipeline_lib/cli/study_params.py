"""The params.yaml of a new study: templates/params.yaml, with what follows from its captions."""

import io
from collections.abc import Mapping
from pathlib import Path

import pandas as pd
from jinja2 import Environment, PackageLoader, StrictUndefined
from ruamel.yaml import YAML

from pipeline_lib.cli.layouts import Found, Source, tested_kind
from pipeline_lib.contract.problems import ContractError, warn
from pipeline_lib.contract.tables import ANNOTATIONS
from pipeline_lib.corpora.selection import select
from pipeline_lib.settings.text import Tokenizer
from pipeline_lib.text.languages import WITHOUT_SPACES, two_letters
from pipeline_lib.text.latent_semantics import largest_dim
from pipeline_lib.text.moses import has_rules
from pipeline_lib.text.tokenizers import tokenize_captions

_LEAST_UPDATES, _LEAST_EPOCHS, _BATCH, _LARGEST_WORD_DIM = 100, 40, 128, 512

_SELECTION_SEED = 1

_AS_PUBLISHED = {"tokenizer": "moses", "lowercase": True, "normalize": True}

_WITH_SPACES = {"lowercase": True, "normalize": "unicode"}

_INDIC = {"as", "bn", "gu", "hi", "kn", "ml", "mni", "mr", "or", "pa", "ta", "te"}
"""Languages whose words Moses breaks: at a joiner within, in Assamese at an apostrophe."""

_LONG = 12
"""Characters, from which on a caption is not one word."""

_MIN_COUNT = 2
"""Training photos of a word that decides word vectors: words of fewer are chance."""

_FEW_PHOTOS = 2000
"""Training photos below which our own recipe learns less by heart: see docs/polyview.md."""


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
    word_dim = _word_dim(source, captions, kinds, tokenizers)
    values = {
        "name": name,
        "given": source.given,
        "features": f"{name}_given" if source.given else f"{name}_lite0",
        "dataset": found.dataset,
        "tokenizers": tokenizers,
        "selection_seed": _SELECTION_SEED,
        "kinds": kinds,
        "word_dim": word_dim,
        "min_count": _MIN_COUNT,
        "pools": {language: tested_kind(own) for language, own in by_language.items()},
        "evaluations": _evaluations(world["evaluations"], found),
        "languages": [*by_language],
        "batch_size": min(_BATCH, photos),
        "max_epochs": max(_LEAST_EPOCHS, -(-_LEAST_UPDATES * _BATCH // photos)),
        "few_photos": _FEW_PHOTOS if photos < _FEW_PHOTOS else None,
    }
    environment = Environment(
        loader=PackageLoader("pipeline_lib.cli"),
        undefined=StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    environment.policies["json.dumps_kwargs"] = {"sort_keys": False}
    return _as_dvc_writes(environment.get_template("params.yaml").render(values))


def _as_dvc_writes(text: str) -> str:
    """Return YAML in the form that ``dvc exp run -S`` gives it, which then changes values alone."""
    yaml, written = YAML(), io.StringIO()
    params = yaml.load(text)
    _lists_in_lines(params)
    yaml.dump(params, written)
    return written.getvalue()


def _lists_in_lines(node: object) -> bool:
    """Have each item of a list written on a line of its own; return whether there is a list."""
    below = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    found = any([_lists_in_lines(each) for each in below]) or isinstance(node, list)
    if found:
        node.fa.set_block_style()
    return found


def _warn_of_clauses(language: str, texts: pd.Series, tokenizer: Mapping[str, object]) -> None:
    """Warn of a language that is to be read by spaces, and has few: its code may be wrong."""
    if tokenizer["tokenizer"] not in ("moses", "unicode"):
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
    """Return the tokenizer of a language: the root's, or one by what is known of the language.

    The root's is passed over where it is Moses' as the field's public files have it.
    """
    code = two_letters(language)
    if code in known and known[code] != _AS_PUBLISHED:
        return dict(known[code])
    if code in WITHOUT_SPACES:
        warn(
            f"{language} is written without spaces between words, and there is no tokenizer of it: "
            "what stands between two spaces, a clause or a sentence, is read as one word, and few "
            "captions share one. Put spaces between the words of the captions with a segmenter of "
            "the language, and later of the queries, or take the other languages alone with "
            "--language"
        )
        return {"tokenizer": "whitespace", "lowercase": True, "normalize": False}
    by_moses = has_rules(code) and code not in _INDIC
    return {"tokenizer": "moses" if by_moses else "unicode", **_WITH_SPACES}


def _evaluations(world: dict[str, object], found: Found) -> dict[str, object]:
    """Return world's evaluations without what belongs to its data."""
    return {
        **world,
        "sts": {"source": found.dataset["raw"], "sets": {}},
        "word_translation": {**world["word_translation"], "lexicon": "none"},
    }


def _word_dim(
    source: Source,
    captions: pd.DataFrame,
    kinds: dict[str, list[str]],
    tokenizers: dict[str, dict[str, object]],
) -> int:
    """Return the size of word vectors that the training captions suffice for."""
    learnt = select(
        captions, kinds=kinds, per_image="all", images="all",
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
