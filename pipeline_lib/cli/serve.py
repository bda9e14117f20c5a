import click


@click.command()
def serve():
    pass
