"""``polyview export``: a model in the form of other tools."""

import os
from pathlib import Path

import click

from pipeline_lib.cli.example import example
from pipeline_lib.cli.search import FOLDER
from pipeline_lib.contract.problems import ContractError
from pipeline_lib.models.places import check_outside
from pipeline_lib.running.publishing import publish

FORMS = ("sentence-transformers", "onnx")


@click.command(
    short_help="Write a model as ONNX, or for others.",
    no_args_is_help=True,
    epilog=example("polyview export data/models/mule/seed-1 mule-onnx --to onnx", "written"),
)
@click.argument("model", type=FOLDER)
@click.argument("output", type=click.Path(path_type=Path))
@click.option("--to", "form", type=click.Choice(FORMS), required=True, help="Format to write.")
def export(model: Path, output: Path, form: str) -> None:
    """Write MODEL, the folder of a trained model, as the folder OUTPUT for another tool.

    sentence-transformers exports the text encoder; onnx exports both encoders, with the backbone.
    Both write a model card. Needs: uv sync --group export
    """
    if os.path.lexists(output):  # also a link to what is not there now
        raise ContractError(f"{output}: is there already. Take another name, or remove it")
    check_outside(output, model)
    from pipeline_lib.export.card import write_card
    from pipeline_lib.models.embedder import Embedder, model_digest  # seconds, not for --help

    digest = Embedder.load(model).digest  # or says what is no model
    try:
        if form == "onnx":
            import onnxruntime  # noqa: F401
            import onnxscript  # noqa: F401

            from pipeline_lib.export.graphs import write_graphs as write
        else:
            from pipeline_lib.export.sentence_module import write_folder as write
    except ImportError as error:
        raise ContractError(f"export needs {error.name}: run uv sync --group export") from error
    with publish(output) as folder:
        folder.mkdir()
        write_card(model, form, folder, output.name)  # first: it takes no time to fail
        write(model, folder)
        if model_digest(model) != digest:
            raise ContractError(f"{model}: was replaced while it was exported. Export it again")
    click.echo(f"{output}: written for {form}")
