"""``polyview recipe``: a recipe as it is run, each value with the place that sets it."""

import io

import click
from ruamel.yaml import YAML

from pipeline_lib.settings.study import load_settings


@click.command()
@click.argument("name")
def recipe(name: str) -> None:
    """Print recipe NAME of the study in this folder, and where each value comes from."""
    origins = load_settings().origins(name)
    lines = [(_yaml(key, value), origin) for key, (value, origin) in origins.items()]
    width = max(len(line) for line, _ in lines)
    for line, origin in lines:
        click.echo(f"{line:{width}}  # {origin}")


def _yaml(key: str, value: object) -> str:
    yaml, text = YAML(), io.StringIO()
    yaml.default_flow_style, yaml.width = True, 10_000
    yaml.dump({key: value}, text)
    return text.getvalue().strip()[1:-1]
