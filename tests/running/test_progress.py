"""Under DVC each stage says how far the run is, and one that fails leaves the last metrics."""

import errno
import shutil
from pathlib import Path

import pytest
from dvc_project import project_of_stages

from pipeline_lib.running import progress
from pipeline_lib.running.progress import Following, due_stages, progress_line

STAGE = """
import sys, time
from pathlib import Path
name = sys.argv[1]
asked = Path("asked.txt").read_text()
time.sleep(0.3)
if asked == name:
    sys.exit(3)
Path(f"{name}.json").write_text(asked)
Path(f"{name}.scores").mkdir()
Path(f"{name}.scores/all.csv").write_text(asked)
model = Path(f"{name}.model")
if asked == "folder":
    model.mkdir()
    model = model / "weights"
model.write_text(asked)
"""
GRAPH = """
stages:
  score:
    foreach: [a, b]
    do:
      cmd: python -m stages.score ${item}
      deps: [asked.txt]
      outs: [{"${item}.json": {cache: false}}, {"${item}.scores": {cache: false}}, "${item}.model"]
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Return a function that runs DVC on two stages; it returns the exit code and our lines."""
    monkeypatch.chdir(tmp_path)
    run_dvc = project_of_stages(tmp_path, GRAPH, score=STAGE)

    def repro(*options, asked="all"):
        (tmp_path / "asked.txt").write_text(asked)
        run = run_dvc(*options)
        lines = run.stderr.splitlines()
        return run.returncode, [line for line in lines if line.startswith("stage ")]

    return repro


def test_each_stage_says_where_it_stands_and_what_is_left_by_the_last_run(project):
    assert project() == (0, ["stage 1 of 2", "stage 2 of 2"])
    code, lines = project("--force")
    assert code == 0
    assert [line.split(",")[0] for line in lines] == ["stage 1 of 2", "stage 2 of 2"]
    first, second = (int(line.split()[6]) for line in lines)
    assert first >= second >= 0
    assert all(line.endswith(" s left") for line in lines)
    assert project("--single-item", "score@b", asked="b alone")[1][0].startswith("stage 1 of 1,")
    assert project("score@a", asked="a alone")[1][0].startswith("stage 1 of 1,")


def test_a_stage_that_fails_leaves_its_last_metrics_and_runs_no_more_than_it_must(
    project, tmp_path
):
    assert project()[0] == 0
    code, lines = project(asked="b")
    assert code != 0
    assert len(lines) == 2
    assert (tmp_path / "a.json").read_text() == "b", "this one did not fail"
    assert (tmp_path / "b.json").read_text() == "all"
    assert (tmp_path / "b.scores/all.csv").read_text() == "all"
    assert (tmp_path / "b.model").read_text() == "all"
    code, lines = project(asked="all")
    assert (code, [line.partition(",")[0] for line in lines]) == (0, ["stage 1 of 2"])
    assert (tmp_path / "b.json").read_text() == (tmp_path / "a.json").read_text() == "all"


@pytest.mark.parametrize("kept", ["a.json", "a.scores"])
def test_on_a_full_disk_half_of_what_was_kept_takes_no_outputs_place(
    project, tmp_path, monkeypatch, kept
):
    def half(source, target):
        Path(target).write_bytes(Path(source).read_bytes()[:1])
        raise OSError(errno.ENOSPC, "No space left on device")

    assert project()[0] == 0
    progress._remove(tmp_path / kept)
    monkeypatch.setattr(progress.shutil, "copy2", half)
    stage = Following.__new__(Following)
    stage.outputs = [kept]
    stage.end(1, 0.0)
    assert not [*tmp_path.glob(f"{kept}*")]
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    stage.end(1, 0.0)
    found = tmp_path / kept
    assert (found / "all.csv" if found.is_dir() else found).read_text() == "all"


def test_of_a_folder_that_cannot_be_linked_to_nothing_is_kept(tmp_path, monkeypatch):
    """Its second file lies on another disk; the half of it was put back as the whole."""

    def link(source, target):
        if Path(source).name == "b":
            raise OSError(errno.EXDEV, "Invalid cross-device link")
        shutil.copy2(source, target)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(progress.os, "link", link)
    folder = Path("out")
    folder.mkdir()
    for name in "ab":
        (folder / name).write_text(name)
    with pytest.raises(OSError, match="cross-device"):
        progress._keep(["out"])
    assert not [path for path in progress._KEPT.rglob("*") if path.name in ("out", "a", "b")]


@pytest.mark.parametrize(("before", "after"), [("file", "folder"), ("folder", "file")])
def test_an_output_that_was_a_folder_before_or_a_file_is_put_back_as_it_was_last(
    project, tmp_path, before, after
):
    assert project(asked=before)[0] == project(asked=after)[0] == 0
    assert project(asked="a")[0] != 0
    model = tmp_path / "a.model"
    assert (model / "weights" if after == "folder" else model).read_text() == after


def test_a_stage_is_due_when_dvc_would_run_it(project, tmp_path):
    (tmp_path / "asked.txt").write_text("all")
    both = ["score@a", "score@b"]
    assert due_stages(both) == both, "they never ran"
    project("score@a")
    assert due_stages(both) == ["score@b"]
    (tmp_path / "asked.txt").write_text("other")
    assert due_stages(both) == both, "it reads something else"
    (tmp_path / "asked.txt").write_text("all")
    assert due_stages(["score@a"]) == []
    (tmp_path / "a.json").unlink()
    assert due_stages(["score@a"]) == ["score@a"], "an output is gone"
    assert due_stages(["score@another"]) == []


def test_metrics_of_a_fresh_clone_are_kept_too(project, tmp_path):
    project()
    shutil.rmtree(tmp_path / ".dvc/tmp/polyview")
    assert project(asked="b")[0] != 0
    assert (tmp_path / "b.json").read_text() == "all"


def test_what_no_stage_writes_any_more_is_kept_no_longer(project, tmp_path):
    project()
    kept = tmp_path / ".dvc/tmp/polyview/kept"
    assert {path.name for path in kept.iterdir()} >= {"a.model", "b.model", "b.scores"}
    graph = tmp_path / "dvc.yaml"
    graph.write_text(graph.read_text().replace("[a, b]", "[a]"))
    assert project(asked="a alone")[0] == 0
    assert {path.name for path in kept.iterdir()} == {"a.json", "a.model", "a.scores"}
    assert (kept / "a.json").read_text() == "a alone"


@pytest.mark.parametrize(
    ("seconds", "line"),
    [
        ({}, "stage 2 of 3\n"),
        ({"one": 500, "two": 70.4, "three": 20}, "stage 2 of 3, at most 90 s left\n"),
        ({"two": 300, "three": 21}, "stage 2 of 3, at most 5 min left\n"),
        ({"three": 7200}, "stage 2 of 3, at most 2.0 h left, and 1 that never ran here\n"),
    ],
)
def test_what_is_left_is_what_the_stage_and_all_after_it_took(seconds, line):
    plan = {"one": [], "two": [], "three": []}
    assert progress_line("two", plan, seconds) == line
    assert progress_line("another", plan, seconds) == ""
