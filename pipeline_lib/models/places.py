"""Where a trained model lies: in data/models/RECIPE/seed-N of its study, or somewhere else."""

import re
from pathlib import Path

from pipeline_lib.contract.problems import ContractError


def study_folder(model: Path) -> Path:
    """Return the study of a model's folder (data/models/RECIPE/seed-N); else the folder itself."""
    place = model.resolve()
    return place.parents[3] if len(place.parents) > 3 else place


def check_outside(output: Path, model: Path) -> None:
    """Raise where a file would lie among the models that stages of a study have made.

    DVC takes what lies there for another output of the stage: it deletes it and trains again.

    Raises:
        ContractError: If it would.
    """
    recipe = model.resolve().parent
    made = (study_folder(model) / "dvc.yaml").is_file()
    if made and recipe in output.resolve().parents:
        raise ContractError(
            f"{output}: expected a place outside {recipe.parent.name}/{recipe.name}, which a stage "
            "makes: DVC would delete what is added, and train again. Name another folder"
        )


def recipe_of(model: Path) -> str:
    """Return the name of the recipe of a model in its study."""
    return model.resolve().parent.name


def seed_of(model: Path) -> int | None:
    """Return the seed of a model in a folder ``seed-N``; None if it lies in another."""
    found = re.fullmatch(r"seed-(\d+)", model.resolve().name)
    return int(found[1]) if found else None
