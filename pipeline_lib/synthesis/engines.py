"""What translates: a translator of this graph, a CTranslate2 model, or a file made elsewhere.

Each engine describes itself; the description travels with every caption that it made.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import sentencepiece

from pipeline_lib.compute.device import best_device
from pipeline_lib.contract.digests import reading
from pipeline_lib.contract.problems import ContractError, raise_problems
from pipeline_lib.corpora.files import clean, note_rows, read_table
from pipeline_lib.models.translator import Hypothesis, Translator
from pipeline_lib.running.publishing import file_sha256
from pipeline_lib.settings.synthesis import (
    CTranslate2Translation,
    FileTranslation,
    OwnTranslation,
    Translation,
)


@dataclass(frozen=True)
class Engine:
    """A way to translate.

    Attributes:
        description: The engine's name and settings, JSON-serialisable.
        translate: From sentences to the n-best hypotheses of each, best first, at least one.
        check: Raises if the sentences cannot be translated; to be called before work starts.
        images_seen: Images whose captions it learned from, by split; none where that is unknown.
    """

    description: dict[str, object]
    translate: Callable[[Sequence[str]], list[list[Hypothesis]]]
    check: Callable[[Sequence[str]], None]
    images_seen: Mapping[str, list[str]]


def build_engine(settings: Translation) -> Engine:
    """Return the engine that ``settings`` names.

    Raises:
        ContractError: Its model or file is not there, or not for these languages.
    """
    return ENGINES[settings.engine](settings)


def _trained(settings: OwnTranslation) -> Engine:
    folder = Path(settings.model)
    translator = Translator.load(folder).to_best_device()
    recipe = translator.recipe
    raise_problems(folder, _other_languages(translator, settings))
    search = {"beam": recipe.beam, "alpha": recipe.length_normalization}
    return Engine(
        description={
            "engine": "translator",
            "model": folder.name,
            "architecture": recipe.architecture,
            "weights_sha256": file_sha256(folder / "weights.safetensors"),
            **search,
        },
        translate=lambda sentences: translator.translate(sentences, n_best=1, **search),
        check=_anything,
        images_seen=_images_seen(folder / "images.json"),
    )


def _images_seen(path: Path) -> dict[str, list[str]]:
    with reading(path, "the images of each split in JSON"):
        return {**json.loads(path.read_text(encoding="utf-8"))}


def _other_languages(translator: Translator, settings: OwnTranslation) -> list[str]:
    recipe = translator.recipe
    made_for = recipe.source_language, recipe.target_language
    asked = settings.source_language, settings.target_language
    if made_for == asked:
        return []
    return [
        f"expected a translator from {asked[0]} to {asked[1]}, found one from {made_for[0]} to "
        f"{made_for[1]}. Name another model in the translation's settings"
    ]


def _ctranslate2(settings: CTranslate2Translation) -> Engine:
    """A folder with a converted model (``model.bin``), ``source.spm`` and ``target.spm``."""
    folder = Path(settings.model)
    parts = ("model.bin", "source.spm", "target.spm")
    missing = [name for name in parts if not (folder / name).is_file()]
    raise_problems(folder, [f"expected the file {name}, found none" for name in missing])
    try:
        import ctranslate2
    except ImportError as error:
        raise ContractError(
            "engine ctranslate2: expected the package ctranslate2, found none. Install it: "
            "uv sync --group ctranslate2"
        ) from error
    model = ctranslate2.Translator(str(folder), device=best_device().type)
    source, target = (
        sentencepiece.SentencePieceProcessor(model_file=str(folder / name)) for name in parts[1:]
    )

    end = _source_end(folder / "config.json")

    def translate(sentences: Sequence[str]) -> list[list[Hypothesis]]:
        pieces = [source.encode(sentence, out_type=str) + end for sentence in sentences]
        results = model.translate_batch(
            pieces,
            beam_size=settings.beam,
            length_penalty=settings.length_penalty,
            return_scores=True,
        )
        best = [(result.hypotheses[0], result.scores[0]) for result in results]
        return [[Hypothesis(target.decode(words), None, score)] for words, score in best]

    return Engine(
        description={
            "engine": "ctranslate2",
            "version": ctranslate2.__version__,
            "model": folder.name,
            "sha256": {
                path.name: file_sha256(path) for path in sorted(folder.iterdir()) if path.is_file()
            },
            "beam": settings.beam,
            "length_penalty": settings.length_penalty,
        },
        translate=translate,
        check=_anything,
        images_seen={},
    )


_END = "</s>"
"""Of a sentence, in the vocabularies of Opus-MT and its like."""


def _source_end(path: Path) -> list[str]:
    """Return what ends each source sentence, unless CTranslate2 adds it by the model's own file.

    Of its converters ct2-opus-mt-converter has it added, ct2-transformers-converter does not. A
    translator that misses it repeats words.
    """
    if not path.is_file():
        return [_END]
    with reading(path, "CTranslate2's options of a model in JSON"):
        options = {**json.loads(path.read_text(encoding="utf-8"))}
    return [] if options.get("add_source_eos") else [options.get("eos_token", _END)]


def _file(settings: FileTranslation) -> Engine:
    """A table of ready translations: tab separated, with a header ``source``, ``translation``."""
    path, problems = Path(settings.model), []
    table = read_table(path, ("source", "translation"), "\t", problems)
    # As captions are cleaned, which sources are compared with and translations become.
    table["source"] = clean(table["source"].tolist(), table["line"].tolist(), path, problems)
    table["translation"] = table["translation"].str.strip()
    given = table[table["translation"] != ""]  # a translator may find nothing
    cleaned = clean(given["translation"].tolist(), given["line"].tolist(), path, problems)
    table.loc[given.index, "translation"] = cleaned
    several = table.groupby("source")["translation"].transform("nunique") > 1
    note_rows(problems, path, table[several], "source", "one translation per source")
    raise_problems(path, problems)
    read = path if path.is_file() else path.with_name(f"{path.name}.gz")  # as read_table does
    translations = dict(zip(table["source"], table["translation"], strict=True))

    def check(sentences: Sequence[str]) -> None:
        missing = [sentence for sentence in sentences if sentence not in translations]
        shown = [f"expected a translation of {sentence!r}, found none" for sentence in missing[:20]]
        more = [f"and of {len(missing) - 20} more sentences"] if len(missing) > 20 else []
        raise_problems(path, [*shown, *more])

    return Engine(
        description={"engine": "file", "model": path.name, "sha256": file_sha256(read)},
        translate=lambda sentences: [
            [Hypothesis(translations[sentence], None, None)] for sentence in sentences
        ],
        check=check,
        images_seen={},
    )


def _anything(_sentences: Sequence[str]) -> None:
    """Accept all sentences."""


ENGINES: dict[str, Callable[[Translation], Engine]] = {
    "translator": _trained,
    "ctranslate2": _ctranslate2,
    "file": _file,
}
"""From the names in params.yaml to what builds the engine."""
