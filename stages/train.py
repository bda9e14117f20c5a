"""Train one recipe: a model per seed and its training curve; continues where a kill left it."""

from functools import partial
from pathlib import Path

import click

from pipeline_lib.contract.features import read_features
from pipeline_lib.contract.lexicons import read_lexicon, tested_pairs
from pipeline_lib.contract.problems import raise_problems
from pipeline_lib.contract.reports import write_report
from pipeline_lib.contract.tables import TRAIN, images_outside, read_images, read_pairs
from pipeline_lib.contract.word_vectors import WordVectors, check_unseen, read_word_vectors
from pipeline_lib.evaluation.validation import validation_scores
from pipeline_lib.models.preprocessing import preprocessing_of
from pipeline_lib.running.edge import EdgeCommand
from pipeline_lib.running.fingerprints import is_resolved
from pipeline_lib.running.publishing import (
    keep_until_recorded,
    publish,
    resume_folders,
    tree_sha256,
)
from pipeline_lib.settings.loading import load_settings
from pipeline_lib.settings.recipes import Recipe
from pipeline_lib.settings.study import Settings
from pipeline_lib.synthesis.leaks import training_leaks
from pipeline_lib.training.examples import join_features
from pipeline_lib.training.launch import in_ranks
from pipeline_lib.training.material import Material
from pipeline_lib.training.ranks import is_first, wait_for_first
from pipeline_lib.training.seeds import (
    can_train_ahead,
    curves,
    description,
    follow_seeds,
    train_missing,
    train_seeds,
    unpublished,
)


@click.command(cls=EdgeCommand, help=__doc__)
@click.argument("name")
@click.option("--ahead", is_flag=True, hidden=True, help="Train only, as running/ahead.py asks.")
def main(name: str, ahead: bool) -> None:
    """Write data/models/NAME, data/training/NAME; metrics/reports/recipes/NAME: the last two."""
    settings = load_settings()
    recipe = settings.recipe(name)
    if ahead and not (can_train_ahead(recipe) and is_resolved("train")):
        return
    in_ranks(partial(_train, name, settings, ahead), recipe.precision, "stages.train", name)


def _train(name: str, settings: Settings, ahead: bool) -> None:
    recipe = settings.recipe(name)
    if not is_first():
        wait_for_first()
        follow_seeds(_material(recipe)[0])
        return
    material, vectors = _material(recipe)
    images = read_images(Path(f"data/images/{recipe.dataset}.parquet"))
    unseen = check_unseen(vectors, images_outside(images, TRAIN), "validation or test")
    raise_problems(f"recipes.{name}", [*training_leaks(material.pairs, images), *unseen])
    wait_for_first()

    extractor = settings.extractors[recipe.features]
    preprocessing = preprocessing_of(recipe.languages, settings.tokenizers, extractor)
    identities = [material.identity(seed) for seed in recipe.seeds]
    work = dict(zip(recipe.seeds, resume_folders(f"train@{name}", identities), strict=True))
    models, records = Path(f"data/models/{name}"), Path(f"data/training/{name}")
    score = partial(validation_scores, tested=tested_pairs(material.lexicon, recipe.languages))
    if ahead:
        missing = unpublished(work, models, records)
        train_missing(name, material, score, preprocessing, missing)
        return
    train_seeds(name, material, score, preprocessing, work, models, records)
    report = Path(f"metrics/reports/recipes/{name}")
    with publish(report / "training.csv") as path:
        curves(records, recipe.seeds).to_csv(path, index=False)
    write_report(description(records, recipe.seeds), report / "model.json")
    for folder in work.values():
        keep_until_recorded(folder, [report / "training.csv"])


def _material(recipe: Recipe) -> tuple[Material, WordVectors]:
    """Read what a recipe learns from, and the word vectors among it."""
    features, more_features, word_vectors, lexicon = files = [
        Path(f"data/features/{recipe.features}.h5"),
        Path(f"data/features/{recipe.more_features}.h5"),
        Path(f"data/word_vectors/{recipe.word_vectors}.h5"),
        Path(f"data/lexicons/{recipe.lexicon}.parquet"),
    ]
    digests = {path.as_posix(): tree_sha256(path) for path in files}  # of what is read, or before
    vectors = read_word_vectors(word_vectors)
    material = Material(
        recipe,
        read_pairs(Path(f"data/pairs/{recipe.pairs}.parquet")),
        join_features(read_features(features), read_features(more_features)),
        read_lexicon(lexicon),
        vectors.by_language,
        Path(f"data/models/{recipe.initial}"),
        digests,
    )
    return material, vectors


if __name__ == "__main__":
    main()
