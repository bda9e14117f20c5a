"""The empty artefacts that the name ``none`` stands for, so that no dependency is conditional."""

from pathlib import Path

import click

from pipeline_lib.contract import empty_features, empty_pairs, write_features, write_pairs


@click.command(help=__doc__)
def main() -> None:
    """Write a pair set without captions and a feature file without images."""
    write_pairs(empty_pairs(), Path("data/pairs/none.parquet"))
    write_features(empty_features(), Path("data/features/none.h5"))


if __name__ == "__main__":
    main()
