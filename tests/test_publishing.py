import os
import signal
import subprocess
import sys
import time

import pytest

from pipeline_lib.publishing import discard, publish, resume_folder


def test_publishes_a_file_and_replaces_the_old_one(tmp_path):
    target = tmp_path / "new" / "table.csv"
    for text in ("old", "new"):
        with publish(target) as path:
            path.write_text(text)
    assert target.read_text() == "new"
    assert [p.name for p in target.parent.iterdir()] == ["table.csv"]


def test_publishes_a_folder_whole(tmp_path):
    for name in ("a", "b"):
        with publish(tmp_path / "model") as folder:
            (folder / "deep").mkdir(parents=True)
            (folder / "deep" / name).write_text(name)
    assert [p.name for p in (tmp_path / "model" / "deep").iterdir()] == ["b"]


def test_a_failure_leaves_what_was_there(tmp_path):
    target = tmp_path / "table.csv"
    target.write_text("old")
    with pytest.raises(RuntimeError), publish(target) as path:  # noqa: PT012
        path.write_text("half")
        raise RuntimeError
    assert target.read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 1


def test_writing_nothing_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError, match="nothing was written"), publish(tmp_path / "x"):
        pass


def test_kill_leaves_what_was_there_and_the_next_run_cleans_up(tmp_path):
    target = tmp_path / "table.csv"
    target.write_text("old")
    code = (
        "import sys, time; from pathlib import Path\n"
        "from pipeline_lib.publishing import publish\n"
        "with publish(Path(sys.argv[1])) as path:\n"
        "    path.write_text('half'); time.sleep(60)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code, str(target)])
    partial = tmp_path / ".table.csv.partial"
    while not partial.exists():
        time.sleep(0.01)
        assert process.poll() is None
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert target.read_text() == "old"
    with publish(target) as path:
        path.write_text("new")
    assert [p.read_text() for p in tmp_path.iterdir()] == ["new"]


def test_resume_folder_is_kept_for_the_same_identity_only(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    first = resume_folder("train@a", {"rate": 1, "seed": 2})
    (first / "work").write_text("half")
    assert resume_folder("train@a", {"seed": 2, "rate": 1}) == first
    assert (first / "work").exists()
    other = resume_folder("train@b", {"seed": 2})
    changed = resume_folder("train@a", {"rate": 3, "seed": 2})
    assert changed != first
    assert not first.exists()
    discard(changed)
    assert other.exists()
    discard(other)
    assert not (tmp_path / ".resume").exists()
