"""Translate the captions of one language; continues where a kill left it."""

from pathlib import Path

import click
import pandas as pd

from pipeline_lib.contract.tables import read_captions, read_images, write_captions, write_images
from pipeline_lib.contract.translations import write_translations
from pipeline_lib.running.edge import EdgeCommand
from pipeline_lib.running.publishing import keep_until_recorded, resume_folder
from pipeline_lib.settings.loading import load_settings
from pipeline_lib.settings.strict import choose
from pipeline_lib.synthesis.engines import build_engine
from pipeline_lib.synthesis.leaks import check_images_seen
from pipeline_lib.synthesis.translate import (
    captions_to_translate,
    distinct_sentences,
    translate_sentences,
    translated_captions,
)


@click.command(cls=EdgeCommand, help=__doc__)
@click.argument("name")
def main(name: str) -> None:
    """Write NAME.parquet into data/captions, data/images and data/translations."""
    settings = load_settings()
    chosen = choose(settings.translations, name, "translation")
    captions = read_captions(Path(f"data/captions/{chosen.dataset}.parquet"))
    images = read_images(Path(f"data/images/{chosen.dataset}.parquet"))
    originals = captions_to_translate(captions, chosen)
    engine = build_engine(chosen)
    check_images_seen(engine.images_seen, images, f"translations.{name}")

    sentences = distinct_sentences(originals)
    resume = resume_folder(f"translate@{name}", [engine.description, sentences])
    best = translate_sentences(engine, chosen, sentences, resume, name)
    rows, origin = translated_captions(
        originals,
        dict(zip(sentences, best, strict=True)),
        chosen,
        name,
        engine,
        settings.tokenizers,
    )
    write_captions(pd.concat([captions, rows]), Path(f"data/captions/{name}.parquet"))
    write_images(images, Path(f"data/images/{name}.parquet"))
    output = Path(f"data/translations/{name}.parquet")
    write_translations(origin, output)
    keep_until_recorded(resume, [output])


if __name__ == "__main__":
    main()
