"""The graph is what the code is: imports go one way, and stages depend on what they import."""

import importlib.util
import re

import pytest
from graph import ROOT, STAGES, read_yaml, room_number
from ruamel.yaml import YAML

from pipeline_lib.running.fingerprints import imported_files

PURE = ["models/similarity.py", "models/losses.py", "evaluation/retrieval/ranking.py"]
PURE += ["evaluation/significance.py", "compute/exact.py"]
READ_BY_RESOLVE = ("papers.yaml", "pipeline_lib", "stages")
LIBRARY = [
    path
    for path in sorted((ROOT / "pipeline_lib").rglob("*.py"))
    if path != ROOT / "pipeline_lib/__init__.py"
]


@pytest.mark.parametrize("path", LIBRARY, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_go_one_way(path):
    for other in imported_files(path, ROOT):
        assert ROOT / "pipeline_lib" in other.parents, f"{path} imports a stage: {other}"
        assert room_number(other) <= room_number(path), f"{path} imports {other}"


@pytest.mark.parametrize("name", PURE)
def test_pure_maths_imports_no_other_room(name):
    # Arithmetic that imports numpy alone.
    allowed = {ROOT / "pipeline_lib/compute/exact.py"}
    assert imported_files(ROOT / "pipeline_lib" / name, ROOT) <= allowed


@pytest.mark.parametrize("name", sorted(STAGES.keys() - {"resolve"}))
def test_a_stage_depends_on_its_own_code(name):
    deps = STAGES[name].get("do", STAGES[name])["deps"]
    ours = [dep for dep in deps if dep.startswith("data/resolved/code")]
    assert ours == [f"data/resolved/code/{name}.txt"]


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
    links = (copy.parent / "checkout").iterdir()
    assert {link.resolve() for link in links} == {ROOT / name for name in READ_BY_RESOLVE}
    assert copy.read_bytes() == (ROOT / "dvc.yaml").read_bytes(), f"cp dvc.yaml {copy}"


@pytest.mark.parametrize("study", [".", "studies/flickr8k", "studies/multi30k"])
def test_locks_know_no_stage_of_the_past(study):
    params = read_yaml(ROOT / study / "params.yaml")
    current = {name for name, block in STAGES.items() if "foreach" not in block}
    for name, block in STAGES.items():
        if "foreach" in block:
            current |= {f"{name}@{key}" for key in params[block["foreach"][2:-1]]}
    locked = read_yaml(ROOT / study / "dvc.lock")["stages"]
    # DVC leaves their entries, and reads and writes them all with every stage that it runs.
    assert set(locked) <= current


@pytest.mark.parametrize("study", [".", "studies/flickr8k", "studies/multi30k"])
def test_locks_end_with_what_dvc_refuses_them_without(study):
    # Cut off by a kill, a lock that begins with it could pass for one with fewer stages.
    lines = (ROOT / study / "dvc.lock").read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if line.startswith("schema")] == lines[-1:]


@pytest.mark.parametrize("study", ["flickr8k", "multi30k", "coco"])
def test_studies_are_dvc_projects_that_share_the_cache(study):
    folder = ROOT / "studies" / study / ".dvc"
    found = re.search(r"dir = (\S+)", (folder / "config").read_text(encoding="utf-8"))
    assert (folder / found[1]).resolve() == ROOT / ".dvc/cache"
