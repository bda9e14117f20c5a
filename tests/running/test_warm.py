"""Stages under DVC run in a child of a process that has the libraries, and behave as any module."""

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from graph import ROOT
from shell import until

STAGE = """
import os, sys, time
here = os.getcwd() == os.environ["PWD_EXPECTED"]
print("ran", sys.argv[1:], here, "torch" in sys.modules, flush=True)
print("pid", os.getpid(), file=sys.stderr, flush=True)
if sys.argv[1] == "wait":
    time.sleep(60)
if sys.argv[1] == "die":
    os.kill(os.getpid(), 9)
if sys.argv[1] == "raise":
    raise ValueError("a mistake")
sys.exit(int(sys.argv[1]))
"""
DVC = """
import subprocess, sys, time
# As `dvc repro` does: a process called dvc that starts stages by a shell, one after the other.
def run(words, **options):
    command = f"{sys.executable} -m stages.probe {words}"
    return subprocess.run(["/bin/sh", "-c", command], **options)
while b"True True" not in run("0", stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout:
    time.sleep(0.2)  # the first ones run before the server has the libraries
for words in sys.argv[1:]:
    print("code", run(words).returncode, flush=True)
"""


@pytest.fixture
def project(tmp_path):
    (tmp_path / "stages").mkdir()
    (tmp_path / "stages/__init__.py").write_text((ROOT / "stages/__init__.py").read_text())
    (tmp_path / "stages/probe.py").write_text(STAGE)
    (tmp_path / "pipeline_lib").symlink_to(ROOT / "pipeline_lib")
    (tmp_path / "dvc").write_text(DVC)
    return tmp_path


def start(project, *stages, **variables):
    environment = {**os.environ, "DVC_STAGE": "probe", **variables}
    environment |= {"PWD_EXPECTED": str(project), "PYTHONPATH": str(project)}
    return subprocess.Popen(
        [sys.executable, "dvc", *stages], cwd=project, env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip


def lines(process):
    out, err = process.communicate(timeout=900)
    return out.splitlines(), err


def test_stages_have_the_libraries_and_all_their_arguments_and_codes(project):
    out, err = lines(start(project, "3", "raise", "'0' 'a b'"))
    assert out[:2] == ["ran ['3'] True True", "code 3"]
    assert out[2:4] == ["ran ['raise'] True True", "code 1"]
    assert out[4:] == ["ran ['0', 'a b'] True True", "code 0"]
    assert "ValueError: a mistake" in err


def test_a_stage_that_the_system_kills_says_so(project):
    """As for lack of memory; 130, of Ctrl+C, would say that the user did it."""
    out, err = lines(start(project, "die"))
    assert out == ["ran ['die'] True True", "code 137"]
    assert "the stage was killed: perhaps memory was used up" in err


def test_a_name_that_is_not_utf_8_is_printed_as_without_dvc(project):
    """Such as the path of a photo in an error."""
    told = STAGE.replace("sys.exit(", "print(os.environ['PHOTO'], file=sys.stderr)\nsys.exit(")
    (project / "stages/probe.py").write_text(told)
    out, err = lines(start(project, "0", PHOTO=b"caf\xe9.jpg"))
    assert out[-1] == "code 0"
    assert "caf\\udce9.jpg" in err


def test_the_server_ends_with_dvc(project):
    process = start(project, "0")
    lines(process)
    until(lambda: not served(process.pid))


def test_a_stage_that_is_killed_takes_its_child_along(project):
    process = start(project, "wait")
    assert process.stdout.readline() == "ran ['wait'] True True\n"
    child = int(process.stderr.readline().split()[1])
    others = session(process.pid) - {process.pid}
    (client,) = (p for p in others if command(p)[-2:] == ["wait", ""])
    os.kill(client, signal.SIGKILL)
    until(lambda: not alive(child))
    assert process.communicate(timeout=300)[0] in ("code -9\n", "code 137\n")  # with a shell


def test_a_stage_ends_with_dvc(project):
    """Or it would write its outputs after the next run has written them."""
    process = start(project, "wait")
    assert process.stdout.readline() == "ran ['wait'] True True\n"
    child = int(process.stderr.readline().split()[1])
    process.kill()
    until(lambda: not alive(child))
    until(lambda: not session(process.pid) - {process.pid})
    process.communicate()


def test_a_first_stage_ends_with_dvc(project):
    """Which is a child of its own process, not of the server."""
    (project / "dvc").write_text(DVC.partition("while")[0] + 'run("wait")\n')
    process = start(project)
    child = int(process.stderr.readline().split()[1])
    process.kill()
    until(lambda: not alive(child))
    process.communicate()


def test_without_dvc_a_stage_is_a_module_like_any_other(project):
    environment = {**os.environ, "PWD_EXPECTED": str(project), "PYTHONPATH": str(project)}
    environment.pop("DVC_STAGE", None)
    run = subprocess.run(
        [sys.executable, "-m", "stages.probe", "0"],
        cwd=project, env=environment, text=True, capture_output=True, check=True,
    )  # fmt: skip
    assert run.stdout == "ran ['0'] True False\n"


def command(process):
    return Path(f"/proc/{process}/cmdline").read_text().split("\0")


def alive(process):
    with contextlib.suppress(OSError):  # it ends while it is looked at
        return status(process)[0] != "Z"
    return False


def status(process):
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()


def session(leader):
    """Return all processes of a session."""
    found = set()
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if status(path.name)[3] == str(leader):
                found.add(int(path.name))
    return found


def served(dvc):
    return f"polyview-{os.getuid()}-{dvc}-" in Path("/proc/net/unix").read_text()
