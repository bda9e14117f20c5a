"""What stages leave in metrics/: files of recipes, and reports of translators and their kin."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

Reports = Mapping[str, dict]
"""Report by name, as the stage wrote it."""


def read_reports(folder: Path) -> dict[str, dict]:
    """Read the reports in a folder, by name; none if there is no such folder."""
    return {
        path.stem: json.loads(path.read_text(encoding="utf-8"))
        for path in sorted(folder.glob("*.json"))
    }


def recipe_files(recipes: Iterable[str], file: str) -> dict[str, Path]:
    """Return the path of one of its metrics for each recipe that has it."""
    paths = {name: Path(f"metrics/recipes/{name}/{file}") for name in recipes}
    return {name: path for name, path in paths.items() if path.is_file()}
