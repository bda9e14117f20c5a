"""``polyview recipe``: a recipe as it is run, each value with the place that sets it; or all."""

import click

from pipeline_lib.cli.example import example
from pipeline_lib.settings.loading import load_settings
from pipeline_lib.settings.printed import recipe_lines, study_lines


@click.command(
    epilog=example("polyview recipe mule", "printed"), short_help="Print a recipe, or list all."
)
@click.argument("name", required=False)
def recipe(name: str | None) -> None:
    """Print recipe NAME of the study in this folder, and where each value comes from.

    Without NAME list the recipes of the study.
    """
    settings = load_settings()
    lines = study_lines(settings) if name is None else recipe_lines(settings, name)
    click.echo("\n".join(lines))
