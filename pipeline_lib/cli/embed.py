import click


@click.command()
def embed():
    pass
