import errno
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from dvc.dvcfile import Lockfile
from dvc.exceptions import DvcException
from dvc.repo import Repo
from graph import ROOT
from ruamel.yaml import YAML
from shell import python

from pipeline_lib.contract.problems import ContractError
from pipeline_lib.running import publishing
from pipeline_lib.running.edge import MISTAKE, explained
from pipeline_lib.running.publishing import (
    keep_until_recorded,
    publish,
    resume_folder,
    tree_sha256,
)


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


def test_what_is_published_is_on_the_disk_before_its_name_and_the_name_after_it(
    tmp_path, monkeypatch
):
    target, flushed = tmp_path / "model", []

    def fsync(descriptor):
        name = os.path.basename(os.readlink(f"/proc/self/fd/{descriptor}"))
        flushed.append((name, target.exists()))

    monkeypatch.setattr(os, "fsync", fsync)
    with publish(target) as folder:
        folder.mkdir()
        (folder / "weights").touch()
    assert flushed == [("model", False), ("weights", False), (tmp_path.name, True)]


def test_the_name_of_a_folder_is_free_for_two_renames_and_not_while_the_old_one_is_deleted(
    tmp_path, monkeypatch
):
    target, there = tmp_path / "model", []
    remove = publishing._remove

    def watched(path):
        if path.exists():
            there.append(target.exists())
        remove(path)

    monkeypatch.setattr(publishing, "_remove", watched)
    for name in ("old", "new"):
        with publish(target) as folder:
            folder.mkdir()
            (folder / name).touch()
    assert there
    assert all(there)
    assert [path.name for path in target.iterdir()] == ["new"]
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_a_failure_leaves_what_was_there(tmp_path):
    target = tmp_path / "table.csv"
    target.write_text("old")
    with pytest.raises(RuntimeError), publish(target) as path:  # noqa: PT012
        path.write_text("half")
        raise RuntimeError
    assert target.read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 1


def test_a_mistake_in_what_is_read_is_no_failure_of_the_disk(tmp_path):
    """Its message may quote anything, words of a failing disk as well."""
    for said in ("captions.tsv:3: found 'seats requested and taken'", "a.jpg: [Errno 13] denied"):
        with pytest.raises(ContractError, match=re.escape(said)), publish(tmp_path / "table.csv"):
            raise ContractError(said)


@pytest.mark.parametrize(
    "read", ["captions.tsv", "../raw/table.csv", "/nowhere/a", "table.csv.gz", "a.table.csv"]
)
def test_what_could_not_be_read_is_named_and_not_what_would_be_written(tmp_path, monkeypatch, read):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(PermissionError, match=re.escape(repr(read))), publish(Path("table.csv")):
        raise PermissionError(errno.EACCES, "Permission denied", read)


@pytest.mark.parametrize("written", ["table.csv", ".table.csv.partial-x/table.csv", "."])
def test_what_could_not_be_written_is_the_output(tmp_path, monkeypatch, written):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(PermissionError, match=r"'table\.csv'$"), publish(Path("table.csv")):
        raise PermissionError(errno.EACCES, "Permission denied", written)


def test_a_file_system_without_locks_is_named(tmp_path, monkeypatch):
    def flock(*_):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("fcntl.flock", flock)
    with pytest.raises(OSError, match="no locks") as raised, publish(tmp_path / "a"):
        pass
    said, code = explained(raised.value)
    assert said.startswith(f"{tmp_path}: the system says: the file system has no locks")
    assert code == MISTAKE


def test_writing_nothing_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError, match="nothing was written"), publish(tmp_path / "x"):
        pass


def test_kill_leaves_what_was_there_and_the_next_run_cleans_up(tmp_path):
    target = tmp_path / "table.csv"
    target.write_text("old")
    code = (
        "import sys, time; from pathlib import Path\n"
        "from pipeline_lib.running.publishing import publish\n"
        "with publish(Path(sys.argv[1])) as path:\n"
        "    path.write_text('half'); time.sleep(60)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code, str(target)])
    while not [*tmp_path.glob(".table.csv.partial-*/table.csv")]:
        time.sleep(0.01)
        assert process.poll() is None
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert target.read_text() == "old"
    with publish(target) as path:
        path.write_text("new")
    assert [p.read_text() for p in tmp_path.iterdir()] == ["new"]


@pytest.mark.parametrize("form", ["file", "folder"])
def test_of_several_at_once_each_is_whole_and_one_stays(tmp_path, form):
    code = (
        "import sys; from pathlib import Path\n"
        "from pipeline_lib.running.publishing import publish\n"
        "for _ in range(200):\n"
        "    with publish(Path(sys.argv[1])) as path:\n"
        "        if sys.argv[2] == 'folder':\n"
        "            path.mkdir(); path = path / 'a'\n"
        "        path.write_text(sys.argv[3] * 1000)\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "x"), form]
    running = [subprocess.Popen([*command, letter]) for letter in "ab"]
    assert [process.wait() for process in running] == [0, 0]
    assert [path.name for path in tmp_path.iterdir()] == ["x"]
    content = (tmp_path / "x/a" if form == "folder" else tmp_path / "x").read_text()
    assert content in ("a" * 1000, "b" * 1000)


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
    assert {path.name for path in (tmp_path / ".resume").iterdir()} == {"train@a", "train@b"}
    assert other.exists()


def test_of_work_that_was_finished_no_more_is_promised_than_what_still_holds(
    tmp_path, monkeypatch, capsys
):
    """Of features, a photo may have been replaced since, or the threads are others."""
    monkeypatch.chdir(tmp_path)
    work = resume_folder("features@a", 1)
    assert capsys.readouterr().err == ""
    keep_until_recorded(work, [])
    resume_folder("features@a", 1)
    said = capsys.readouterr().err
    assert said.startswith(
        "features@a: was finished, but DVC has not recorded it. What still holds"
    )
    assert f"delete {work}" in said


def test_a_folder_is_told_from_another_by_names_and_contents_wherever_it_lies(tmp_path):
    files = {
        "model": {"a": "1", "deep/b": "2"},
        "elsewhere/model": {"deep/b": "2", "a": "1"},
        "renamed": {"a": "1", "deep/c": "2"},
        "moved": {"a": "1", "b": "2"},
        "exchanged": {"a": "2", "deep/b": "1"},
    }
    for folder, contents in files.items():
        for name, text in contents.items():
            path = tmp_path / folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    model, elsewhere, *others = (tree_sha256(tmp_path / folder) for folder in files)
    assert model == elsewhere
    assert len({model, *others}) == 4


@pytest.mark.parametrize("writable", ["rw-rw-r--", "rw-------"])
def test_permissions_are_those_of_the_umask_whatever_wrote(tmp_path, writable):
    """safetensors, for one, writes through a temporary file that only its owner may read."""
    umask = {"rw-rw-r--": 0o002, "rw-------": 0o077}[writable]
    before = os.umask(umask)
    try:
        with publish(tmp_path / "model") as folder:
            folder.mkdir(0o700)
            (folder / "weights").touch(0o600)
        (tmp_path / "plain").touch()
        (tmp_path / "folder").mkdir()
    finally:
        os.umask(before)
    for published, plain in (("model", "folder"), ("model/weights", "plain")):
        assert (tmp_path / published).stat().st_mode == (tmp_path / plain).stat().st_mode


EDITS = {
    "nothing": ("training/loop.py", "", "", True),
    "a comment in another module": ("reporting/page/svg.py", "", "# Why.\n", True),
    "what such a module does": ("reporting/page/svg.py", "", "SIDE = 1\n", True),
    "a comment": ("training/loop.py", "", "# Why.\n", True),
    "what it does": ("training/loop.py", "progress.update += 1", "progress.update += 2", False),
    "what a module far below does": ("models/gru.py", "", "SIDE = 1\n", False),
}


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    folder = tmp_path_factory.mktemp("checkout")
    for package in ("pipeline_lib", "stages"):
        shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pyc*"))
    return folder


@pytest.mark.parametrize("edit", EDITS)
def test_work_is_kept_unless_the_code_of_the_stage_does_something_else(checkout, edit):
    name, old, new, kept = EDITS[edit]
    assert _folder_in(checkout) == _folder_in(checkout)
    path, before = checkout / "pipeline_lib" / name, _folder_in(checkout)
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1) if old else text + new, encoding="utf-8")
    try:
        assert (_folder_in(checkout) == before) is kept
    finally:
        path.write_text(text, encoding="utf-8")


def _folder_in(checkout):
    code = (
        "from pipeline_lib.running.publishing import resume_folder\n"
        "print(resume_folder('train@a', 1))"
    )
    return python(code, folder=checkout).stdout


# Under DVC


def test_an_output_is_recognised_by_the_digest_that_dvc_gives_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file, folder = tmp_path / "table.csv", tmp_path / "features"
    file.write_text("a")
    (folder / "a").mkdir(parents=True)
    for name in ("a/b", "a.b", "ä", "c"):
        (folder / name).write_text(name)
    recorded = {}
    with Repo.init(no_scm=True) as repo:
        for path in (file, folder):
            [stage] = repo.add(path.name)
            recorded[path.name] = stage.outs[0].hash_info.value
    work = resume_folder("train@a", 1)
    keep_until_recorded(work, [file.relative_to(tmp_path), folder.relative_to(tmp_path)])
    assert json.loads((work / "published.json").read_text()) == recorded


STAGE = """
import os, signal, sys
from pathlib import Path
from pipeline_lib.running.publishing import keep_until_recorded, publish, resume_folder

stage, output = sys.argv[1], Path(sys.argv[1] + ".txt")
resume = resume_folder(stage, Path("in.txt").read_text())
if not (resume / "work").exists():
    with open("updates", "a") as file:
        file.write(f"{stage} ")
    with publish(resume / "work") as temporary:
        temporary.write_text("the same whatever goes in")
with publish(output) as temporary:
    temporary.write_text((resume / "work").read_text())
keep_until_recorded(resume, [output])
if Path("kill").exists() and Path("kill").read_text() == stage:
    Path("kill").unlink()
    os.killpg(0, signal.SIGKILL)
"""
GRAPH = """
stages:
  train:
    foreach: [a, b]
    do:
      cmd: python stage.py train@${item}
      deps: [in.txt]
      outs: [{"train@${item}.txt": {cache: false}}]
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Return a function that runs ``dvc repro`` on two stages and says which made an update."""
    monkeypatch.chdir(tmp_path)
    Repo.init(no_scm=True).close()
    (tmp_path / "stage.py").write_text(STAGE)
    (tmp_path / "dvc.yaml").write_text(GRAPH)
    (tmp_path / "in.txt").write_text("1")
    path = f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}"
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PATH": path}

    def repro(*options, kill="", change=""):
        (tmp_path / "kill").write_text(kill)
        (tmp_path / "updates").write_text("")
        if change:
            (tmp_path / "in.txt").write_text(change)
        command = [sys.executable, "-m", "dvc", "repro", *options]
        run = subprocess.run(command, env=environment, start_new_session=True, capture_output=True)
        assert run.returncode == (-signal.SIGKILL if kill else 0), run.stderr
        return (tmp_path / "updates").read_text().split()

    return repro


def works(folder):
    return {path.name for path in (folder / ".resume").iterdir() if path.is_dir()}


def test_finished_work_stays_until_dvc_has_recorded_the_stage(project, tmp_path):
    assert project(kill="train@a") == ["train@a"]
    assert project() == ["train@b"], "train@a was finished: only its publication was to be redone"
    assert works(tmp_path) == {"train@b"}, "dvc.lock had train@a when train@b began"
    # dvc.lock names the same outputs from the run before.
    assert project(change="2", kill="train@a") == ["train@a"]
    assert project() == ["train@b"]
    assert project("--force", "train@b") == ["train@b"], "it was recorded, and is asked for anew"


def test_work_goes_by_a_whole_lock_that_is_written_after_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DVC_STAGE", "train@b")
    output, lock = Path("train@a.txt"), Path("dvc.lock")
    output.write_text("the same")
    digest = hashlib.md5(b"the same").hexdigest()
    record = f"stages:\n  train@a:\n    outs: [{{path: {output}, md5: {digest}}}]\n"
    lock.write_text(f"{record}schema: '2.0'\n")
    work = resume_folder("train@a", 1)
    keep_until_recorded(work, [output])

    def is_kept(text, seconds):
        """Return whether the work stays, of a lock written so long after its publication."""
        lock.write_text(text)
        written = (work / "published.json").stat().st_mtime_ns + seconds * 10**9
        os.utime(lock, ns=(written, written))
        with publish(tmp_path / "other") as path:
            path.touch()
        return work.is_dir()

    assert is_kept(f"{record}schema: '2.0'\n", -1), "of a run before"
    assert is_kept(record, 1), "DVC may be writing it still"
    assert is_kept(f"{record.replace(digest, '0')}schema: '2.0'\n", 2), "of other outputs"
    assert not is_kept(f"{record}schema: '2.0'\n", 3)


def test_dvc_refuses_a_lock_that_a_kill_cut_off_and_the_kept_one_has_all_before(project, tmp_path):
    project()
    lock, kept = tmp_path / "dvc.lock", tmp_path / ".resume" / "dvc.lock"
    whole = lock.read_text()
    repo = Repo()
    assert Lockfile(repo, "dvc.lock").load()["stages"].keys() == {"train@a", "train@b"}
    for length in range(len(whole) - 1):  # the last character is the end of the line
        lock.write_text(whole[:length])
        with pytest.raises(DvcException):
            Lockfile(repo, "dvc.lock").load()
    shutil.copy2(kept, lock)
    assert Lockfile(repo, "dvc.lock").load()["stages"].keys() == {"train@a"}
    assert project() == [], "train@b, whose record was cut off, has its work"
    assert lock.read_text() == whole


@pytest.mark.parametrize("lock", ["schema: '2.0'\nstages:\n  train:\n    cmd: train\n", None])
def test_a_lock_gets_its_mark_at_the_end_before_a_stage_publishes(tmp_path, monkeypatch, lock):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DVC_STAGE", "train")
    if lock:
        (tmp_path / "dvc.lock").write_text(lock)
    with publish(tmp_path / "out") as path:
        path.touch()
    text = (tmp_path / "dvc.lock").read_text()
    assert text.splitlines()[-1] == "schema: '2.0'"
    assert YAML(typ="safe").load(text) == (
        YAML(typ="safe").load(lock) if lock else {"schema": "2.0", "stages": {}}
    )
    assert (tmp_path / ".resume" / "dvc.lock").read_text() == text


def test_a_copy_that_does_not_fit_names_what_it_was_written_to(tmp_path):
    """As shutil.copyfile says it, the source comes first."""
    with pytest.raises(OSError, match="out") as caught, publish(tmp_path / "new/out") as path:
        raise OSError(errno.ENOSPC, "No space", str(tmp_path / "source"), None, str(path / "a"))
    assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, str(tmp_path / "new/out"))
