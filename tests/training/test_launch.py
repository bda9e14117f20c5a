"""The train stage in several ranks: started by the environment or by torchrun, killed, resumed."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import tiny_study
from graph import ROOT
from shell import until
from tiny_study import NAME

from pipeline_lib.running.edge import MISTAKE
from pipeline_lib.running.publishing import tree_sha256
from pipeline_lib.settings.strict import SettingsError
from pipeline_lib.training.launch import VARIABLE, asked_processes, in_ranks

RANKS = 2
STAGE = [sys.executable, "-m", "stages.train", NAME]


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    tiny_study.make(folder)
    return folder


def start(folder, command, **environment):
    """Start a stage as a user does, with the messages that a user sees."""
    known = {key: value for key, value in os.environ.items() if key != "POLYVIEW_TRACEBACK"}
    known |= {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"} | environment
    return subprocess.Popen(
        command, cwd=folder, env=known, stderr=subprocess.PIPE, encoding="utf-8"
    )


def run(folder, command=STAGE, **environment):
    """Run a stage to its end; return what it said."""
    process = start(folder, command, **environment)
    said = process.communicate()[1]
    assert process.returncode == 0, said
    return said


def weights(folder):
    return tree_sha256(folder / f"data/models/{NAME}/seed-1/weights.safetensors")


@pytest.fixture(scope="module")
def trained(study, tmp_path_factory):
    """Return a folder in which two ranks trained, and what they said."""
    folder = tmp_path_factory.mktemp("whole") / "study"
    shutil.copytree(study, folder)
    return folder, run(folder, **{VARIABLE: str(RANKS)})


def test_one_rank_alone_shows_how_far_it_is_and_publishes(trained):
    folder, said = trained
    last = said.replace("\r", "\n").splitlines()
    bars = [line for line in last if "seed 1 on" in line]
    assert bars
    assert all(f"{NAME} seed 1 on cpu in f32, {RANKS} ranks" in line for line in bars)
    # A bar ends in two such lines, or in three where the machine is slow; two bars in four or more.
    assert sum("100%" in line and "best" in line for line in bars) <= 3
    assert (folder / f"metrics/reports/recipes/{NAME}/training.csv").is_file()


def test_one_process_takes_what_ranks_have_trained(trained, tmp_path):
    """The number of ranks is in no hash."""
    shutil.copytree(trained[0], tmp_path / "study")
    assert "seed 1 on" not in run(tmp_path / "study")


def test_torchrun_trains_the_same(study, trained, tmp_path):
    shutil.copytree(study, tmp_path / "study")
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(RANKS)]
    said = run(tmp_path / "study", [*torchrun, *STAGE[1:]])
    assert f"{RANKS} ranks" in said
    assert weights(tmp_path / "study") == weights(trained[0])


def ranks_of(process):
    """Return the processes that one has started, by their rank."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    found = {}
    for child in children:
        content = Path(f"/proc/{child}/environ").read_bytes().split(b"\0")
        found |= {int(line[5:]): int(child) for line in content if line.startswith(b"RANK=")}
    return found


def started(folder):
    """Start the ranks, and wait until they have a checkpoint; return the stage and its ranks."""
    process = start(folder, STAGE, **{VARIABLE: str(RANKS)})
    while not list(folder.glob(".resume/*/*/checkpoint.pt")):
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.005)
    return process, ranks_of(process)


def has_ended(number):
    try:
        state = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return True
    return state == "Z"


@pytest.mark.parametrize("killed", range(RANKS))
def test_a_killed_rank_ends_all_and_the_next_run_goes_on(study, trained, tmp_path, killed):
    folder = tmp_path / "study"
    shutil.copytree(study, folder)
    process, found = started(folder)
    os.kill(found[killed], signal.SIGKILL)
    _, said = process.communicate(timeout=300)
    assert process.returncode == MISTAKE, said
    errors = [line for line in said.replace("\r", "\n").splitlines() if "error" in line.lower()]
    assert errors == [
        f"error: rank {killed} of {RANKS} was ended by SIGKILL, perhaps for lack of memory. Run "
        "the command again: it goes on from the last validation."
    ]
    assert "Traceback" not in said
    assert all(map(has_ended, found.values()))
    assert not (folder / f"data/models/{NAME}").exists()
    again = run(folder, **{VARIABLE: str(RANKS)})
    assert " 0/" not in again, "it began anew"
    assert weights(folder) == weights(trained[0])


def test_what_is_refused_is_said_once_and_leaves_nothing(study, tmp_path):
    folder, temporary = tmp_path / "study", tmp_path / "temporary"
    shutil.copytree(study, folder)
    temporary.mkdir()
    (features,) = (folder / "data/features").glob("world*.h5")
    features.write_bytes(features.read_bytes()[:-1] + b"x")
    asked = {VARIABLE: str(RANKS), "TMPDIR": str(temporary)}
    process = start(folder, STAGE, **asked)
    _, said = process.communicate(timeout=300)
    assert process.returncode == MISTAKE, said
    assert said.count("error: ") == 1, said
    assert str(features.relative_to(folder)) in said
    assert not [*temporary.iterdir()]


def test_a_wrong_number_of_captions_is_said_once_before_any_rank_starts(study):
    asked = {VARIABLE: str(RANKS), "POLYVIEW_TRAIN_CAPTIONS": "x"}
    process = start(study, STAGE, **asked)
    said = process.communicate(timeout=300)[1]
    assert process.returncode == MISTAKE
    assert said.count("expected a number of captions") == 1


def test_ranks_that_are_interrupted_say_so_once(study, tmp_path):
    shutil.copytree(study, tmp_path / "study")
    process, found = started(tmp_path / "study")
    for each in (process.pid, *found.values()):  # as a terminal does
        os.kill(each, signal.SIGINT)
    said = process.communicate(timeout=300)[1]
    assert said.count("interrupted. Run again") == 1, said


def test_ranks_that_cannot_connect_say_why(study, tmp_path):
    """As with a network of another name on another machine; a second try would not help."""
    shutil.copytree(study, tmp_path / "study")
    asked = {VARIABLE: str(RANKS), "GLOO_SOCKET_IFNAME": "none7"}
    _, said = start(tmp_path / "study", STAGE, **asked).communicate(timeout=300)
    assert "of 2: expected to reach all others, found: " in said
    assert "none7" in said
    assert "another rank ended" not in said


def test_ranks_end_with_what_started_them(study, tmp_path):
    shutil.copytree(study, tmp_path / "study")
    process, found = started(tmp_path / "study")
    process.kill()
    until(lambda: all(map(has_ended, found.values())))
    process.communicate()


def test_what_the_first_rank_refuses_is_said_once(study, tmp_path):
    folder = tmp_path / "study"
    shutil.copytree(study, folder)
    tiny_study.split_images(folder, split="test")
    process = start(folder, STAGE, **{VARIABLE: str(RANKS)})
    said = process.communicate()[1]
    assert process.returncode == MISTAKE
    assert said.count("error:") == 1
    assert f"recipes.{NAME}" in said


@pytest.mark.parametrize("text", ["0", "two", "-1", "1.5", ""])
def test_a_number_of_processes_is_one(monkeypatch, text):
    monkeypatch.setenv(VARIABLE, text)
    with pytest.raises(SettingsError, match=f"{VARIABLE}: expected a number"):
        asked_processes()


def test_f64_trains_in_one_process(monkeypatch, capsys):
    monkeypatch.setenv(VARIABLE, "2")
    calls = []
    in_ranks(lambda: calls.append(os.getpid()), "f64", "stages.train", NAME)
    assert calls == [os.getpid()]
    assert f"{NAME}: trains in one process" in capsys.readouterr().err
