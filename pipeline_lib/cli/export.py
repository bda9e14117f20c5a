import click


@click.command()
def export():
    pass
