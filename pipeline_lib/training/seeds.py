"""The seeds of a recipe: each is a run of its own, trained once and kept while nothing changes.

Small models train side by side: one keeps one core busy, not all of them; some train beside earlier
stages (running/ahead.py). Where the environment asks for Ray, its workers train a seed each, in
this folder, which they share. Where a model is trained by several ranks (ranks.py), the first
decides what is trained, and publishes it; the others follow.
"""

import json
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pandas as pd
import torch

from pipeline_lib.compute.arithmetic.mode import F64
from pipeline_lib.compute.device import SMALL, best_device
from pipeline_lib.compute.forks import on_all_cores
from pipeline_lib.contract.problems import warn
from pipeline_lib.contract.reports import read_report, read_rows
from pipeline_lib.models.joint_space import JointSpace, write_preprocessing
from pipeline_lib.models.preprocessing import Preprocessing
from pipeline_lib.running.publishing import publish, tree_sha256
from pipeline_lib.scheduling.each import open_workers
from pipeline_lib.settings.recipes import Recipe
from pipeline_lib.training import ranks
from pipeline_lib.training.doubts import doubts
from pipeline_lib.training.examples import Examples
from pipeline_lib.training.fitting import fit
from pipeline_lib.training.loop import CHECKPOINT
from pipeline_lib.training.material import Material, of_seed
from pipeline_lib.training.preparation import parameter_counts

MODEL, RECORD = "model", "record"
"""What a seed's work leaves in its folder."""

Score = Callable[[JointSpace, Examples], dict[str, float]]
"""From a model and the validation examples to scores: see fitting.Validate."""


def side_by_side(recipe: Recipe) -> int:
    """Return how many seeds of a recipe are trained at once."""
    if ranks.count() > 1:
        return 1
    on_cpu = best_device(recipe.precision).type == "cpu"
    return min(len(recipe.seeds), torch.get_num_threads()) if _is_small(recipe) and on_cpu else 1


def can_train_ahead(recipe: Recipe) -> bool:
    """Return whether one core is all that a recipe needs, with the bytes of any number of cores."""
    return _is_small(recipe) and recipe.precision == F64


def _is_small(recipe: Recipe) -> bool:
    return recipe.batch_size * recipe.text_width < SMALL


def train_seeds(
    label: str,
    material: Material,
    score: Score,
    preprocessing: Preprocessing,
    work: Mapping[int, Path],
    models: Path,
    records: Path,
) -> None:
    """Publish a model and a record of each seed; train those that are not trained already.

    A seed is trained already if ``models`` and ``records`` hold it under the identity that names
    its folder of work: the same settings, inputs and code.

    Args:
        label: What progress bars name.
        material: What is learnt from.
        score: Selects the best weights.
        preprocessing: Is saved beside each model, also where that is trained already.
        work: Folder of each seed's unfinished work, named by its identity.
        models: Folder to publish, with a model ``seed-N`` of each seed.
        records: Folder of ``seed-N``: training.csv, model.json and identity.json.

    Raises:
        FloatingPointError: If a loss is NaN or infinite.
    """
    new = unpublished(work, models, records)
    for seed, folder in work.items():
        if seed not in new:
            _take_over(folder, models / f"seed-{seed}", records / f"seed-{seed}")
        elif _is_finished(folder):
            print(f"{label} seed {seed}: is trained already", file=sys.stderr)
    train_missing(label, material, score, preprocessing, work)
    for seed, folder in new.items():
        _warn_of_doubts(f"{label} seed {seed}", folder)
    for folder in work.values():
        _describe_inputs(folder, preprocessing)
    for output, part in ((models, MODEL), (records, RECORD)):
        with publish(output) as home:
            for seed, folder in work.items():
                shutil.copytree(folder / part, home / f"seed-{seed}")


def unpublished(work: Mapping[int, Path], models: Path, records: Path) -> dict[int, Path]:
    """Return the folders of work of those seeds that are not published: see :func:`train_seeds`."""
    return {
        seed: folder
        for seed, folder in work.items()
        if not _is_published(folder, models / f"seed-{seed}", records / f"seed-{seed}")
    }


def train_missing(
    label: str,
    material: Material,
    score: Score,
    preprocessing: Preprocessing,
    work: Mapping[int, Path],
) -> None:
    """Train the seeds whose work is not finished, and leave it there: see :func:`train_seeds`."""
    missing = [seed for seed, folder in work.items() if not _is_finished(folder)]
    training = _Training(label, material, score, preprocessing, work)
    most = len(missing) if ranks.count() == 1 else 1
    with open_workers(
        partial(_itself, training), most, unit="seeds", label=label, one_at_a_time=True
    ) as each:
        at_once = side_by_side(material.recipe)
        for _ in (each or partial(on_all_cores, training, at_once=at_once))([*enumerate(missing)]):
            pass
    _next_seed(None)


@dataclass(frozen=True)
class _Training:
    """What trains any seed of a recipe, here or on a worker that shares this folder."""

    label: str
    material: Material
    score: Score
    preprocessing: Preprocessing
    work: Mapping[int, Path]

    def __call__(self, numbered: tuple[int, int]) -> None:
        """Train a seed, whose progress bar stands in a line of its own."""
        line, seed = numbered
        _next_seed(seed)
        _train(
            f"{self.label} seed {seed}",
            line,
            self.material,
            seed,
            self.score,
            self.preprocessing,
            self.work[seed],
        )


def _itself(training: _Training) -> _Training:
    return training


def follow_seeds(material: Material) -> None:
    """Train along, as a rank that is not the first, the seeds that the first one names."""
    while (seed := _next_seed(None)) is not None:
        learner, train, _ = material.start(seed)
        fit(learner.to_best_device(), train, _by_the_first_alone, seed, Path(), "")


def _next_seed(seed: int | None) -> int | None:
    """Return which seed the first rank says is next; None: all are done."""
    return ranks.from_first(lambda: seed)


def _by_the_first_alone(space: JointSpace) -> dict[str, float]:
    raise AssertionError(f"a rank that is not the first validates {space}")


def curves(records: Path, seeds: list[int]) -> pd.DataFrame:
    """Return the histories of all seeds, one below the other."""
    return pd.concat([read_rows(records / f"seed-{seed}/training.csv") for seed in seeds])


def description(records: Path, seeds: list[int]) -> dict[str, object]:
    """Return what the first seed's model is, by which rule each ended, and what is doubtful.

    Its precision is that of each seed where they differ: seeds are kept from other machines.
    """
    found = {str(seed): read_report(records / f"seed-{seed}/model.json") for seed in seeds}
    each = {
        key: {seed: one[key] for seed, one in found.items() if key in one}
        for key in ("ended", "doubts", "precision")
    }
    if len({*each["precision"].values()}) == 1:
        del each["precision"]
    return found[str(seeds[0])] | {key: values for key, values in each.items() if values}


def _is_published(work: Path, model: Path, record: Path) -> bool:
    published = record / "identity.json"
    return published.is_file() and read_report(published) == _identity(work, model)


def _take_over(work: Path, model: Path, record: Path) -> None:
    """Take what is published into the folder of work."""
    if not _is_finished(work):
        for source, part in ((model, MODEL), (record, RECORD)):
            with publish(work / part) as temporary:
                shutil.copytree(source, temporary)


def _train(
    label: str,
    line: int,
    material: Material,
    seed: int,
    score: Score,
    preprocessing: Preprocessing,
    work: Path,
) -> None:
    learner, train, val = material.start(seed)
    learner = learner.to_best_device()
    course = fit(
        learner,
        train,
        lambda space: score(space, val),
        seed,
        work,
        f"{label} on {learner.device.type} in {learner.precision}{_ranks()}",
        line,
    )
    with publish(work / MODEL) as folder:
        learner.space.save(folder, preprocessing, of_seed(material.recipe, seed).model_dump())
    described = {"parameters": parameter_counts(learner), "precision": learner.precision}
    if found := doubts(course.history, material.recipe, train, val):
        described["doubts"] = found
    with publish(work / RECORD) as folder:
        folder.mkdir()
        pd.DataFrame(course.history).assign(seed=seed).to_csv(folder / "training.csv", index=False)
        _write(folder / "model.json", described | {"ended": course.ended})
    (work / CHECKPOINT).unlink(missing_ok=True)  # it is larger than the model, and seeds are many


def _describe_inputs(work: Path, preprocessing: Preprocessing) -> None:
    """Say beside a model how its inputs are made now, maybe long after its training; record it."""
    write_preprocessing(work / MODEL, preprocessing)
    _write(work / RECORD / "identity.json", _identity(work, work / MODEL))


def _warn_of_doubts(label: str, work: Path) -> None:
    """Say what is doubtful, on the terminal of the stage, wherever the seed was trained."""
    if found := read_report(work / RECORD / "model.json").get("doubts"):
        warn(f"{label}: {'; '.join(found)}")


def _ranks() -> str:
    return f", {ranks.count()} ranks" if ranks.count() > 1 else ""


def _is_finished(work: Path) -> bool:
    return (work / RECORD).is_dir()  # written last


def _identity(work: Path, model: Path) -> dict[str, str]:
    return {"identity": work.name, "model": tree_sha256(model)}


def _write(path: Path, values: Mapping[str, object]) -> None:
    path.write_text(json.dumps(values, indent=1) + "\n", encoding="utf-8")
