"""Train one recipe: a model per seed and its training curve; continues where a kill left it."""

import json
from functools import partial
from pathlib import Path

import click
import pandas as pd
import torch

from pipeline_lib.contract.features import read_features
from pipeline_lib.contract.lexicons import read_lexicon, tested_pairs
from pipeline_lib.contract.problems import raise_problems, warn
from pipeline_lib.contract.tables import read_images, read_pairs
from pipeline_lib.contract.word_vectors import check_unseen, read_word_vectors
from pipeline_lib.edge import EdgeCommand
from pipeline_lib.evaluation.validation import validation_scores
from pipeline_lib.forks import on_all_cores
from pipeline_lib.models.preprocessing import preprocessing_of
from pipeline_lib.publishing import keep_until_recorded, publish, resume_folder, tree_sha256
from pipeline_lib.settings.study import load_settings
from pipeline_lib.synthesis.leaks import evaluation_images, training_leaks
from pipeline_lib.training.doubts import described, doubts
from pipeline_lib.training.examples import build_examples, build_vocabulary, join_features
from pipeline_lib.training.fitting import fit
from pipeline_lib.training.preparation import (
    initial_vocabulary,
    parameter_counts,
    start_learner,
)
from pipeline_lib.training.seeds import side_by_side


@click.command(cls=EdgeCommand, help=__doc__)
@click.argument("name")
def main(name: str) -> None:
    """Write data/models/NAME, metrics/reports/recipes/NAME/training.csv and model.json."""
    settings = load_settings()
    recipe = settings.recipe(name)
    extractor = settings.extractors[recipe.features]
    preprocessing = preprocessing_of(recipe.languages, settings.tokenizers, extractor)
    inputs = {
        "pairs": Path(f"data/pairs/{recipe.pairs}.parquet"),
        "features": Path(f"data/features/{recipe.features}.h5"),
        "more_features": Path(f"data/features/{recipe.more_features}.h5"),
        "word_vectors": Path(f"data/word_vectors/{recipe.word_vectors}.h5"),
        "lexicon": Path(f"data/lexicons/{recipe.lexicon}.parquet"),
        "initial": Path(f"data/models/{recipe.initial}"),
    }
    identity = [recipe.model_dump(), [*map(tree_sha256, inputs.values())], torch.__version__]
    pairs, lexicon = read_pairs(inputs["pairs"]), read_lexicon(inputs["lexicon"])
    features = join_features(
        read_features(inputs["features"]), read_features(inputs["more_features"])
    )
    vectors = read_word_vectors(inputs["word_vectors"])
    images = read_images(Path(f"data/images/{recipe.dataset}.parquet"))
    unseen = check_unseen(vectors, evaluation_images(images), "validation or test")
    raise_problems(f"recipes.{name}", [*training_leaks(pairs, images), *unseen])
    vocabulary = initial_vocabulary(recipe, inputs["initial"]) or build_vocabulary(pairs, recipe)
    train, val = (
        build_examples(pairs, split, features, vocabulary, recipe, lexicon)
        for split in ("train", "val")
    )
    dim, tested = train.features.shape[1], tested_pairs(lexicon, recipe.languages)
    validate = partial(validation_scores, examples=val, tested=tested)
    resume = resume_folder(f"train@{name}", identity)
    with publish(Path(f"data/models/{name}")) as models:

        def train_seed(numbered: tuple[int, int]) -> None:
            number, seed = numbered
            learner = start_learner(
                recipe, vocabulary, dim, seed, vectors.by_language, inputs["initial"]
            ).to_best_device()
            label = f"{name} seed {seed} on {learner.device.type} in {learner.precision}"
            kept = resume / f"seed-{seed}"
            history = fit(learner, train, validate, seed, kept, label, number)
            learner.space.save(models / f"seed-{seed}", preprocessing, recipe.model_dump())
            model = {"parameters": parameter_counts(learner), "precision": learner.precision}
            if found := doubts(history, recipe, val):
                model["doubts"] = found
                warn(f"{label}: {'; '.join(found)}")
            (kept / "model.json").write_text(json.dumps(model, indent=1) + "\n")
            pd.DataFrame(history).assign(seed=seed).to_csv(kept / "training.csv", index=False)

        for _ in on_all_cores(train_seed, enumerate(recipe.seeds), side_by_side(recipe)):
            pass
    kept = [resume / f"seed-{seed}" for seed in recipe.seeds]
    curve = Path(f"metrics/reports/recipes/{name}/training.csv")
    with publish(curve) as path:
        histories = [pd.read_csv(folder / "training.csv") for folder in kept]
        pd.concat(histories).to_csv(path, index=False)
    with publish(Path(f"metrics/reports/recipes/{name}/model.json")) as path:
        path.write_text(json.dumps(described(kept), indent=1) + "\n")
    keep_until_recorded(resume, [curve])


if __name__ == "__main__":
    main()
