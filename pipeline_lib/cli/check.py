"""``polyview check``: what would fail, or mislead, after hours of work."""

import click

from pipeline_lib.checks.study import check_study
from pipeline_lib.cli.example import example
from pipeline_lib.contract.problems import raise_problems, warn
from pipeline_lib.settings.loading import load_settings
from pipeline_lib.settings.messages import lines_of
from pipeline_lib.settings.study import PARAMS


@click.command(
    short_help="Look for mistakes before anything runs.",
    epilog=example("polyview check", "nothing was found"),
)
def check() -> None:
    """Check the study in this folder: parameters against captions, photos and memory.

    Reports all problems at once, with their line numbers in params.yaml. The first stage of dvc
    repro runs the same check.
    """
    found = check_study(load_settings())
    for sentence in lines_of(PARAMS, found.warnings):
        warn(f"{PARAMS}: {sentence}")
    raise_problems(PARAMS, lines_of(PARAMS, [*found.problems, *found.missing]))
    click.echo("nothing was found that would stop this study")
