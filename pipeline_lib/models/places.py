"""Where a trained model lies: in data/models/RECIPE/seed-N of its study, or somewhere else."""

import re
from pathlib import Path


def study_folder(model: Path) -> Path:
    """Return the study of a model's folder (data/models/RECIPE/seed-N); else the folder itself."""
    place = model.resolve()
    return place.parents[3] if len(place.parents) > 3 else place


def recipe_of(model: Path) -> str:
    """Return the name of the recipe of a model in its study."""
    return model.resolve().parent.name


def seed_of(model: Path) -> int | None:
    """Return the seed of a model in a folder ``seed-N``; None if it lies in another."""
    found = re.fullmatch(r"seed-(\d+)", model.resolve().name)
    return int(found[1]) if found else None
