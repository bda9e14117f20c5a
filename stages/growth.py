"""Train a recipe again on some of its photos, and on fewer languages: how it grows."""

from functools import partial
from pathlib import Path

import click
import pandas as pd

from pipeline_lib.compute.device import best_device
from pipeline_lib.compute.forks import cores, on_all_cores
from pipeline_lib.contract.features import read_features
from pipeline_lib.contract.lexicons import read_lexicon
from pipeline_lib.contract.reports import read_rows
from pipeline_lib.contract.tables import read_pairs
from pipeline_lib.evaluation.validation import validation_scores
from pipeline_lib.running.edge import EdgeCommand
from pipeline_lib.running.publishing import (
    keep_until_recorded,
    publish,
    resume_folders,
    tree_sha256,
)
from pipeline_lib.settings.loading import load_settings
from pipeline_lib.settings.strict import choose
from pipeline_lib.training.growth import Growing, of_recipe, runs
from pipeline_lib.training.material import Material


@click.command(cls=EdgeCommand, help=__doc__)
@click.argument("name")
def main(name: str) -> None:
    """Write metrics/reports/growth/NAME.csv (training.growth.COLUMNS)."""
    settings = load_settings()
    chosen = choose(settings.growth, name, "entry of growth")
    recipe = settings.recipe(name).model_copy(update={"seeds": chosen.seeds})
    pairs = Path(f"data/pairs/{chosen.pairs}.parquet")
    features = Path(f"data/features/{chosen.features}.h5")
    whole = Material(
        recipe,
        read_pairs(pairs),
        read_features(features),
        read_lexicon(Path("data/lexicons/none.parquet")),
        {},
        Path("none"),
        {path.as_posix(): tree_sha256(path) for path in (pairs, features)},
    )
    vectors = settings.word_vectors[chosen.word_vectors]
    score = partial(validation_scores, tested={})
    growing = Growing(name, whole, vectors, settings.selection_seed, score)
    less = runs(chosen, recipe.languages)
    folders = resume_folders(f"growth@{name}", map(growing.identity, less))
    # A GPU serves this process alone: forks cannot go on with it.
    at_once = cores() if best_device(recipe.precision).type == "cpu" else 1
    lines = (number % at_once for number in range(len(less)))
    found = [*on_all_cores(growing, zip(lines, less, folders, strict=True), at_once)]
    history = read_rows(Path(f"metrics/reports/recipes/{name}/training.csv"))
    report = Path(f"metrics/reports/growth/{name}.csv")
    with publish(report) as path:
        pd.concat([*found, of_recipe(history, whole)]).round(2).to_csv(path, index=False)
    for folder in folders:
        keep_until_recorded(folder, [report])


if __name__ == "__main__":
    main()
