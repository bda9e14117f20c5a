"""What one clone has reproduced, another pulls from the remote, and then runs nothing."""

import json
import shutil
import socket
import subprocess
import sys
import time
import urllib.request

import pytest
from graph import ROOT
from shell import run

BUCKET = "cache"
STAGE = {
    "cmd": "mkdir -p data/many && cp params.yaml data/copy && cp params.yaml data/many/a",
    "deps": ["params.yaml"],
    "outs": ["data/copy", "data/many"],
}
"""A file and a folder, as stages write them; DVC's files around it are the project's."""


@pytest.fixture(autouse=True)
def _credentials(monkeypatch):
    """The server on this machine takes any; DVC asks nobody else for some."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("DVC_NO_ANALYTICS", "1")


@pytest.fixture
def project(tmp_path):
    """Return a repository with a small graph, the project's own settings of DVC, and a remote."""

    def make(*settings):
        folder = tmp_path / "first"
        (folder / ".dvc").mkdir(parents=True)
        for name in (".dvc/config", ".dvc/.gitignore", ".dvcignore", ".gitignore"):
            shutil.copy(ROOT / name, folder / name)
        (folder / "params.yaml").write_text("number: 1\n")
        (folder / "dvc.yaml").write_text(json.dumps({"stages": {"copy": STAGE}}))
        run("git init --quiet", folder)
        for command in settings:
            run(command, folder)
        run("dvc repro --quiet && git add --all && git commit --quiet -m reproduced", folder)
        run("dvc push --run-cache --quiet", folder)
        return folder

    return make


def test_a_second_clone_pulls_from_a_folder_and_runs_nothing(tmp_path, project):
    first = project(f"dvc remote add --default shared {tmp_path / 'remote'}")
    _check_second_clone(first)


def test_a_second_clone_pulls_from_s3_and_runs_nothing(project, s3):
    first = project(
        f"dvc remote add --default shared s3://{BUCKET}/polyview",
        f"dvc remote modify shared endpointurl {s3}",
        "dvc remote modify shared region us-east-1",
    )
    _check_second_clone(first)


def _check_second_clone(first):
    second = first.with_name("second")
    run(f"git clone --quiet {first} {second}", first)
    assert not (second / "data").exists()
    run("dvc pull --run-cache --quiet", second)
    assert "Running stage" not in run("dvc repro", second)
    assert (second / "data/many/a").read_text() == "number: 1\n"
    # What another has run, with parameters of another commit, comes from the run cache.
    (first / "params.yaml").write_text("number: 2\n")
    assert "Running stage" in run("dvc repro && dvc push --run-cache --quiet", first)
    (second / "params.yaml").write_text("number: 2\n")
    assert "Running stage" not in run("dvc pull --run-cache --quiet; dvc repro --pull", second)
    assert (second / "data/copy").read_text() == "number: 2\n"


@pytest.fixture
def s3():
    """Start an S3 server on this machine, with a bucket; return its address."""
    for package in ("dvc_s3", "moto", "flask"):
        pytest.importorskip(package, reason="the group remote is not installed")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    address = f"http://127.0.0.1:{port}"
    try:
        _make_bucket(server, address)
        yield address
    finally:
        server.kill()
        server.wait()


def _make_bucket(server, address):
    request = urllib.request.Request(f"{address}/{BUCKET}", method="PUT")
    while True:
        assert server.poll() is None, "the S3 server has ended"
        try:
            urllib.request.urlopen(request).close()
            return
        except OSError:
            time.sleep(0.1)
