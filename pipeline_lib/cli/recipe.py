"""``polyview recipe``: a recipe as it is run, each value with the place that sets it."""

import click

from pipeline_lib.settings.printed import recipe_lines
from pipeline_lib.settings.strict import SettingsError
from pipeline_lib.settings.study import load_settings


@click.command()
@click.argument("name")
def recipe(name: str) -> None:
    """Print recipe NAME of the study in this folder, and where each value comes from."""
    try:
        lines = recipe_lines(load_settings(), name)
    except SettingsError as error:
        raise click.ClickException(str(error)) from error
    click.echo("\n".join(lines))
