"""``polyview embed``: vectors of sentences, photos or their features, in Parquet."""

from pathlib import Path

import click

from pipeline_lib.cli.example import example
from pipeline_lib.cli.search import FILE, FOLDER, check_is_no_pipe
from pipeline_lib.contract.problems import ContractError
from pipeline_lib.models.places import check_outside
from pipeline_lib.search.names import on_one_line


@click.command(
    short_help="Embed a table of sentences, or photos.",
    no_args_is_help=True,
    epilog=example(
        "polyview embed data/models/mule/seed-1 captions.tsv vectors.parquet", "written"
    ),
)
@click.argument("model", type=FOLDER)
@click.argument("source", type=click.Path(exists=True, path_type=Path))
@click.argument("output", type=FILE)
@click.option(
    "--language", metavar="CODE", help="Language of all sentences. Default: the table's column."
)
def embed(model: Path, source: Path, output: Path, language: str | None) -> None:
    """Embed SOURCE with MODEL, the folder of a trained model, and write the vectors to OUTPUT.

    SOURCE is a folder of photos, or a table (.parquet, .csv, .tsv) with the columns text and
    language, or features of photos (.h5) as those that the model has learnt. OUTPUT is Parquet: the
    rows of the source in their order, with a column of vectors. Tables need not fit into memory.
    """
    from pipeline_lib.export.vectors import embed_folder, embed_given, embed_table
    from pipeline_lib.models.embedder import Embedder  # seconds, which --help does without

    features = source.suffix.lower() in (".h5", ".hdf5")
    if language and (features or source.is_dir()):
        raise ContractError("--language: expected with a table of sentences, found with photos")
    if output.suffix != ".parquet":
        raise ContractError(f"{output}: expected a name that ends in .parquet, which is written")
    check_outside(output, model)
    check_is_no_pipe(source)
    embedder = Embedder.load(model)
    if source.is_dir():
        count, unreadable = embed_folder(embedder, source, output)
        for path, problem in unreadable.items():
            click.echo(f"unreadable: {on_one_line(path)}: {problem}", err=True)
    elif features:
        count = embed_given(embedder, source, output)
    else:
        count, longer = embed_table(embedder, source, language, output)
        if longer:
            most = f"the model reads the first {embedder.max_tokens} words of each (max_tokens)"
            click.echo(f"{source}: {longer:,} sentences are longer: {most}", err=True)
    click.echo(f"{output}: {count:,} vectors")
