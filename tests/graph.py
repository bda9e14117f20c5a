"""Which code each stage runs, for dvc.yaml to name: ``python tests/graph.py`` writes it."""

import ast
import re
import shutil
from pathlib import Path

from ruamel.yaml import YAML

ROOT = Path(__file__).resolve().parent.parent
ROOMS = [
    {"settings", "contract", "publishing", "device"},
    {"corpora", "images", "text"},
    {"models"},
    {"training"},
    {"synthesis", "evaluation"},
    {"reporting"},
]
SETTINGS = ROOT / "pipeline_lib" / "settings"
SECTIONS = {
    "corpora": ["worlds", "datasets", "pairs", "selection_seed"],
    "evaluations": ["evaluations", "pools"],
    "images": ["extractors"],
    "pseudopairs": ["pseudopairs"],
    "recipes": ["papers", "departures", "recipes"],
    "rerankings": ["rerankings"],
    "synthesis": ["translators", "translations"],
    "translated_queries": ["translated_queries"],
    "text": ["tokenizers", "word_vectors", "lexicons"],
}
"""Sections of params.yaml that each module of settings describes."""
STAGES = YAML(typ="safe").load((ROOT / "dvc.yaml").read_text(encoding="utf-8"))["stages"]


def imported_modules(path):
    """Return the project files that a file imports, wherever in the file the import stands."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        else:
            continue
        found |= {file for name in names for file in project_files(name)}
    return found


def project_files(module):
    """Return the file of a module and the ``__init__`` of its packages, if they are ours."""
    if module.split(".")[0] not in ("pipeline_lib", "stages"):
        return
    base = ROOT.joinpath(*module.split("."))
    if base.parent == ROOT:  # the package itself, which holds only its docstring
        return
    if base.with_suffix(".py").is_file():
        yield base.with_suffix(".py")
    elif (base / "__init__.py").is_file():
        yield base / "__init__.py"


def closure(path):
    seen, todo = set(), [path]
    while todo:
        file = todo.pop()
        if file not in seen:
            seen.add(file)
            todo.extend(imported_modules(file))
    return {file for file in seen if file.name != "__init__.py"}


def room_number(path):
    room = path.relative_to(ROOT / "pipeline_lib").parts[0].removesuffix(".py")
    numbers = [number for number, rooms in enumerate(ROOMS) if room in rooms]
    assert numbers, f"{path} is in no room: add it to ROOMS and to pipeline_lib/__init__.py"
    return numbers[0]


def code_of(stage):
    """Return the files whose change can change a stage's output.

    All of params.yaml is read and checked whenever a stage starts, but a section that the stage
    has no ``params`` of cannot change what it writes, and of the others DVC compares the values:
    the modules of the former and the reader itself are left out.
    """
    block = STAGES[stage].get("do", STAGES[stage])
    sections = {name.split(".")[0] for name in block.get("params", [])}
    unused = {
        SETTINGS / f"{module}.py" for module, names in SECTIONS.items() if not sections & {*names}
    }
    return closure(ROOT / "stages" / f"{stage}.py") - unused - {SETTINGS / "study.py"}


def write_graph():
    """Put every stage's code into dvc.yaml, after its ``stages/NAME.py``; copy to the studies."""
    lines = []
    for line in (ROOT / "dvc.yaml").read_text(encoding="utf-8").splitlines():
        found = re.match(r"(\s+- \$\{root\}/)(.*)", line)
        stage = re.match(r".*/stages/(\w+)\.py$", line)
        if stage:
            names = {str(path.relative_to(ROOT)) for path in code_of(stage[1])}
            others = sorted(names - {found[2]})
            lines += [line, *(found[1] + name for name in others)]
        elif not found:
            lines.append(line)
    (ROOT / "dvc.yaml").write_text("\n".join(lines) + "\n", encoding="utf-8")
    for study in ROOT.glob("studies/*/dvc.yaml"):
        shutil.copyfile(ROOT / "dvc.yaml", study)


if __name__ == "__main__":
    write_graph()
