"""Write the empty inputs that the names none and random stand for: each stage has all its own."""

from pathlib import Path

import click

from pipeline_lib.contract.facts import write_no_facts
from pipeline_lib.contract.features import empty_features, write_features
from pipeline_lib.contract.lexicons import empty_lexicon, write_lexicon
from pipeline_lib.contract.tables import IMAGES, empty_pairs, write_images, write_pairs
from pipeline_lib.contract.word_vectors import empty_word_vectors, write_word_vectors
from pipeline_lib.running.edge import EdgeCommand
from pipeline_lib.running.publishing import publish


@click.command(cls=EdgeCommand, help=__doc__)
def main() -> None:
    """Write pairs without captions, features without images, a lexicon without words, ..."""
    write_pairs(empty_pairs(), Path("data/pairs/none.parquet"))
    write_images(IMAGES.empty_table().to_pandas(), Path("data/images/none.parquet"))
    write_features(empty_features(), Path("data/features/none.h5"))
    write_word_vectors(empty_word_vectors(), Path("data/word_vectors/random.h5"))
    write_lexicon(empty_lexicon(), Path("data/lexicons/none.parquet"))
    write_no_facts(Path("data/facts/none.jsonl"))
    with publish(Path("data/models/none")) as folder:
        folder.mkdir()
        text = "No model: training starts from weights drawn at random.\n"
        (folder / "README").write_text(text)


if __name__ == "__main__":
    main()
