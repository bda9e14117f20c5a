"""``polyview serve`` as a user starts and stops it."""

import contextlib
import json
import os
import re
import shutil
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
from pipeline_lib.contract.digests import write_sums
from pipeline_lib.search.captions import study_captions

LISTENS = "0A"
LOOPBACK = "0100007F"
"""127.0.0.1, as Linux writes it."""


@contextlib.contextmanager
def running(model, photos, index, stderr=subprocess.DEVNULL):
    """Yield the running command and the port that it printed."""
    command = [Path(sys.executable).parent / "polyview", "serve", model, photos]
    command += ["--port", "0", "--index", index]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=stderr, text=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    try:
        said = process.stdout.readline()
        yield process, int(re.match(r"http://127\.0\.0\.1:(\d+) ", said)[1])
    finally:
        process.kill()
        process.communicate()


@pytest.fixture
def started(colours, tmp_path):
    with running(colours / "model", colours / "photos", tmp_path / "index.parquet") as command:
        yield command


def test_what_it_leaves_out_is_said_and_the_page_is_served(colours, tmp_path):
    """A photo that cannot be read, and captions that it found by itself and cannot use."""
    study = tmp_path / "study"
    model = shutil.copytree(colours / "model", study / "data/models/mine/seed-1")
    recipe = json.loads((model / "recipe.json").read_text()) | {"pairs": "mine"}
    (model / "recipe.json").write_text(json.dumps(recipe))
    write_sums(model)
    (study / "data/pairs").mkdir()
    (study / "data/pairs/mine.parquet").write_bytes(b"PAR1")
    assert study_captions(model) == study / "data/pairs/mine.parquet"
    photos = shutil.copytree(colours / "photos", tmp_path / "photos")
    (photos / "broken.jpg").write_bytes(b"no photo")
    with open(tmp_path / "said", "w+") as said:
        with running(model, photos, tmp_path / "index.parquet", said) as (_, port):
            about = answer(port, request(path="/about", host=f"127.0.0.1:{port}"))[2]
        said.seek(0)
        text = said.read()
    assert json.loads(about)["captions"] is False
    assert "unreadable: broken.jpg: expected an image in one of" in text
    assert "mine.parquet: expected training captions as a study has them" in text
    assert "To have it do so, name the training captions by --captions" in text


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


def test_it_ends_at_once_when_it_is_interrupted(started):
    process, _ = started
    process.send_signal(signal.SIGINT)  # as soon as the address is there
    assert process.wait(timeout=300) == 0


def test_an_upload_that_has_stalled_does_not_keep_it_from_ending(colours, tmp_path):
    with (
        open(tmp_path / "said", "w+") as said,
        running(colours / "model", colours / "photos", tmp_path / "i.parquet", said) as command,
    ):
        process, port = command
        assert answer(port, request(host=f"127.0.0.1:{port}"))[0] == 200
        sent = request("POST", "/photos", b"x" * 1000, "localhost", "application/octet-stream")
        with socket.create_connection(("127.0.0.1", port)) as stalled:
            stalled.sendall(sent[:-1])
            answer(port, request(host=f"127.0.0.1:{port}"))  # it has been read by then
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=300) == 0
        said.seek(0)
        assert "Traceback" not in said.read()


def test_a_taken_port_is_named_before_photos_are_indexed(colours, tmp_path):
    index = tmp_path / "index.parquet"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        given = ["serve", colours / "model", colours / "photos", "--port", port, "--index", index]
        result = CliRunner().invoke(main, [*map(str, given)])
    assert "Choose another: --port" in str(result.exception)
    assert not index.exists()


def test_an_index_that_cannot_be_kept_is_named_before_captions_are_embedded(colours, tmp_path):
    (tmp_path / "file").write_text("")
    given = ["serve", colours / "model", colours / "photos", "--port", "0"]
    result = CliRunner().invoke(
        main, [*map(str, given), "--index", f"{tmp_path}/file/index.parquet"]
    )
    assert "expected a place to keep the index in" in str(result.exception)


@pytest.mark.parametrize("made", [False, True])
def test_captions_that_cannot_be_read_are_named_before_photos_are_indexed(colours, tmp_path, made):
    index, captions = tmp_path / "index.parquet", tmp_path / "captions.parquet"
    if made:
        captions.write_bytes(b"x")
    given = ["serve", colours / "model", colours / "photos", "--port", "0"]
    given += ["--captions", captions, "--index", index]
    result = CliRunner().invoke(main, [*map(str, given)])
    assert "captions.parquet" in f"{result.output} {result.exception}"
    assert "Delete" not in f"{result.output} {result.exception}", "they may be the user's own"
    assert not index.exists()
