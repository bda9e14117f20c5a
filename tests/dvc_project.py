"""DVC projects of a test's own stages, which start as ours do."""

import os
import subprocess
import sys
from pathlib import Path

from dvc.repo import Repo
from graph import ROOT


def project_of_stages(folder: Path, graph: str, **stages: str):
    """Make a project of stages; return what runs ``dvc repro`` in it.

    Args:
        folder: An empty one, in which the test stands.
        graph: Text of dvc.yaml.
        stages: Text of each module. They are warmed up by no library.
    """
    Repo.init(no_scm=True).close()
    (folder / "stages").mkdir()
    bare = "import pipeline_lib.running.warm\n\npipeline_lib.running.warm.LIBRARIES = ()\n"
    text = (ROOT / "stages/__init__.py").read_text()
    (folder / "stages/__init__.py").write_text(bare + text)
    for name, module in stages.items():
        (folder / f"stages/{name}.py").write_text(module)
    (folder / "dvc.yaml").write_text(graph)
    path = f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}"
    environment = os.environ | {"PYTHONPATH": f"{folder}:{ROOT}", "PATH": path}

    def repro(*options):
        command = [sys.executable, "-m", "dvc", "repro", *options]
        return subprocess.run(command, env=environment, capture_output=True, text=True)

    return repro
