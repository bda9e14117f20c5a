"""How well one orthogonal map fits the words of two languages: what FME's words can find at best.

``python -m benchmarks.frozen_words WORD_VECTORS LEXICON`` runs in a folder of a study that has made
both, and prints P@1 in per cent, by nearest neighbour and by CSLS, of the map that NumPy's singular
values fit to a protocol's training pairs (Procrustes), among all words of the other language: for
the tested pairs, and for the very pairs that it was fitted to. FME (Mohammadshahi et al. 2019)
leaves words so, and learns no other map: where the fitted pairs do not find each other, it is the
vectors that no map brings together.
"""

from collections.abc import Sequence
from pathlib import Path

import click
import numpy as np

from pipeline_lib.contract.lexicons import read_lexicon
from pipeline_lib.contract.word_vectors import WordVectors, read_word_vectors
from pipeline_lib.evaluation.words.ranks import gold_pairs, unit_rows
from pipeline_lib.evaluation.words.translation import translation_precision
from pipeline_lib.settings.loading import load_settings

Side = tuple[Sequence[str], np.ndarray]
"""Words, and their vectors ``[words, dim]``."""


@click.command(help=__doc__)
@click.argument("word_vectors")
@click.argument("lexicon")
def main(word_vectors: str, lexicon: str) -> None:
    """Print a line for each protocol and fold."""
    settings = load_settings()
    words = read_word_vectors(Path(f"data/word_vectors/{word_vectors}.h5"))
    table = read_lexicon(Path(f"data/lexicons/{lexicon}.parquet"))
    languages = settings.lexicons[lexicon].languages
    bootstrap = settings.evaluations.retrieval.bootstrap
    neighbours = settings.evaluations.word_translation.csls_neighbours
    source, target = (normalised(words, language) for language in languages)
    print("| protocol | fitted pairs | of | words | P@1 | by CSLS |\n|---|---:|---|---:|---:|---:|")
    for protocol, of in table.groupby("protocol"):
        folds = {
            fold: set(zip(rows["source_word"], rows["target_word"], strict=True))
            for fold, rows in of.groupby("fold")
        }
        fitted = gold_pairs(source[0], target[0], folds["train"])
        mapped = source[0], source[1] @ fitted_map(source[1], target[1], fitted)
        for fold, pairs in folds.items():
            found = translation_precision(
                mapped, target, pairs, csls_neighbours=neighbours, **bootstrap
            )
            plain, csls = found["nearest_neighbour"], found["csls"]
            print(
                f"| {protocol} | {len(fitted):,} | {fold} | {plain['n_queries']:,} "
                f"| {plain['p1']:.1f} | {csls['p1']:.1f} |"
            )


def normalised(words: WordVectors, language: str) -> Side:
    """Return the words of a language and their vectors, each of length 1."""
    names, vectors = words.by_language[language]
    return names, unit_rows(vectors)


def fitted_map(source: np.ndarray, target: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """Return the orthogonal map ``W`` with the least ``||source @ W - target||`` over the pairs."""
    left, _, right = np.linalg.svd(source[pairs[:, 0]].T @ target[pairs[:, 1]])
    return left @ right


if __name__ == "__main__":
    main()
