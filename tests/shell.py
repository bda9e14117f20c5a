"""Commands, run as a user types them."""

import os
import subprocess
import sys
from pathlib import Path


def run(command, folder):
    """Run a command as a user types it, with the packages of this process; return its output."""
    scripts = Path(sys.executable).parent
    names = [f"GIT_{role}_{part}" for role in ("AUTHOR", "COMMITTER") for part in ("NAME", "EMAIL")]
    environment = {**os.environ, **dict.fromkeys(names, "test"), "COLUMNS": "120"}
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
