"""Select the captions that recipes train and validate on."""

from pathlib import Path

import click
import pandas as pd

from pipeline_lib.contract.tables import read_captions, read_images, read_pairs, write_pairs
from pipeline_lib.corpora.selection import select
from pipeline_lib.running.edge import EdgeCommand
from pipeline_lib.settings.loading import load_settings
from pipeline_lib.settings.strict import choose


@click.command(cls=EdgeCommand, help=__doc__)
@click.argument("name")
def main(name: str) -> None:
    """Write data/pairs/NAME.parquet."""
    settings = load_settings()
    chosen = choose(settings.pairs, name, "pair set")
    captions = read_captions(Path(f"data/captions/{chosen.dataset}.parquet"))
    excluded = read_images(Path(f"data/images/{chosen.exclude_images}.parquet"))
    selected = select(
        captions,
        kinds=chosen.captions,
        per_image=chosen.per_image,
        images=chosen.images,
        excluded=excluded["image_id"],
        validation=chosen.validation_kinds,
        seed=settings.selection_seed,
    )
    plus = read_pairs(Path(f"data/pairs/{chosen.plus}.parquet"))
    tables = [table for table in (plus, selected.assign(set=name, seed=None)) if len(table)]
    write_pairs(pd.concat(tables), Path(f"data/pairs/{name}.parquet"))


if __name__ == "__main__":
    main()
