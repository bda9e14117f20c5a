"""``polyview serve``: the search as a page on this machine."""

import signal
import socket
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pipeline_lib.cli.example import example
from pipeline_lib.cli.search import FILE, FOLDER, PRESENT_FILE, print_unreadable
from pipeline_lib.contract.problems import ContractError, warn

if TYPE_CHECKING:
    from pipeline_lib.models.embedder import Embedder
    from pipeline_lib.search.captions import Captions

_PATIENCE = 3
"""Seconds that Ctrl+C waits for answers that are not done; a stalled upload may never be."""


@click.command(
    short_help="Search in the browser.",
    no_args_is_help=True,
    epilog=example("polyview serve data/models/mule/seed-1 photos/", "stopped"),
)
@click.argument("model", type=FOLDER)
@click.argument("photos", type=FOLDER)
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8000, show_default=True,
    help="Port of the page; 0 takes a free one.",
)  # fmt: skip
@click.option(
    "--captions", type=PRESENT_FILE,
    help="Training captions (data/pairs/NAME.parquet). Default: those of the model's study.",
)  # fmt: skip
@click.option("--index", type=FILE, help="File of the index. Default: one in your cache folder.")
def serve(model: Path, photos: Path, port: int, captions: Path | None, index: Path | None) -> None:
    """Serve a page on this machine (127.0.0.1) that searches the photos below the folder PHOTOS.

    MODEL is the folder of a trained model. For each photo the page can show the nearest training
    captions, from the model's study or from --captions. Needs: uv sync --group serve
    """
    try:
        import uvicorn

        from pipeline_lib.search.server import build_app
    except ImportError as error:
        raise ContractError(f"serve needs {error.name}: run uv sync --group serve") from error
    import torch  # seconds, which --help does without

    from pipeline_lib.models.embedder import Embedder
    from pipeline_lib.search.index import check_place, default_index, update_index
    from pipeline_lib.search.searcher import Searcher

    with _listen(port) as listening:
        embedder, file = Embedder.load(model), index or default_index(model, photos)
        check_place(file)
        found = _load_captions(embedder, captions, file.parent)
        # Last of what may fail: to index a folder may take hours.
        searcher = Searcher(embedder, update_index(embedder, photos, file))
        print_unreadable(searcher.index)
        searcher.load()
        searcher.load_network()
        # A query is small, and shares the machine with what shows its photos.
        torch.set_num_threads(1)
        app = build_app(searcher, found)
        config = uvicorn.Config(
            app, log_level="warning", server_header=False, timeout_graceful_shutdown=_PATIENCE
        )
        server = uvicorn.Server(config)
        # From now on Ctrl+C is how it ends. An exception could get lost while modules are imported.
        signal.signal(signal.SIGINT, lambda *_: setattr(server, "should_exit", True))
        click.echo(f"http://127.0.0.1:{listening.getsockname()[1]}  (Ctrl+C stops it)")
        server.run([listening])


def _load_captions(embedder: "Embedder", captions: Path | None, folder: Path) -> "Captions | None":
    """Return the captions that explain photos; None where there are none, or none fit."""
    from pipeline_lib.search.captions import load_captions, study_captions

    table = captions or study_captions(embedder.folder)
    try:
        return load_captions(embedder, table, folder) if table else None
    except ContractError as error:
        if captions:
            raise
        warn(
            f"{error}\nThe page will not explain photos. To have it do so, name the training "
            "captions by --captions"
        )
        return None


def _listen(port: int) -> socket.socket:
    listening = socket.socket()
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind(("127.0.0.1", port))
        listening.listen()  # who asks before the server is ready waits, instead of being refused
    except OSError as error:
        raise ContractError(f"port {port}: {error.strerror}. Choose another: --port") from error
    return listening
