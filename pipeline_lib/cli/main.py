"""The commands of ``polyview``."""

import click

from pipeline_lib.cli.check import check
from pipeline_lib.cli.new import new
from pipeline_lib.cli.recipe import recipe
from pipeline_lib.edge import EdgeGroup


@click.group(cls=EdgeGroup)
def main() -> None:
    """Multilingual image-text embeddings: make a study of your own, read its recipes."""


main.add_command(check)
main.add_command(new)
main.add_command(recipe)
