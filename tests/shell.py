"""Commands, run as a user types them, and code that another process runs."""

import os
import subprocess
import sys
import time
from pathlib import Path

from graph import ROOT


def run(command, folder):
    """Run a command as a user types it, with the packages of this process; return its output."""
    scripts = Path(sys.executable).parent
    names = [f"GIT_{role}_{part}" for role in ("AUTHOR", "COMMITTER") for part in ("NAME", "EMAIL")]
    environment = {**os.environ, **dict.fromkeys(names, "test"), "COLUMNS": "120"}
    # A user's own git may sign what it commits.
    count = int(os.environ.get("GIT_CONFIG_COUNT") or 0)
    unsigned = {f"GIT_CONFIG_KEY_{count}": "commit.gpgsign", f"GIT_CONFIG_VALUE_{count}": "false"}
    environment |= unsigned | {"GIT_CONFIG_COUNT": str(count + 1)}
    environment["PATH"] = f"{scripts}{os.pathsep}{environment['PATH']}"
    done = subprocess.run(
        ["bash", "-c", command.replace("uv run ", "")],
        cwd=folder,
        env=environment,
        capture_output=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def until(condition):
    """Wait until something holds that holds soon; return it."""
    deadline = time.monotonic() + 300
    while not (found := condition()) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert found
    return found


def python(code, *arguments, tests=False, folder=ROOT, fails=False, timeout=None, **environment):
    """Run code in another process, which must not fail unless it may; return what it said."""
    if tests:  # it imports modules of tests
        environment["PYTHONPATH"] = os.pathsep.join(sys.path)
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        cwd=folder,
        env=os.environ | environment,
        timeout=timeout,
        capture_output=True,
        encoding="utf-8",
    )
    assert fails or done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done
