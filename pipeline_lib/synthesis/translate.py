"""Captions of one language into another, beside the originals, in batches that survive a kill."""

import hashlib
import json
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import pandas as pd

from pipeline_lib.contract.problems import raise_problems, warn
from pipeline_lib.contract.tables import meanings
from pipeline_lib.models.translator import Hypothesis
from pipeline_lib.scheduling.cluster import open_pool
from pipeline_lib.scheduling.each import computation
from pipeline_lib.scheduling.shards import FileStore, Shard, in_shards, run_shards
from pipeline_lib.settings.synthesis import Translation
from pipeline_lib.settings.text import Tokenizer
from pipeline_lib.synthesis.engines import Engine, build_engine
from pipeline_lib.text.letters import one_line
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
    engine: Engine, settings: Translation, sentences: Sequence[str], resume: Path, label: str
) -> list[Hypothesis]:
    """Translate sentences in chunks; each is written to ``resume`` and never done again.

    Args:
        engine: Of these settings. Workers elsewhere build their own.
        settings: What the engine is built from.
        sentences: Short ones first, which makes even chunks.
        resume: Folder of unfinished work, of these sentences and this engine. Chunks that another
            kind of machine has left there are not used: its last bits may decide a beam.
        label: Of the progress bar.

    Returns:
        The best translation of each sentence.
    """
    engine.check(sentences)
    shards = in_shards(sentences, CHUNK)
    with open_pool(_Load(engine, settings)) as pool:
        store = FileStore(resume / _machine(pool.description))
        raise_problems(label, run_shards(shards, pool, store, unit="sentences", label=label))
    results = (json.loads(store.read(shard.index)) for shard in shards)
    return [Hypothesis(**each) for result in results for each in result]


def _machine(description: Mapping[str, object]) -> str:
    """Return a name of all that decides last bits, but for the code, which has named the resume."""
    text = json.dumps(
        {key: description[key] for key in description.keys() - {"code"}}, sort_keys=True
    )
    return hashlib.sha256(text.encode()).hexdigest()[:16]


class TranslationWorker:
    """What translates chunks of sentences: a worker of :func:`~shards.run_shards`."""

    def __init__(self, engine: Engine) -> None:
        self.description = {**engine.description, **computation()}
        self._translate = engine.translate

    def read(self, shard: Shard) -> Sequence[str]:
        """Return the sentences."""
        return shard.items

    def compute(self, read: Sequence[str]) -> bytes:
        """Return the best hypothesis of each sentence, in JSON."""
        best = [asdict(hypotheses[0]) for hypotheses in self._translate(read)]
        return json.dumps(best).encode()


@dataclass
class _Load:
    """From an engine to its worker; where it travels to, the engine is built anew."""

    engine: Engine | None
    settings: Translation

    def __call__(self) -> TranslationWorker:
        return TranslationWorker(self.engine or build_engine(self.settings))

    def __getstate__(self) -> dict[str, object]:
        return {"engine": None, "settings": self.settings}


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
        Rows of ``tables.CAPTIONS`` and of ``translations.TRANSLATIONS``; none of a translation
        that is empty.
    """
    target = settings.target_language
    empty = chosen["text"].map(lambda text: _is_blank(best[text].text))
    _warn_of_empty(chosen[empty], name)
    chosen = chosen[~empty]
    hypotheses = [best[text] for text in chosen["text"]]
    rows = chosen.assign(
        caption_id=chosen["caption_id"] + f"/{target}/{name}",
        language=target,
        annotation="machine",
        text=[one_line(each.text) for each in hypotheses],
        source_caption_id=meanings(chosen),
    )
    rows = tokenize_captions(rows, tokenizers)
    origin = rows[["caption_id"]].assign(
        source_caption_id=chosen["caption_id"],
        engine=json.dumps(engine.description, sort_keys=True),
        log_likelihood=[each.log_likelihood for each in hypotheses],
    )
    return rows, origin


def _is_blank(text: str) -> bool:
    """Return whether nothing is to be seen of a translation: a beam may end after a blank.

    Characters of width zero are such, too (of Unicode's categories Z and C), and make no token.
    """
    return all(unicodedata.category(character)[0] in "ZC" for character in text)


def _warn_of_empty(captions: pd.DataFrame, name: str) -> None:
    if len(captions):
        first = captions["caption_id"].iloc[0]
        warn(
            f"{name}: {len(captions)} translations are empty (first: of {first!r}); they are left "
            "out"
        )


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
