"""Extract CNN features of one data set's images into HDF5, or take the ones that are given."""

from pathlib import Path

import click

from pipeline_lib.contract.tables import read_images
from pipeline_lib.images.extraction import extract
from pipeline_lib.images.given import take_features
from pipeline_lib.running.edge import EdgeCommand
from pipeline_lib.running.publishing import keep_until_recorded, resume_folder
from pipeline_lib.settings.images import GivenFeatures
from pipeline_lib.settings.loading import load_settings
from pipeline_lib.settings.strict import choose


@click.command(cls=EdgeCommand, help=__doc__)
@click.argument("name")
def main(name: str) -> None:
    """Write data/features/NAME.h5; extraction continues where a kill left it."""
    extractor = choose(load_settings().extractors, name, "extractor")
    images = read_images(Path(f"data/images/{extractor.dataset}.parquet"))
    output = Path(f"data/features/{name}.h5")
    if isinstance(extractor, GivenFeatures):
        take_features(images, Path(extractor.images), output)
        return
    # Not the photos: a batch has a key of its own, and those before one that changes are kept.
    resume = resume_folder(f"features@{name}", extractor.model_dump())
    extract(images, Path(extractor.images), extractor, output, resume)
    keep_until_recorded(resume, [output])


if __name__ == "__main__":
    main()
