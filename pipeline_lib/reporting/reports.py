"""Reports of stages that are no recipe's: translators, re-rankings, pseudopairs, queries."""

import json
from collections.abc import Mapping
from pathlib import Path

Reports = Mapping[str, dict]
"""Report by name, as the stage wrote it."""


def read_reports(folder: Path) -> dict[str, dict]:
    """Read the reports in a folder, by name; none if there is no such folder."""
    return {
        path.stem: json.loads(path.read_text(encoding="utf-8"))
        for path in sorted(folder.glob("*.json"))
    }
