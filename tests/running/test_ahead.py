"""Beside the stages of a run, what has yet to come is trained, and gives way to its own stage."""

import json
import os
import select
import subprocess
import time
from contextlib import contextmanager
from types import SimpleNamespace

import joblib
import pytest
from dvc_project import project_of_stages
from shell import until

from pipeline_lib.running.ahead import Ahead
from pipeline_lib.running.progress import ready_stages
from pipeline_lib.running.warm import _reap

PLAN = {
    "resolve": ["data/resolved"],
    "pairs@a": ["data/pairs/a.parquet"],
    "train@a": ["data/models/a"],
    "pseudopairs@b": ["data/pairs/b.parquet"],
    "train@b": ["data/models/b"],
    "train@all": ["data/models/all"],
    "train@d": ["data/models/d"],
}
NEEDS = {
    "resolve": ["params.yaml"],
    "pairs@a": ["data/captions", "data/resolved/code/pairs.txt"],
    "train@a": ["data/pairs/a.parquet"],
    "pseudopairs@b": ["data/models/a"],
    "train@b": ["data/pairs/b.parquet"],
    "train@all": ["data/pairs"],
    "train@d": ["data/pairs/a.parquet", "data/resolved/recipes/d.json"],
}


@pytest.mark.parametrize(
    ("stage", "ready"),
    [
        ("resolve", []),
        ("pairs@a", []),
        ("train@a", ["train@d"]),
        ("pseudopairs@b", ["train@d"]),
        ("train@b", ["train@all", "train@d"]),
        ("train@d", []),
        ("another", []),
    ],
)
def test_a_stage_is_ready_when_nothing_that_it_reads_is_yet_to_be_written(stage, ready):
    assert ready_stages(stage, PLAN, NEEDS) == ready


def resolve(folder, **precisions):
    """Write what the stage resolve says of some recipes."""
    (folder / "data/resolved/recipes").mkdir(parents=True)
    for name, precision in precisions.items():
        text = json.dumps({"precision": precision})
        (folder / f"data/resolved/recipes/{name}.json").write_text(text)


TWO_CORES = pytest.mark.skipif(joblib.cpu_count() == 1, reason="on one core nothing works ahead")


@pytest.fixture
def ahead(tmp_path, monkeypatch):
    """Return an Ahead whose trainings note what they were asked, and end when a file says so."""

    def train(request):
        [name, *_] = request["arguments"]
        known = {"process": os.getpid(), "nice": os.nice(0), **request}
        (tmp_path / "new").write_text(json.dumps(known))
        (tmp_path / "new").rename(tmp_path / name)
        until(lambda: (tmp_path / f"end {name}").exists())
        return 0

    monkeypatch.chdir(tmp_path)
    resolve(tmp_path, a="f64", b="f64", c="f64", skipped="f64")

    def due(stages):
        with open(tmp_path / "asked", "a") as asked:
            print(*stages, file=asked)
        return [stage for stage in stages if stage != "train@skipped"]

    with run_of_dvc() as (dvc, alive):
        made = Ahead(train, due, [alive])
        yield made
        dvc.kill()
        if made.watched:
            # Sooner than a training's own patience (until): it ends with DVC.
            assert tells(made, 200)
            made.make_way(request(made._at_work))


def tells(ahead, seconds=600):
    """Return whether something of what it watches can be read within some seconds."""
    return bool(select.select(ahead.watched, [], [], seconds)[0])


@contextmanager
def run_of_dvc():
    """Yield a process, and the descriptor that can be read once it has ended."""
    with subprocess.Popen(["sleep", "6000"]) as process:
        alive = os.pidfd_open(process.pid)
        try:
            yield process, alive
        finally:  # or a test that fails would wait for the process
            process.kill()
            os.close(alive)


def test_the_server_leaves_the_end_of_a_training_to_who_counts_its_seconds():
    """Either may end first, and both lie there when the server looks."""
    training, stage = os.posix_spawnp("true", ["true"], {}), os.posix_spawnp("true", ["true"], {})
    for process in (training, stage):
        os.waitid(os.P_PID, process, os.WEXITED | os.WNOWAIT)
    _reap(SimpleNamespace(process=training))
    assert os.wait4(training, 0)[0] == training
    _reap(SimpleNamespace(process=training))
    with pytest.raises(ChildProcessError):
        os.waitpid(stage, 0)


def request(stage, *ready):
    environment = {"DVC_STAGE": stage, "POLYVIEW_RAY": "auto", "HOME": "/root"}
    return {"stage": stage, "ready": ready, "environment": environment, "folder": os.getcwd()}


def begun(path):
    until(path.exists)
    return json.loads(path.read_text())


@TWO_CORES
def test_the_last_training_that_is_ready_begins_first_and_the_next_follows(ahead, tmp_path):
    ahead.go_on(request("pairs@a", "train@a", "evaluate@b", "train@b", "report"))
    asked = begun(tmp_path / "b")
    assert (asked["module"], asked["arguments"]) == ("stages.train", ["b", "--ahead"])
    assert (asked["environment"], asked["folder"]) == ({"HOME": "/root"}, str(tmp_path))
    assert asked["nice"] == 19
    (tmp_path / "end b").touch()
    assert tells(ahead)
    ahead.next()
    begun(tmp_path / "a")
    (tmp_path / "end a").touch()
    tells(ahead)
    ahead.next()
    assert not ahead.watched, "each begins once"
    assert ahead.process == 0, "a stage may get its number"


@TWO_CORES
def test_a_training_gives_way_to_its_own_stage_and_to_no_other(ahead, tmp_path):
    ahead.go_on(request("pairs@a", "train@a", "train@b"))
    process = begun(tmp_path / "b")["process"]
    assert ahead.seconds == {}
    another = request("train@a", "train@b")
    ahead.make_way(another)
    ahead.go_on(another)
    os.kill(process, 0)
    own = request("train@b", "train@c")
    ahead.make_way(own)
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)
    assert ahead.seconds.keys() == {"train@b"}
    assert ahead.seconds["train@b"] > 0
    ahead.go_on(own)
    begun(tmp_path / "c")
    assert not (tmp_path / "a").exists(), "its own stage had its turn"


@TWO_CORES
def test_what_dvc_would_skip_is_left_alone(ahead, tmp_path):
    ahead.go_on(request("pairs@a", "train@a", "train@skipped"))
    assert tells(ahead)
    ahead.next()
    begun(tmp_path / "a")
    assert not (tmp_path / "skipped").exists()


@TWO_CORES
def test_dvc_is_asked_once_for_each_stage(ahead, tmp_path):
    ahead.go_on(request("pairs@a", "train@skipped", "train@a", "train@b"))
    for name in "ba":
        begun(tmp_path / name)
        (tmp_path / f"end {name}").touch()
        assert tells(ahead)
        ahead.next()
    assert not ahead.watched
    ahead.go_on(request("pairs@b", "train@skipped", "train@a", "train@b", "train@c"))
    begun(tmp_path / "c")
    assert (tmp_path / "asked").read_text().splitlines() == [
        "train@b train@a train@skipped",
        "train@c",
    ]


@TWO_CORES
@pytest.mark.parametrize(("other", "asked"), [("f64", ["train@b"]), ("f32", [])])
def test_dvc_is_not_asked_for_what_is_not_exact(tmp_path, monkeypatch, other, asked):
    monkeypatch.chdir(tmp_path)
    resolve(tmp_path, a="f32", b=other)

    def due(stages):
        for stage in stages or ["nothing"]:
            (tmp_path / f"asked for {stage}").touch()
        return []

    with run_of_dvc() as (_, alive):
        ahead = Ahead(print, due, [alive])
        ahead.go_on(request("pairs@a", "train@a", "train@b"))
        assert tells(ahead)
        assert [path.name for path in tmp_path.glob("asked*")] == [f"asked for {s}" for s in asked]


@TWO_CORES
def test_a_training_ends_with_dvc(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    resolve(tmp_path, a="f64")
    with run_of_dvc() as (dvc, alive):
        ahead = Ahead(lambda _: time.sleep(6000), list, [alive])
        ahead.go_on(request("pairs@a", "train@a"))
        assert not tells(ahead, 0.2)
        dvc.kill()
        assert tells(ahead)


def test_on_one_core_nothing_works_ahead(ahead):
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        ahead.go_on(request("pairs@a", "train@a"))
    finally:
        os.sched_setaffinity(0, before)
    assert not ahead.watched


STAGE = """
import os, sys, time
from pathlib import Path
kind, name = Path(__file__).stem, sys.argv[1]
def say(*words):
    with open("log.txt", "a") as log:
        print(kind, name, *words, file=log)
def wait_until(condition):
    end = time.monotonic() + 1200  # at nice 19 it waits for all others
    while not condition() and time.monotonic() < end:
        time.sleep(0.1)
def is_served():
    process, names = os.getpid(), []
    while process > 1:  # one of these is DVC
        names.append(f"@polyview-{os.getuid()}-{process}-")
        process = int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
    lines = Path("/proc/net/unix").read_text().splitlines()
    servers = [line for line in lines if not line.endswith("-starting")]
    return any(name in line for name in names for line in servers)
if "--ahead" in sys.argv:
    say("ahead")
    while time.process_time() < 1:
        pass
    say("ended")
else:
    say()
    if (kind, name) == ("pairs", "a"):
        wait_until(is_served)
    if (kind, name) == ("pairs", "b"):
        wait_until(lambda: "train a ended" in Path("log.txt").read_text())
    Path(f"{kind}-{name}").write_text("made")
"""
GRAPH = """
stages:
  pairs:
    foreach: [a, b]
    do:
      cmd: python -m stages.pairs ${item}
      outs: ["pairs-${item}"]
  train:
    foreach: [a, b]
    do:
      cmd: python -m stages.train ${item}
      deps: ["pairs-${item}"]
      outs: ["train-${item}"]
"""


@TWO_CORES
def test_under_dvc_a_training_begins_before_its_turn_but_not_before_its_inputs(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    repro = project_of_stages(tmp_path, GRAPH, pairs=STAGE, train=STAGE)
    resolve(tmp_path, a="f64", b="f64")
    run = repro()
    assert run.returncode == 0, run.stderr
    log = (tmp_path / "log.txt").read_text().splitlines()
    own = [line for line in log if len(line.split()) == 2]
    assert own == ["pairs a", "pairs b", "train a", "train b"]
    assert log.index("train a ended") < log.index("train a")
    assert "train b ahead" not in log[: log.index("train a ended")]
    seconds = json.loads((tmp_path / ".dvc/tmp/polyview/seconds.json").read_text())
    assert seconds["train@a"] > 1, "what was done ahead is its time, too"
