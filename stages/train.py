"""Train one recipe: a model per seed and its training curve; continues where a kill left it."""

from functools import partial
from pathlib import Path

import click
import pandas as pd
import torch

from pipeline_lib.contract import read_features, read_pairs
from pipeline_lib.evaluation.validation import validation_scores
from pipeline_lib.models.embedder import Embedder
from pipeline_lib.publishing import discard, file_sha256, publish, resume_folder
from pipeline_lib.settings import load_settings
from pipeline_lib.training.corpus import build_corpus, build_vocabulary, join_features
from pipeline_lib.training.loop import fit


@click.command(help=__doc__)
@click.argument("name")
def main(name: str) -> None:
    """Write data/models/NAME and metrics/recipes/NAME/training.csv."""
    settings = load_settings()
    recipe = settings.recipe(name)
    inputs = [
        Path(f"data/pairs/{recipe.pairs}.parquet"),
        Path(f"data/features/{recipe.features}.h5"),
        Path(f"data/features/{recipe.more_features}.h5"),
    ]
    pairs = read_pairs(inputs[0])
    features = join_features(*map(read_features, inputs[1:]))
    vocabulary = build_vocabulary(pairs, recipe)
    train, val = (
        build_corpus(pairs, split, features, vocabulary, recipe) for split in ("train", "val")
    )
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    identity = [recipe.model_dump(), [file_sha256(path) for path in inputs], torch.__version__]
    histories = []
    with publish(Path(f"data/models/{name}")) as models:
        for seed in recipe.seeds:
            resume = resume_folder(f"train@{name}-seed-{seed}", identity)
            model = Embedder(recipe, vocabulary, train.features.shape[1], seed).to(device)
            label = f"{name} seed {seed} on {device.type}"
            history = fit(model, train, partial(validation_scores, corpus=val), seed, resume, label)
            model.save(models / f"seed-{seed}")
            histories.append(pd.DataFrame(history).assign(seed=seed))
    with publish(Path(f"metrics/recipes/{name}/training.csv")) as path:
        pd.concat(histories).to_csv(path, index=False)
    for seed in recipe.seeds:
        discard(resume_folder(f"train@{name}-seed-{seed}", identity))


if __name__ == "__main__":
    main()
