"""What a user sees of an error: its message, an exit code, and a traceback only on demand."""

import errno
import os
import signal
import subprocess
import sys
from concurrent.futures.process import BrokenProcessPool
from importlib import import_module

import click
import pytest
from click.testing import CliRunner
from graph import ROOT, STAGES

from pipeline_lib.contract.problems import ContractError
from pipeline_lib.images.decoding import ImageError
from pipeline_lib.running.edge import DISK, FAULT, MISTAKE, EdgeCommand, EdgeGroup, explained
from pipeline_lib.running.publishing import publish
from pipeline_lib.settings.strict import SettingsError


def command(error, cls=EdgeCommand):
    @click.command(cls=cls)
    def main():
        raise error

    return main


def pool_error():
    error = RuntimeError("a process that did part of the work was killed")
    error.__cause__ = BrokenProcessPool()
    return error


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (ContractError("a: 1 problem(s)\n  - b"), MISTAKE, "error: a: 1 problem(s)\n  - b\n"),
        (SettingsError("no recipe"), MISTAKE, "error: no recipe\n"),
        (ImageError("expected an image"), MISTAKE, "error: expected an image\n"),
        (FloatingPointError("loss is nan: lower"), MISTAKE, "error: loss is nan: lower\n"),
        (OSError(errno.ENOSPC, "x", "data/a.h5"), MISTAKE, "data/a.h5: the disk is full. Free"),
        (OSError(errno.ENOSPC, "x"), MISTAKE, f"{os.getcwd()}: the disk is full"),
        (OSError(errno.EROFS, "x", "a"), MISTAKE, "a: the file system is read-only"),
        (PermissionError(errno.EACCES, "x", "a"), MISTAKE, "a: permission denied"),
        (OSError(errno.EREMOTEIO, "Remote I/O error", "a"), MISTAKE, "a: the system says: Remote"),
        (OSError(errno.ESTALE, "x", "a"), MISTAKE, "a: the network disk was connected anew"),
        (OSError("of no number"), FAULT, "a fault of Polyview, not of your input: OSError"),
        (MemoryError(), MISTAKE, "memory is used up (MemoryError). Close"),
        (RuntimeError("CUDA out of memory. Tried"), MISTAKE, "memory is used up (CUDA out of"),
        (pool_error(), MISTAKE, "memory is used up (a process that did part"),
        (KeyError("x"), FAULT, "a fault of Polyview, not of your input: KeyError: 'x'\nin tests"),
        (RuntimeError("shapes"), FAULT, "RuntimeError: shapes"),
    ],
)  # fmt: skip
def test_an_error_is_a_message_and_an_exit_code(as_a_user, error, code, said):
    result = CliRunner().invoke(command(error))
    assert (result.exit_code, isinstance(result.exception, SystemExit)) == (code, True)
    assert said in result.output
    assert "Traceback" not in result.output


def test_every_error_of_a_disk_says_what_to_do():
    for number in DISK:
        text, code = explained(OSError(number, os.strerror(number), "there"))
        assert text.startswith("there: ")
        assert code == MISTAKE


@pytest.mark.parametrize("asked", [["--traceback"], []])
def test_a_traceback_comes_back_on_demand(monkeypatch, asked):
    if asked:
        monkeypatch.delenv("POLYVIEW_TRACEBACK")
    result = CliRunner().invoke(command(ContractError("x")), asked)
    assert isinstance(result.exception, ContractError)


def test_commands_of_a_group_end_at_its_edge(as_a_user):
    @click.group(cls=EdgeGroup)
    def group():
        pass

    group.add_command(command(ContractError("said"), click.Command), "inner")
    result = CliRunner().invoke(group, ["inner"])
    assert (result.exit_code, result.output) == (MISTAKE, "error: said\n")
    result = CliRunner().invoke(group, ["inner", "--traceback"])
    assert isinstance(result.exception, ContractError)


@pytest.mark.parametrize("stage", STAGES)
def test_every_stage_has_the_edge(stage, tmp_path, as_a_user, monkeypatch):
    """Nothing that a stage reads is there: it says what, and how to get it."""
    monkeypatch.chdir(tmp_path)
    name = ["nothing_is_called_so"] if "foreach" in STAGES[stage] else []
    result = CliRunner().invoke(import_module(f"stages.{stage}").main, name)
    if stage == "nothing":
        assert result.exit_code == 0, result.output
        return
    assert result.exit_code == MISTAKE, result.output
    assert result.output.startswith("error: params.yaml: not found")


def test_as_a_process_it_prints_to_stderr_alone(tmp_path, as_a_user):
    stage = [sys.executable, "-m", "stages.lexicon", "x"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        stage, cwd=tmp_path, env=environment, capture_output=True, encoding="utf-8"
    )
    assert (done.returncode, done.stdout) == (MISTAKE, "")
    assert done.stderr.startswith("error: params.yaml: not found")


INTERRUPTED = """
import click, os, signal, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
from pipeline_lib.compute.forks import on_all_cores
from pipeline_lib.running.edge import EdgeCommand
@click.command(cls=EdgeCommand)
def main():
    [*on_all_cores(lambda seed: (os.write(1, b"begins\\n"), time.sleep(900)), range(9), 2)]
main()
"""


def test_ctrl_c_ends_all_that_works_and_has_a_code_of_its_own():
    """1 is a bug of ours; seeds that had not begun were trained to their end."""
    command = [sys.executable, "-c", INTERRUPTED]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        command, env=environment, text=True, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        assert [process.stdout.readline() for _ in range(2)] == ["begins\n"] * 2
        os.killpg(process.pid, signal.SIGINT)
        _, said = process.communicate()
    assert process.returncode == 130
    assert said == "\ninterrupted. Run the command again: what is kept is not done anew\n"


@pytest.mark.parametrize(
    "said",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        OSError("Can't write data (file write failed: errno = 28, error message = 'No space')"),
        RuntimeError("Error while serializing: I/O error: No space left on device (os error 28)"),
    ],
)
def test_what_was_not_written_names_the_artefact(tmp_path, said):
    """As Python, HDF5 and safetensors say it."""
    with (
        pytest.raises(OSError, match=r"No space left.*artefact") as error,
        publish(tmp_path / "artefact"),
    ):
        raise said
    assert error.value.errno == errno.ENOSPC
    assert error.value.filename == str(tmp_path / "artefact")


def _printing(then, **environment):
    program = (
        "import click, os\nfrom pipeline_lib.running.edge import EdgeCommand\n"
        "@click.command(cls=EdgeCommand)\ndef main():\n"
        "    for n in range(100_000): click.echo(n)\nmain()"
    )
    script = f"exec {sys.executable} -c '{program}' {then}"
    return subprocess.run(
        ["bash", "-c", script],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
        env=os.environ | environment,
    )


@pytest.mark.parametrize("buffered", ["", "1"])
def test_a_reader_that_has_read_enough_ends_a_command_as_a_signal_would(as_a_user, buffered):
    run = _printing("| head -1; exit ${PIPESTATUS[0]}", PYTHONUNBUFFERED=buffered)
    assert (run.returncode, run.stdout, run.stderr) == (128 + signal.SIGPIPE, "0\n", "")


@pytest.mark.parametrize("buffered", ["", "1"])
def test_of_a_full_disk_behind_the_output_the_output_is_named(as_a_user, buffered):
    run = _printing("> /dev/full", PYTHONUNBUFFERED=buffered)
    assert run.stderr == f"error: standard output: {DISK[errno.ENOSPC]}.\n"
    assert run.returncode == MISTAKE
