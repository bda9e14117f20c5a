"""The commands of ``polyview``."""

import click

from pipeline_lib.cli.embed import embed
from pipeline_lib.cli.export import export
from pipeline_lib.cli.new import new
from pipeline_lib.cli.recipe import recipe
from pipeline_lib.cli.search import search
from pipeline_lib.cli.serve import serve
from pipeline_lib.contract.problems import ContractError


class _Group(click.Group):
    def invoke(self, context: click.Context) -> object:
        """Run a command; what the user can mend is said without a traceback."""
        try:
            return super().invoke(context)
        except ContractError as error:
            message = click.ClickException(str(error))
            message.exit_code = 2
            raise message from error


@click.group(cls=_Group)
def main() -> None:
    """Multilingual image-text embeddings: make a study of your own, and use what it trained."""


for command in (new, recipe, search, serve, export, embed):
    main.add_command(command)
