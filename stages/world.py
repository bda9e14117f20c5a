"""Generate a corpus of drawn scenes with captions in six languages (``worlds`` of params.yaml)."""

from pathlib import Path

import click

from pipeline_lib.corpora.world.generate import generate
from pipeline_lib.running.edge import EdgeCommand
from pipeline_lib.running.publishing import publish
from pipeline_lib.settings.loading import load_settings
from pipeline_lib.settings.strict import choose


@click.command(cls=EdgeCommand, help=__doc__)
@click.argument("name")
def main(name: str) -> None:
    """Write data/raw/NAME."""
    world = choose(load_settings().worlds, name, "world")
    with publish(Path("data/raw") / name) as folder:
        generate(folder, name=name, **world.model_dump())


if __name__ == "__main__":
    main()
