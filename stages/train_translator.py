"""Train one translator on a data set's own parallel text; continues where a kill left it."""

import json
from functools import partial
from pathlib import Path

import click
import pandas as pd
import torch

from pipeline_lib.contract.reports import write_report
from pipeline_lib.contract.tables import read_captions, read_images, read_pairs
from pipeline_lib.corpora.parallel import parallel_text
from pipeline_lib.models.translator import Translator
from pipeline_lib.running.edge import EdgeCommand
from pipeline_lib.running.publishing import file_sha256, keep_until_recorded, publish, resume_folder
from pipeline_lib.settings.loading import load_settings
from pipeline_lib.settings.strict import choose
from pipeline_lib.synthesis.leaks import (
    check_training_pairs,
    images_seen,
    protected_images,
    without_images,
)
from pipeline_lib.synthesis.validation import greedy_bleu
from pipeline_lib.text.subwords import Subwords
from pipeline_lib.training.translation import fit_translator
from pipeline_lib.training.translation_batches import encode_pairs


@click.command(cls=EdgeCommand, help=__doc__)
@click.argument("name")
def main(name: str) -> None:
    """Write data/translators/NAME and metrics/reports/translators/NAME.csv."""
    settings = load_settings()
    recipe = choose(settings.translators, name, "translator")
    inputs = [
        Path(f"data/captions/{recipe.dataset}.parquet"),
        Path(f"data/images/{recipe.exclude_images}.parquet"),
        Path(f"data/pairs/{recipe.exclude_pairs}.parquet"),
    ]
    every = parallel_text(read_captions(inputs[0]), recipe.source_language, recipe.target_language)
    protected = protected_images(read_images(inputs[1]), read_pairs(inputs[2]))
    pairs = without_images(every, protected)
    check_training_pairs(pairs, protected, f"translators.{name}")
    train, val = (pairs[pairs["split"] == split] for split in ("train", "val"))

    subwords = Subwords.train([*train["source"], *train["target"]], recipe.subwords)
    translator = Translator(recipe, subwords).to_best_device()
    identity = [recipe.model_dump(), [file_sha256(path) for path in inputs], torch.__version__]
    resume = resume_folder(f"train_translator@{name}", identity)
    history = fit_translator(
        translator,
        encode_pairs(translator, train["source"].tolist(), train["target"].tolist()),
        partial(greedy_bleu, pairs=val),
        resume,
        f"{name} on {translator.device.type} in {translator.precision}",
    )
    with publish(Path(f"data/translators/{name}")) as folder:
        translator.save(folder)
        seen = json.dumps(images_seen(pairs), indent=0)
        (folder / "images.json").write_text(seen + "\n", encoding="utf-8")
        training = {
            "pairs": {"train": len(train), "val": len(val), "excluded": len(every) - len(pairs)},
            "precision": translator.precision,
            "updates": history[-1]["update"],
        }
        write_report(training, folder / "training.json")
    curve = Path(f"metrics/reports/translators/{name}.csv")
    with publish(curve) as path:
        pd.DataFrame(history).to_csv(path, index=False)
    keep_until_recorded(resume, [curve])


if __name__ == "__main__":
    main()
