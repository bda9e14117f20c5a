"""``polyview serve`` as a user starts and stops it."""

import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("uvicorn", reason="the group serve is not installed")

from click.testing import CliRunner
from serving import answer, request

from pipeline_lib.cli.main import main

LISTENS = "0A"
LOOPBACK = "0100007F"
"""127.0.0.1, as Linux writes it."""


@pytest.fixture
def started(colours, tmp_path):
    """Return the running command and the port that it printed."""
    command = [Path(sys.executable).parent / "polyview", "serve", colours / "model"]
    command += [colours / "photos", "--port", "0", "--index", tmp_path / "index.parquet"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    said = process.stdout.readline()
    yield process, int(re.match(r"http://127\.0\.0\.1:(\d+) ", said)[1])
    process.kill()
    process.communicate()


def test_it_listens_on_the_loopback_address_alone_until_it_is_interrupted(started):
    process, port = started
    assert b"<title>Polyview" in answer(port, request(host=f"127.0.0.1:{port}"))[2]
    rows = [
        row.split()
        for table in ("tcp", "tcp6")
        for row in Path(f"/proc/{process.pid}/net/{table}").read_text().splitlines()[1:]
    ]
    listening = [row[1] for row in rows if row[3] == LISTENS]
    assert [place for place in listening if place.endswith(f":{port:04X}")] == [
        f"{LOOPBACK}:{port:04X}"
    ]
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=300) == 0


def test_a_taken_port_is_named_before_photos_are_indexed(colours, tmp_path):
    index = tmp_path / "index.parquet"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        given = ["serve", colours / "model", colours / "photos", "--port", port, "--index", index]
        result = CliRunner().invoke(main, [*map(str, given)])
    assert "Choose another: --port" in str(result.exception)
    assert not index.exists()


@pytest.mark.parametrize("made", [False, True])
def test_captions_that_cannot_be_read_are_named_before_photos_are_indexed(colours, tmp_path, made):
    index, captions = tmp_path / "index.parquet", tmp_path / "captions.parquet"
    if made:
        captions.write_bytes(b"x")
    given = ["serve", colours / "model", colours / "photos", "--port", "0"]
    given += ["--captions", captions, "--index", index]
    result = CliRunner().invoke(main, [*map(str, given)])
    assert "captions.parquet" in f"{result.output} {result.exception}"
    assert "Run dvc repro" not in f"{result.output} {result.exception}"
    assert not index.exists()
