"""Read a bilingual lexicon and keep the training words of a pair set."""

from pathlib import Path

import click

from pipeline_lib.contract.lexicons import write_lexicon
from pipeline_lib.contract.tables import read_pairs
from pipeline_lib.running.edge import EdgeCommand
from pipeline_lib.settings.loading import load_settings
from pipeline_lib.settings.strict import choose
from pipeline_lib.text.lexicons import load_lexicon
from pipeline_lib.text.training_text import training_words


@click.command(cls=EdgeCommand, help=__doc__)
@click.argument("name")
def main(name: str) -> None:
    """Write data/lexicons/NAME.parquet."""
    lexicon = choose(load_settings().lexicons, name, "lexicon")
    words = training_words(read_pairs(Path(f"data/pairs/{lexicon.pairs}.parquet")))
    write_lexicon(load_lexicon(lexicon, words), Path(f"data/lexicons/{name}.parquet"))


if __name__ == "__main__":
    main()
