"""Read or train the vectors that a pair set's training words start from."""

from pathlib import Path

import click
import pandas as pd

from pipeline_lib.contract.problems import raise_problems
from pipeline_lib.contract.tables import read_pairs
from pipeline_lib.contract.word_vectors import WordVectors, check_unseen, write_word_vectors
from pipeline_lib.running.edge import EdgeCommand
from pipeline_lib.settings.loading import load_settings
from pipeline_lib.settings.strict import choose
from pipeline_lib.text.latent_semantics import latent_semantic_vectors
from pipeline_lib.text.training_text import (
    training_captions,
    training_images,
    training_sentences,
    training_words,
)
from pipeline_lib.text.word_vectors import (
    fasttext_attributes,
    file_attributes,
    load_vectors,
    train_fasttext,
)


@click.command(cls=EdgeCommand, help=__doc__)
@click.argument("name")
def main(name: str) -> None:
    """Write data/word_vectors/NAME.h5."""
    options = choose(load_settings().word_vectors, name, "set of word vectors")
    pairs = read_pairs(Path(f"data/pairs/{options.pairs}.parquet"))
    if options.method == "files":
        vectors = WordVectors(
            load_vectors(options, training_words(pairs)), [], file_attributes(options)
        )
    elif options.method == "latent_semantic":
        pairs = read_pairs(Path(options.source))
        made = latent_semantic_vectors(training_captions(pairs), options)
        vectors = WordVectors(made, training_images(pairs), options.model_dump())
    else:
        text = read_pairs(Path(options.source))
        pairs = pd.concat([text, pairs])
        trained = train_fasttext(training_sentences(text), training_words(pairs), options)
        vectors = WordVectors(trained, training_images(text), fasttext_attributes(options))
    held_out = pairs.loc[pairs["split"] != "train", "image_id"]
    raise_problems(f"word_vectors.{name}", check_unseen(vectors, held_out, "held-out"))
    write_word_vectors(vectors, Path(f"data/word_vectors/{name}.h5"))


if __name__ == "__main__":
    main()
