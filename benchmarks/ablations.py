"""What each part of our own recipe brings: trained without it, and scored on validation photos.

``python -m benchmarks.ablations [PART ...]`` runs in a folder of a study whose inputs of the recipe
are made (``dvc repro pairs@... features@... word_vectors@...``), and prints a table: the sum over
languages of the validation sum of recalls at the end, and the difference that leaving a part out
makes, paired by seed, with its deviation over seeds. One run per core; the schedule goes to its end
in ``--epochs``. Test photos are not read.
"""

import statistics
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path

import click
from torch import nn

from pipeline_lib.compute.forks import cores, on_all_cores
from pipeline_lib.contract.features import read_features
from pipeline_lib.contract.lexicons import read_lexicon
from pipeline_lib.contract.reports import RECALL_SUM
from pipeline_lib.contract.tables import read_pairs
from pipeline_lib.contract.word_vectors import read_word_vectors
from pipeline_lib.evaluation.validation import validation_scores
from pipeline_lib.settings.loading import load_settings
from pipeline_lib.settings.recipes import Recipe
from pipeline_lib.training.examples import join_features
from pipeline_lib.training.fitting import fit
from pipeline_lib.training.learner import Learner
from pipeline_lib.training.material import Material

WHOLE = "the whole recipe"

CHANGED: dict[str, dict[str, object]] = {
    WHOLE: {},
    "latent semantic vectors of words": {"word_vectors": "random"},
    "pieces of unknown words": {"oov": "unk"},
    "photos of text alone": {"text_photos": 0},
    "languages against each other": {"caption_caption_weight": 0.0},
    "dropout of sentences": {"sentence_dropout": 0.0},
    "dropout of photos": {"image_dropout": 0.0},
    "mirror images": {"image_crops": 1},
    "a tuned temperature": {"tune_temperature": False},
    "weight decay": {"weight_decay": 0.0},
}
"""Keys of the recipe without a part."""

SILENCED: dict[str, Callable[[Learner], nn.Linear]] = {
    "the maximum over words": lambda learner: learner.space.sentence_encoder.of_maximum,
    "the network beside the map of photos": lambda learner: learner.space.image_encoder.correction,
}
"""Parts that no key leaves out: the layer through which each is heard."""

PARTS = [part for part in (*CHANGED, *SILENCED) if part != WHOLE]


def material_without(part: str, name: str, epochs: int) -> Material:
    """Return what a recipe learns from without a part."""
    whole = load_settings().recipe(name)
    recipe = whole.model_copy(update={"max_epochs": epochs, **CHANGED.get(part, {})})
    material = material_of(recipe)
    if recipe.image_crops == whole.image_crops:
        return material
    vectors = material.features.vectors
    first = vectors.shape[1] // whole.image_crops
    return replace(material, features=replace(material.features, vectors=vectors[:, :first]))


def material_of(recipe: Recipe) -> Material:
    """Return what a recipe learns from, from the files of the study in which this runs."""
    features, more_features = (
        read_features(Path(f"data/features/{name}.h5"))
        for name in (recipe.features, recipe.more_features)
    )
    return Material(
        recipe,
        read_pairs(Path(f"data/pairs/{recipe.pairs}.parquet")),
        join_features(features, more_features),
        read_lexicon(Path(f"data/lexicons/{recipe.lexicon}.parquet")),
        read_word_vectors(Path(f"data/word_vectors/{recipe.word_vectors}.h5")).by_language,
        Path(f"data/models/{recipe.initial}"),
        {},
    )


def validation_sum(name: str, epochs: int, run: tuple[int, str, int]) -> float:
    """Train one seed without a part; return its last validation score."""
    line, part, seed = run
    material = material_without(part, name, epochs)
    learner, train, val = material.start(seed)
    if part in SILENCED:
        for weights in SILENCED[part](learner).parameters():
            nn.init.zeros_(weights).requires_grad_(False)
    score = partial(validation_scores, examples=val, tested={})
    with tempfile.TemporaryDirectory() as resume:
        course = fit(learner, train, score, seed, Path(resume), f"{part}, seed {seed}", line)
    return course.history[-1][RECALL_SUM]


@click.command(help=__doc__)
@click.option("--recipe", default="polyview", show_default=True)
@click.option("--epochs", default=10, show_default=True)
@click.option("--seeds", default=3, show_default=True)
@click.argument("parts", nargs=-1, type=click.Choice(PARTS))
def main(recipe: str, epochs: int, seeds: int, parts: tuple[str, ...]) -> None:
    """Print a line for each part as soon as it is known."""
    print("| without | sum | difference |\n|---|---:|---:|")
    chosen = [WHOLE, *(parts or PARTS)]
    runs = [(part, seed) for part in chosen for seed in range(1, seeds + 1)]
    numbered = [(number % cores(), *run) for number, run in enumerate(runs)]
    found = on_all_cores(partial(validation_sum, recipe, epochs), numbered)
    whole = [*islice(found, seeds)]
    print(f"| {WHOLE} | {spread(whole)} | |", flush=True)
    for part in chosen[1:]:
        sums = [*islice(found, seeds)]
        print(f"| {part} | {spread(sums)} | {difference(sums, whole)} |", flush=True)


def spread(values: list[float]) -> str:
    """Return the mean and the standard deviation over seeds."""
    deviation = statistics.stdev(values) if len(values) > 1 else 0.0
    return f"{statistics.mean(values):.1f} ± {deviation:.1f}"


def difference(sums: list[float], whole: list[float]) -> str:
    """Return the mean difference between runs of the same seed, and its standard deviation."""
    apart = [a - b for a, b in zip(sums, whole, strict=True)]
    deviation = f" ± {statistics.stdev(apart):.1f}" if len(apart) > 1 else ""
    return f"{statistics.mean(apart):+.1f}{deviation}"


if __name__ == "__main__":
    main()
