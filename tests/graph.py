"""The modules that the stages run, for dvc.yaml to name: ``python tests/graph.py`` writes it."""

import re
import shutil
from pathlib import Path

from ruamel.yaml import YAML

from pipeline_lib.fingerprints import imported_closure

ROOT = Path(__file__).resolve().parent.parent
ROOMS = [
    {
        "settings",
        "contract",
        "publishing",
        "device",
        "arithmetic",
        "exact",
        "forks",
        "fingerprints",
        "warm",
    },
    {"corpora", "images", "text"},
    {"models"},
    {"training"},
    {"synthesis", "evaluation"},
    {"reporting"},
    {"cli"},
]
STAGES = YAML(typ="safe").load((ROOT / "dvc.yaml").read_text(encoding="utf-8"))["stages"]


def room_number(path):
    room = path.relative_to(ROOT / "pipeline_lib").parts[0].removesuffix(".py")
    numbers = [number for number, rooms in enumerate(ROOMS) if room in rooms]
    assert numbers, f"{path} is in no room: add it to ROOMS and to pipeline_lib/__init__.py"
    return numbers[0]


def code_of(stage):
    """Return the files that a stage runs."""
    return imported_closure([ROOT / "stages" / f"{stage}.py"], ROOT)


def write_graph():
    """List in dvc.yaml what ``code`` reads; copy it to the studies."""
    modules = {path.relative_to(ROOT) for stage in STAGES for path in code_of(stage)}
    listed = "".join(f"      - ${{root}}/{path}\n" for path in sorted(modules))
    text = (ROOT / "dvc.yaml").read_text(encoding="utf-8")
    text = re.sub(
        r"(\n  code:\n    cmd: .*\n    deps:\n)(?:      - .*\n)*",
        lambda found: found[1] + listed,
        text,
    )
    (ROOT / "dvc.yaml").write_text(text, encoding="utf-8")
    for study in ROOT.glob("studies/*/dvc.yaml"):
        shutil.copyfile(ROOT / "dvc.yaml", study)


if __name__ == "__main__":
    write_graph()
