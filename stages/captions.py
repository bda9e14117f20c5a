"""Read one raw corpus into a table of tokenised captions and a table of images."""

from pathlib import Path

import click

from pipeline_lib.checks.study import check_before_work
from pipeline_lib.contract.tables import check_captions_have_images, write_captions, write_images
from pipeline_lib.corpora.readers import read_corpus
from pipeline_lib.running.edge import EdgeCommand
from pipeline_lib.settings.loading import load_settings
from pipeline_lib.settings.strict import choose
from pipeline_lib.text.tokenizers import tokenize_captions


@click.command(cls=EdgeCommand, help=__doc__)
@click.argument("name")
def main(name: str) -> None:
    """Write data/captions/NAME.parquet and data/images/NAME.parquet."""
    settings = load_settings()
    dataset = choose(settings.datasets, name, "data set")
    check_before_work(settings, name)  # resolve has not run since, if the files alone changed
    options = dataset.model_dump(exclude={"reader", "raw"})
    corpus = read_corpus(dataset.reader, Path(dataset.raw), name, **options)
    captions = tokenize_captions(corpus.captions, settings.tokenizers)
    check_captions_have_images(captions, corpus.images)
    write_captions(captions, Path(f"data/captions/{name}.parquet"))
    write_images(corpus.images, Path(f"data/images/{name}.parquet"))


if __name__ == "__main__":
    main()
