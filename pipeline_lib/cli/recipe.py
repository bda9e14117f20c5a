"""``polyview recipe``: a recipe as it is run, each value with the place that sets it."""

import click

from pipeline_lib.cli.example import example
from pipeline_lib.settings.loading import load_settings
from pipeline_lib.settings.printed import recipe_lines


@click.command(epilog=example("polyview recipe mule", "printed"))
@click.argument("name")
def recipe(name: str) -> None:
    """Print recipe NAME of the study in this folder, and where each value comes from."""
    click.echo("\n".join(recipe_lines(load_settings(), name)))
