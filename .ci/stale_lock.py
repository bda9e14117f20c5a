"""Which stages a committed dvc.lock has of other code or parameters: ``python .ci/stale_lock.py``.

Compares dvc.lock of HEAD with the one that ``dvc repro`` has just written. What stages read and
write may have other bytes on another machine; their code and parameters are the same on all.
"""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from ruamel.yaml import YAML

_RESOLVED = "data/resolved/"
"""What stands for a stage's code and the settings that it shares with others."""


def stale(committed: Mapping[str, dict], written: Mapping[str, dict]) -> list[str]:
    """Return the stages that one has and the other has not, or has of other code or parameters."""
    names = sorted(committed.keys() | written.keys())
    return [name for name in names if _given(committed, name) != _given(written, name)]


def _given(stages: Mapping[str, dict], name: str) -> object:
    if name not in stages:
        return None
    deps = stages[name].get("deps", [])
    code = {dep["path"]: dep["md5"] for dep in deps if dep["path"].startswith(_RESOLVED)}
    return stages[name]["cmd"], stages[name].get("params"), code


def main() -> None:
    """End with 1 and the stages' names where there are any."""
    show = ["git", "show", "HEAD:dvc.lock"]
    head = subprocess.run(show, capture_output=True, text=True, check=True).stdout
    read = YAML(typ="safe").load
    found = stale(read(head)["stages"], read(Path("dvc.lock").read_text("utf-8"))["stages"])
    if found:
        sys.exit(f"dvc.lock as committed is of other code or parameters: {', '.join(found)}")


if __name__ == "__main__":
    main()
