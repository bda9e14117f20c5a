"""How long a recipe trains until it has the validation score at which another one ends.

``python -m benchmarks.time_to_score [RECIPE] [BASELINE]`` runs in a folder of a study whose inputs
of both are made, features included. How many updates each needs is read from the committed
metrics/reports/recipes/NAME/training.csv: the baseline until its best validation score, the recipe
until its first one that is as high as the mean of the baseline's best, by the sum of recalls of the
languages that the baseline reads; both are means over seeds. A recipe of few updates has few
validations: ``--every`` trains it anew until its first one of so many updates, which changes no
weight. Seconds per update are measured here, on the study's own captions and photos: the two take
turns, and the median round counts. Neither validation nor what makes the inputs, such as word
vectors, is timed. The ratio is that of the seconds.
"""

import contextlib
import math
import statistics
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import click
import pandas as pd

from benchmarks.ablations import material_of
from benchmarks.training import Training
from pipeline_lib.compute.arithmetic.mode import arithmetic
from pipeline_lib.compute.device import cores_for
from pipeline_lib.contract.reports import RECALL_SUM, read_rows
from pipeline_lib.evaluation.validation import validation_scores
from pipeline_lib.models.joint_space import JointSpace
from pipeline_lib.settings.loading import load_settings
from pipeline_lib.training.fitting import fit
from pipeline_lib.training.material import Material


@click.command(help=__doc__)
@click.argument("recipe", default="polyview")
@click.argument("baseline", default="kadar_en_de_c2c")
@click.option(
    "--seconds",
    type=click.FloatRange(min=0.01),
    default=60.0,
    help="Of each of the two, per round.",
    show_default=True,
)
@click.option("--rounds", default=3, help="Rounds; the two take turns.", show_default=True)
@click.option(
    "--every",
    type=click.IntRange(min=1),
    help="Train the recipe anew and validate it every so many updates.",
)
def main(recipe: str, baseline: str, seconds: float, rounds: int, every: int | None) -> None:
    """Print a table and the ratio."""
    languages = load_settings().recipe(baseline).languages
    curve = sums(baseline, languages)
    best = curve.groupby("seed")["sum"].max()
    updates = {baseline: updates_until(curve, best)}
    if every:
        updates[recipe] = updates_anew(recipe, languages, best.mean(), every)
    else:
        updates[recipe] = updates_until(sums(recipe, languages), best.mean())
    works = {name: rounds_of(name, seconds) for name in updates}
    timed = {name: [] for name in works}
    for _ in range(rounds):
        for name, work in works.items():
            timed[name].append(next(work))
    medians = {name: statistics.median(each) for name, each in timed.items()}
    total = {name: updates[name] * median for name, median in medians.items()}
    print(f"validation sum of {baseline}: {best.mean():.1f} ({len(best)} seeds)")
    print(f"{'recipe':<28} updates   s/update   seconds")
    for name, median in medians.items():
        print(f"{name:<28} {updates[name]:7.0f} {median:10.3f} {total[name]:9.0f}")
    print(f"training time ratio={total[baseline] / total[recipe]:.1f}")


def sums(name: str, languages: list[str]) -> pd.DataFrame:
    """Return seed, update and the validation sum over some languages, as committed."""
    curve = read_rows(Path(f"metrics/reports/recipes/{name}/training.csv"))
    return curve[["seed", "update"]].assign(sum=curve[of_languages(curve, languages)].sum(axis=1))


def of_languages(scores: Iterable[str], languages: list[str]) -> list[str]:
    """Return which validation scores are sums of recalls in some languages."""
    return [
        name for name in scores
        if name.startswith(f"{RECALL_SUM}_") and name.rsplit("_", 1)[1] in languages
    ]  # fmt: skip


def updates_until(curve: pd.DataFrame, score: pd.Series | float) -> float:
    """Return the mean over seeds of the updates at the first validation with a score as high.

    It is infinite if a seed has none.

    Args:
        curve: See :func:`sums`.
        score: One for all seeds, or one for each.
    """
    wanted = curve["seed"].map(score) if isinstance(score, pd.Series) else score
    reached = curve[curve["sum"] >= wanted].groupby("seed")["update"].min().astype(float)
    return reached.reindex(curve["seed"].unique(), fill_value=float("inf")).mean()


def updates_anew(name: str, languages: list[str], score: float, every: int) -> float:
    """Train each seed of a recipe until the first validation with a score as high.

    Returns:
        The mean over seeds of the updates until then.
    """
    recipe = load_settings().recipe(name).model_copy(update={"validate_every_updates": every})
    material = material_of(recipe)
    found = [_updates_of(material, seed, languages, score) for seed in recipe.seeds]
    print(f"{name} is as high after {', '.join(map(str, found))} updates")
    return statistics.mean(found)


class _Reached(Exception):
    pass


def _updates_of(material: Material, seed: int, languages: list[str], score: float) -> int:
    learner, train, val = material.start(seed)
    updates = 0

    def validate(model: JointSpace) -> dict[str, float]:
        nonlocal updates
        updates += material.recipe.validate_every_updates
        scores = validation_scores(model, val, {})
        if sum(scores[each] for each in of_languages(scores, languages)) >= score:
            raise _Reached
        return scores

    with tempfile.TemporaryDirectory() as resume, contextlib.suppress(_Reached):
        fit(learner.to_best_device(), train, validate, seed, Path(resume), f"seed {seed}")
        return math.inf
    return updates


def rounds_of(name: str, seconds: float) -> Iterator[float]:
    """Train a recipe's first seed, warmed up, and yield the seconds per update of each round."""
    material = material_of(load_settings().recipe(name))
    learner, examples, _ = material.start(material.recipe.seeds[0])
    learner = learner.to_best_device()
    recipe = learner.recipe
    update = Training(learner, examples.to(learner.device, learner.dtype))
    while True:
        with arithmetic(recipe.precision), cores_for(recipe.batch_size * recipe.text_width):
            update()
            start, done = time.perf_counter(), 0
            while time.perf_counter() - start < seconds:
                update()
                done += 1
            yield (time.perf_counter() - start) / done


if __name__ == "__main__":
    main()
