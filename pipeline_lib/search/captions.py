"""Training captions by their vectors: what a model has read that lies near a photo or a query."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pipeline_lib.contract.digests import SUMS, check_sums, write_sums
from pipeline_lib.contract.problems import ContractError
from pipeline_lib.contract.reports import read_report
from pipeline_lib.contract.tables import pairs_of_seed, read_pairs
from pipeline_lib.models.embedder import Embedder
from pipeline_lib.models.places import seed_of
from pipeline_lib.running.publishing import file_sha256, publish
from pipeline_lib.search.names import cache_name
from pipeline_lib.search.searcher import top

_MADE_OF = "made-of.txt"
"""In a folder of vectors: the digests of the model and of the table."""


@dataclass(frozen=True)
class Captions:
    """Sentences of training by language, and a vector of each ``float32 [sentences, dim]``."""

    texts: dict[str, list[str]]
    vectors: dict[str, np.ndarray]

    def near_photo(self, embedder: Embedder, photo: np.ndarray, count: int) -> dict[str, list[str]]:
        """Return the captions of each language that fit a photo's vector ``[dim]`` best."""
        return {
            language: self._best(language, embedder.scores(photo[None], vectors)[0], count)
            for language, vectors in self.vectors.items()
        }

    def near_words(self, sentence: np.ndarray, language: str) -> str:
        """Return the caption of a language that lies nearest to a sentence's vector ``[dim]``."""
        return self._best(language, self.vectors[language] @ sentence, 1)[0]

    def _best(self, language: str, scores: np.ndarray, count: int) -> list[str]:
        return [self.texts[language][hit.number] for hit in top(scores, count)]


def study_captions(model: Path) -> Path | None:
    """Return the captions that a model in its study (data/models/RECIPE/seed-N) learnt from.

    None if the model lies outside a study, or in one without them.
    """
    place = model.resolve()
    recipe = place / "recipe.json"
    if not recipe.is_file() or len(place.parents) < 3:
        return None
    name = read_report(recipe).get("pairs")
    if not (isinstance(name, str) and re.fullmatch(r"\w+", name)):  # it may come from anyone
        return None
    table = place.parents[2] / f"pairs/{name}.parquet"
    return table if table.is_file() else None


def load_captions(embedder: Embedder, table: Path, cache: Path) -> Captions:
    """Return the training captions of a table of pairs; their vectors are kept in the cache.

    Of a model in a folder ``seed-N``, those that this seed learnt from.

    Args:
        embedder: The model; other languages than its own are left out.
        table: Of schema contract.tables.PAIRS.
        cache: Folder in which the vectors are kept; those of another version of the model or of the
            table, in the same places, are replaced.

    Raises:
        ContractError: If it is another file, or has no caption in a language of the model.
    """
    try:
        pairs = read_pairs(table)
    except ContractError as error:  # which takes it for a stage's, to be deleted and made anew
        raise ContractError(
            f"{table}: expected training captions as a study has them, data/pairs/NAME.parquet; "
            "found another file, or a damaged one. In that study dvc checkout brings it back, and "
            "dvc repro makes it"
        ) from error
    seed = seed_of(embedder.folder)  # each may learn captions of its own
    pairs = pairs if seed is None else pairs_of_seed(pairs, seed)
    trained = pairs[(pairs["split"] == "train") & pairs["language"].isin(embedder.languages)]
    if trained.empty:
        raise ContractError(
            f"{table}: expected training captions in {', '.join(embedder.languages)}, found none"
        )
    name = f"captions-{cache_name(embedder.folder, table)}"
    made_of = f"{embedder.digest} {file_sha256(table)} {seed}"
    texts = {
        str(language): sorted(set(own)) for language, own in trained.groupby("language")["text"]
    }
    return Captions(texts, kept_vectors(embedder, texts, cache / name, made_of))


def kept_vectors(
    embedder: Embedder, texts: dict[str, list[str]], kept: Path, made_of: str
) -> dict[str, np.ndarray]:
    """Return the vectors of sentences by language.

    Args:
        embedder: The model.
        texts: The sentences.
        kept: Folder of their vectors, which is made anew if it is not whole, or of something else.
        made_of: Digests of the model and of the sentences.
    """
    if not _is_kept(kept, texts, made_of):
        with publish(kept) as folder:
            folder.mkdir()
            for language, own in texts.items():
                vectors = embedder.embed_sentences(own, language).astype(np.float32)
                np.save(folder / f"{language}.npy", vectors)
            (folder / _MADE_OF).write_text(made_of, encoding="utf-8")
            write_sums(folder)
    return {language: np.load(kept / f"{language}.npy") for language in texts}


def _is_kept(kept: Path, languages: Iterable[str], made_of: str) -> bool:
    try:
        check_sums(kept, (SUMS, _MADE_OF, *(f"{language}.npy" for language in languages)))
    except ContractError:  # not there yet, or damaged
        return False
    return (kept / _MADE_OF).read_text(encoding="utf-8") == made_of
