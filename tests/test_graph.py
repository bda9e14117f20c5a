"""The graph is what the code is: imports go one way, and dvc.yaml names what stages import."""

import ast
import importlib.util
from pathlib import Path

import pytest
from ruamel.yaml import YAML

ROOT = Path(__file__).resolve().parent.parent
ROOMS = [
    {"settings", "contract", "publishing"},
    {"corpora", "images", "text"},
    {"models"},
    {"training"},
    {"evaluation"},
    {"reporting"},
]
PURE = ["models/similarity.py", "models/losses.py", "evaluation/ranking.py"]
PURE += ["evaluation/significance.py"]
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


LIBRARY = [
    path
    for path in (ROOT / "pipeline_lib").rglob("*.py")
    if path != ROOT / "pipeline_lib/__init__.py"
]


@pytest.mark.parametrize("path", LIBRARY, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_go_one_way(path):
    for other in imported_modules(path):
        assert ROOT / "pipeline_lib" in other.parents, f"{path} imports a stage: {other}"
        assert room_number(other) <= room_number(path), f"{path} imports {other}"


@pytest.mark.parametrize("name", PURE)
def test_pure_maths_imports_no_other_room(name):
    assert imported_modules(ROOT / "pipeline_lib" / name) == set()


@pytest.mark.parametrize("name", STAGES)
def test_code_deps_of_a_stage_are_the_modules_it_imports(name):
    block = STAGES[name].get("do", STAGES[name])
    listed = {dep for dep in block["deps"] if dep.startswith("${root}")}
    expected = {
        f"${{root}}/{path.relative_to(ROOT)}" for path in closure(ROOT / "stages" / f"{name}.py")
    }
    assert listed == expected, f"missing {expected - listed}, too many {listed - expected}"


def test_each_stage_has_its_file_and_each_file_its_stage():
    files = {path.stem for path in (ROOT / "stages").glob("*.py")} - {"__init__"}
    assert files == set(STAGES)


@pytest.mark.parametrize("name", STAGES)
def test_commands_have_one_form(name):
    block = STAGES[name].get("do", STAGES[name])
    argument = " ${key}" if "foreach" in STAGES[name] else ""
    assert block["cmd"] == f"python -m stages.{name}{argument}"
    assert importlib.util.find_spec(f"stages.{name}")


@pytest.mark.parametrize(
    "name", ["params.yaml", *(f"studies/{s}/params.yaml" for s in ("flickr8k", "multi30k", "coco"))]
)
def test_params_have_no_anchor_and_no_absolute_path(name):
    # `dvc exp run -S` on a merged mapping rewrites its anchor, so the values of other recipes.
    text = (ROOT / name).read_text(encoding="utf-8")
    events = YAML().parse(text)
    assert not any(getattr(event, "anchor", None) for event in events)
    assert not any(value.startswith("/") for value in _strings(YAML(typ="safe").load(text))), (
        "absolute path"
    )


def _strings(item):
    if isinstance(item, dict):
        item = item.values()
    elif isinstance(item, str):
        return [item]
    elif not isinstance(item, list):
        return []
    return [text for part in item for text in _strings(part)]


@pytest.mark.parametrize("study", ["flickr8k", "multi30k", "coco"])
def test_every_study_has_the_one_graph(study):
    copy = ROOT / "studies" / study / "dvc.yaml"
    # DVC reads a link in a git revision as its target's name, so that diffs would fail.
    assert not copy.is_symlink()
    assert copy.read_bytes() == (ROOT / "dvc.yaml").read_bytes(), f"cp dvc.yaml {copy}"
