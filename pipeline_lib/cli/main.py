"""The commands of ``polyview``."""

import os
import sys

import click

from pipeline_lib.cli.check import check
from pipeline_lib.cli.embed import embed
from pipeline_lib.cli.export import export
from pipeline_lib.cli.new import new
from pipeline_lib.cli.recipe import recipe
from pipeline_lib.cli.search import search
from pipeline_lib.cli.serve import serve
from pipeline_lib.running.edge import EdgeGroup


@click.group(cls=EdgeGroup)
@click.version_option(package_name="polyview")
def main() -> None:
    """Multilingual image-text embeddings: make a study of your own, and use what it trained."""
    # A terminal may have no letter of a photo's name, which is no reason to stop.
    sys.stdout.reconfigure(errors="backslashreplace")
    # In another project's pipeline a command is no stage of ours, whose lock would be kept.
    os.environ.pop("DVC_STAGE", None)


for command in (new, check, recipe, search, serve, export, embed):
    main.add_command(command)
