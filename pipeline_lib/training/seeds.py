"""The seeds of a recipe: each is a run of its own, trained once and kept while nothing changes.

Small models train side by side: one keeps one core busy, not all of them.
"""

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pandas as pd
import torch

from pipeline_lib.contract.problems import warn
from pipeline_lib.device import SMALL, best_device
from pipeline_lib.forks import on_all_cores
from pipeline_lib.models.joint_space import JointSpace
from pipeline_lib.models.preprocessing import Preprocessing
from pipeline_lib.publishing import publish, tree_sha256
from pipeline_lib.settings.recipes import Recipe
from pipeline_lib.training.doubts import doubts
from pipeline_lib.training.examples import Examples
from pipeline_lib.training.fitting import fit
from pipeline_lib.training.material import Material, of_seed
from pipeline_lib.training.preparation import parameter_counts

MODEL, RECORD = "model", "record"
"""What a seed's work leaves in its folder."""

Score = Callable[[JointSpace, Examples], dict[str, float]]
"""From a model and the validation examples to scores: see fitting.Validate."""


def side_by_side(recipe: Recipe) -> int:
    """Return how many seeds of a recipe are trained at once."""
    small = recipe.batch_size * recipe.text_width < SMALL
    on_cpu = best_device(recipe.precision).type == "cpu"
    return min(len(recipe.seeds), torch.get_num_threads()) if small and on_cpu else 1


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
        preprocessing: Is saved beside each model.
        work: Folder of each seed's unfinished work, named by its identity.
        models: Folder of the models ``seed-N``, of which the output is one, too.
        records: Folder of ``seed-N``: training.csv, model.json and identity.json.

    Raises:
        FloatingPointError: If a loss is NaN or infinite.
    """

    def train_seed(numbered: tuple[int, int]) -> None:
        line, seed = numbered
        _train(f"{label} seed {seed}", line, material, seed, score, preprocessing, work[seed])

    for seed, folder in work.items():
        _take_over(folder, models / f"seed-{seed}", records / f"seed-{seed}")
    missing = [seed for seed in work if not _is_finished(work[seed])]
    for _ in on_all_cores(train_seed, enumerate(missing), side_by_side(material.recipe)):
        pass
    for output, part in ((models, MODEL), (records, RECORD)):
        with publish(output) as home:
            for seed, folder in work.items():
                shutil.copytree(folder / part, home / f"seed-{seed}")


def curves(records: Path, seeds: list[int]) -> pd.DataFrame:
    """Return the histories of all seeds, one below the other."""
    return pd.concat([pd.read_csv(records / f"seed-{seed}/training.csv") for seed in seeds])


def description(records: Path, seeds: list[int]) -> dict[str, object]:
    """Return what the first seed's model is, by which rule each ended, and what is doubtful."""
    found = {str(seed): _read(records / f"seed-{seed}/model.json") for seed in seeds}
    each = {
        key: {seed: one[key] for seed, one in found.items() if key in one}
        for key in ("ended", "doubts")
    }
    return found[str(seeds[0])] | {key: values for key, values in each.items() if values}


def _take_over(work: Path, model: Path, record: Path) -> None:
    """Take what is published into the folder of work, if it is of the same identity."""
    published = record / "identity.json"
    if _is_finished(work) or not published.is_file():
        return
    if _read(published) == _identity(work, model):
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
    vocabulary = material.vocabulary(seed)
    train, val = (material.examples(split, seed, vocabulary) for split in ("train", "val"))
    learner = material.learner(seed, vocabulary, train.features.shape[1]).to_best_device()
    course = fit(
        learner,
        train,
        lambda space: score(space, val),
        seed,
        work,
        f"{label} on {learner.device.type} in {learner.precision}",
        line,
    )
    with publish(work / MODEL) as folder:
        learner.space.save(folder, preprocessing, of_seed(material.recipe, seed).model_dump())
    described = {"parameters": parameter_counts(learner), "precision": learner.precision}
    if found := doubts(course.history, material.recipe, val):
        described["doubts"] = found
        warn(f"{label}: {'; '.join(found)}")
    with publish(work / RECORD) as folder:
        folder.mkdir()
        pd.DataFrame(course.history).assign(seed=seed).to_csv(folder / "training.csv", index=False)
        _write(folder / "model.json", described | {"ended": course.ended})
        _write(folder / "identity.json", _identity(work, work / MODEL))


def _is_finished(work: Path) -> bool:
    return (work / RECORD).is_dir()  # written last


def _identity(work: Path, model: Path) -> dict[str, str]:
    return {"identity": work.name, "model": tree_sha256(model)}


def _read(path: Path) -> dict[str, object]:
    return json.loads(path.read_text(encoding="utf-8"))


def _write(path: Path, values: Mapping[str, object]) -> None:
    path.write_text(json.dumps(values, indent=1) + "\n", encoding="utf-8")
