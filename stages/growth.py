"""Train a recipe again on some of its photos, and on fewer languages: how it grows."""

from functools import partial
from pathlib import Path

import click
import pandas as pd
import torch

from pipeline_lib.contract.features import read_features
from pipeline_lib.contract.lexicons import read_lexicon
from pipeline_lib.contract.reports import best_validation, read_rows
from pipeline_lib.contract.tables import read_pairs
from pipeline_lib.edge import EdgeCommand
from pipeline_lib.evaluation.validation import validation_scores
from pipeline_lib.forks import cores, on_all_cores
from pipeline_lib.publishing import file_sha256, keep_until_recorded, publish, resume_folders
from pipeline_lib.settings.strict import choose
from pipeline_lib.settings.study import load_settings
from pipeline_lib.settings.text import LatentSemanticVectors
from pipeline_lib.training.fitting import fit
from pipeline_lib.training.growth import Run, material_of, runs, scored, training_photos
from pipeline_lib.training.material import Material

_RECORD = "validation.csv"
"""What a run leaves in its folder."""


@click.command(cls=EdgeCommand, help=__doc__)
@click.argument("name")
def main(name: str) -> None:
    """Write metrics/reports/growth/NAME.csv (training.growth.COLUMNS)."""
    settings = load_settings()
    chosen, recipe = choose(settings.growth, name, "growing recipe"), settings.recipe(name)
    options = settings.word_vectors[recipe.word_vectors]
    files = [
        Path(f"data/pairs/{recipe.pairs}.parquet"),
        Path(f"data/features/{recipe.features}.h5"),
    ]
    whole = Material(
        recipe,
        read_pairs(files[0]),
        read_features(files[1]),
        read_lexicon(Path("data/lexicons/none.parquet")),
        {},
        Path(),
        {path.as_posix(): file_sha256(path) for path in files},
    )
    less = runs(chosen, recipe.languages)
    shared = [
        recipe.model_dump(),
        options.model_dump(),
        settings.selection_seed,
        dict(whole.digests),
    ]
    shared.append(torch.__version__)
    identities = [[*shared, run.seed, run.share, run.languages] for run in less]
    folders = resume_folders(f"growth@{name}", identities)
    work = [
        (n % cores(), run, folder)
        for n, (run, folder) in enumerate(zip(less, folders, strict=True))
    ]
    learn = partial(_learn, name, whole, options, settings.selection_seed)
    tables = [*on_all_cores(learn, work), *_of_all(name, whole, chosen.seeds)]
    report = Path(f"metrics/reports/growth/{name}.csv")
    with publish(report) as path:
        pd.concat(tables).round(2).to_csv(path, index=False)
    for folder in folders:
        keep_until_recorded(folder, [report])


def _learn(
    name: str,
    whole: Material,
    options: LatentSemanticVectors,
    drawing_seed: int,
    work: tuple[int, Run, Path],
) -> pd.DataFrame:
    """Return the scores of a run, which is trained if its folder has none."""
    line, run, folder = work
    record = folder / _RECORD
    if not record.is_file():
        material = material_of(run, whole, options, drawing_seed)
        vocabulary = material.vocabulary(run.seed)
        train, val = (material.examples(s, run.seed, vocabulary) for s in ("train", "val"))
        learner = material.learner(run.seed, vocabulary, train.features.shape[1])
        label = (
            f"{name} on {run.share:.1%} of the photos, {' '.join(run.languages)}, seed {run.seed}"
        )
        course = fit(
            learner,
            train,
            partial(validation_scores, examples=val, tested={}),
            run.seed,
            folder,
            f"{label}, on {learner.device.type} in {learner.precision}",
            line,
        )
        best = best_validation(pd.DataFrame(course.history), material.recipe.select_by)
        photos = len(training_photos(material))
        with publish(record) as path:
            scored(best, run.seed, photos, run.languages).to_csv(path, index=False)
    return read_rows(record)


def _of_all(name: str, whole: Material, seeds: list[int]) -> list[pd.DataFrame]:
    """Return the scores of the recipe itself."""
    history = read_rows(Path(f"metrics/reports/recipes/{name}/training.csv"))
    photos, recipe = len(training_photos(whole)), whole.recipe
    kept = {seed: rows for seed, rows in history.groupby("seed") if seed in seeds}
    return [
        scored(best_validation(rows, recipe.select_by), seed, photos, recipe.languages)
        for seed, rows in kept.items()
    ]


if __name__ == "__main__":
    main()
