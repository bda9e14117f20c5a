"""The tiny model's page, served to the tests of this folder."""

import pytest
import tiny_photos
from pngs import png

from pipeline_lib.contract.tables import write_pairs
from pipeline_lib.models.embedder import Embedder
from pipeline_lib.search.captions import load_captions
from pipeline_lib.search.index import update_index
from pipeline_lib.search.searcher import Searcher


@pytest.fixture(scope="session")
def app(colours, tmp_path_factory):
    """Return the application of four photos, beside whose folder a secret lies."""
    from serving import SECRET

    from pipeline_lib.search.server import build_app

    cache = tmp_path_factory.mktemp("cache")
    (colours / "secret.txt").write_bytes(SECRET)
    (colours / "photos/secret.txt").write_bytes(SECRET)
    embedder = Embedder.load(colours / "model")
    index = update_index(embedder, colours / "photos", cache / "index.parquet")
    write_pairs(tiny_photos.captions(), cache / "pairs.parquet")
    captions = load_captions(embedder, cache / "pairs.parquet", cache)
    return build_app(Searcher(embedder, index), captions)


@pytest.fixture(scope="session")
def port(app):
    """Return the port of a server of :func:`app`."""
    from serving import serving

    with serving(app) as number:
        yield number


@pytest.fixture(scope="session")
def bomb():
    """Return a PNG of 30,000 x 30,000 black pixels: 100 kB, or 2.7 GB."""
    return png(30_000, 30_000, 1, 0, bytes(3751) * 30_000)
