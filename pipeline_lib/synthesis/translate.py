"""Captions of one language into another, beside the originals, in batches that survive a kill."""

import json
import sys
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import pandas as pd
from tqdm import tqdm

from pipeline_lib.contract.problems import raise_problems
from pipeline_lib.models.translator import Hypothesis
from pipeline_lib.publishing import publish
from pipeline_lib.settings.synthesis import Translation
from pipeline_lib.settings.text import Tokenizer
from pipeline_lib.synthesis.engines import Engine
from pipeline_lib.text.tokenizers import tokenize_captions

CHUNK = 1024
"""Sentences between two points from which a killed run continues."""


def captions_to_translate(captions: pd.DataFrame, settings: Translation) -> pd.DataFrame:
    """Return the captions of the language and kind that are to be translated.

    Raises:
        ContractError: There is none, or the target language has machine translations already,
            from which a recipe could not tell the new ones.
    """
    of_source = captions["language"] == settings.source_language
    chosen = captions[of_source & (captions["annotation"] == settings.annotation)]
    raise_problems(settings.dataset, _problems(captions, chosen, settings))
    return chosen


def distinct_sentences(captions: pd.DataFrame) -> list[str]:
    """Return the different texts of captions, short ones first."""
    return sorted(captions["text"].unique(), key=lambda text: (len(text), text))


def translate_sentences(
    engine: Engine, sentences: Sequence[str], resume: Path, label: str
) -> list[Hypothesis]:
    """Translate sentences in chunks; each is written to ``resume`` and never done again.

    Returns:
        The best translation of each sentence.
    """
    engine.check(sentences)
    paths = {start: resume / f"{start:09d}.json" for start in range(0, len(sentences), CHUNK)}
    done = {start: best for start, path in paths.items() if (best := _kept(path)) is not None}
    count = sum(map(len, done.values()))
    with tqdm(total=len(sentences), initial=count, unit="sentence", desc=label) as bar:
        for start in sorted(paths.keys() - done.keys()):
            chunk = sentences[start : start + CHUNK]
            done[start] = [asdict(hypotheses[0]) for hypotheses in engine.translate(chunk)]
            with publish(paths[start]) as temporary:
                temporary.write_text(json.dumps(done[start]), encoding="utf-8")
            bar.update(len(chunk))
    return [Hypothesis(**each) for start in paths for each in done[start]]


def _kept(path: Path) -> list[dict] | None:
    """Return what an earlier run wrote, or None where it is to be done, anew if it is damaged."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except ValueError:
        print(f"{path}: these translations are damaged: they are made anew", file=sys.stderr)
        return None


def translated_captions(
    chosen: pd.DataFrame,
    best: Mapping[str, Hypothesis],
    settings: Translation,
    name: str,
    engine: Engine,
    tokenizers: Mapping[str, Tokenizer],
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Make rows of translated captions, and of what made them.

    Args:
        chosen: Captions of :func:`captions_to_translate`.
        best: Translation of each of their texts.
        settings: Languages.
        name: Name of the translation, which becomes part of the new ids.
        engine: What translated.
        tokenizers: Of all languages; the target's makes the tokens, as for its other captions.

    Returns:
        Rows of ``tables.CAPTIONS`` and of ``translations.TRANSLATIONS``.
    """
    target = settings.target_language
    hypotheses = [best[text] for text in chosen["text"]]
    rows = chosen.assign(
        caption_id=chosen["caption_id"] + f"/{target}/{name}",
        language=target,
        annotation="machine",
        text=[_clean(each.text) for each in hypotheses],
        source_caption_id=chosen["caption_id"],
    )
    rows = tokenize_captions(rows, tokenizers)
    origin = rows[["caption_id", "source_caption_id"]].assign(
        engine=json.dumps(engine.description, sort_keys=True),
        log_likelihood=[each.log_likelihood for each in hypotheses],
    )
    return rows, origin


def _clean(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).split())


def _problems(captions: pd.DataFrame, chosen: pd.DataFrame, settings: Translation) -> Iterator[str]:
    if chosen.empty:
        kind = f"{settings.source_language}/{settings.annotation}"
        yield f"expected captions {kind} to translate, found none. Name what the data set has"
    target = settings.target_language
    if settings.source_language == target:
        yield f"expected two languages, found {target} twice"
    machine = (captions["language"] == target) & (captions["annotation"] == "machine")
    if machine.any():
        yield (
            f"expected no machine translations into {target} yet, found {machine.sum()}. Leave the "
            "language out of the data set, or translate another one"
        )
