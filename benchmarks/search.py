"""How long ``polyview serve`` takes for a query at many photos, measured in the server.

python -m benchmarks.search [--photos N] [--dim N] [--queries N]: vectors are synthetic, the model
is untrained and of the sizes of Kádár et al. 2019, requests come one after another. The reference
is numpy's product of all vectors with one, sorted, in the same process.
"""

import json
import logging
import socket
import threading
import time
import urllib.request
from importlib.util import find_spec

import click
import numpy as np
import torch

from pipeline_lib.models.embedder import Embedder
from pipeline_lib.models.joint_space import JointSpace
from pipeline_lib.models.preprocessing import Preprocessing
from pipeline_lib.search.index import PhotoIndex
from pipeline_lib.search.searcher import Searcher
from pipeline_lib.settings.architecture import architecture_form
from pipeline_lib.text.vocabulary import Vocabulary

LANGUAGES = ["en", "de"]
WORDS = 10_000


@click.command(help=__doc__)
@click.option("--photos", default=100_000, show_default=True)
@click.option("--dim", default=1024, show_default=True)
@click.option("--queries", default=200, show_default=True)
def main(photos: int, dim: int, queries: int) -> None:
    """Print the percentiles of the server's own times."""
    if find_spec("uvicorn") is None:
        raise SystemExit("the server is missing: uv run --group serve python -m benchmarks.search")
    torch.set_num_threads(1)
    searcher = Searcher(_embedder(dim), _index(photos, dim))
    searcher.load()
    times, plain = _times(searcher, queries), np.median(_plain(searcher.index.vectors, queries))
    median, most, longest = np.percentile(times, [50, 95, 100])
    click.echo(f"{photos:,} photos, {dim} numbers each, {queries} queries")
    click.echo(f"median {median:.1f} ms, p95 {most:.1f} ms, longest {longest:.1f} ms")
    click.echo(f"median: {median / plain:.2f} times a plain product and sort ({plain:.1f} ms)")


def _index(photos: int, dim: int) -> PhotoIndex:
    vectors = np.random.default_rng(0).standard_normal((photos, dim), np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return PhotoIndex(
        None, [f"{number}.jpg" for number in range(photos)], vectors, {}, np.arange(photos)
    )


def _embedder(dim: int) -> Embedder:
    words = {language: [[f"{language}{n}" for n in range(WORDS)]] for language in LANGUAGES}
    vocabulary = Vocabulary.build(
        words, pooled=True, min_count=1, markers="both", oov="unk", max_tokens=100
    )
    values = {
        "languages": LANGUAGES, "vocabulary": "pooled", "word_dim": 300, "tune_words": True,
        "text_encoder": "recurrent", "image_head": "mlp", "embed_dim": dim,
        "similarity": "cosine", "absolute": False, "precision": "f32", "orthogonal_map": False,
        "universal_dim": "none", "recurrent": "gru", "recurrent_sharing": "shared",
        "hidden_dim": dim, "projection": "none", "sentence_dropout": 0.0,
        "normalize_features": True, "image_hidden_dims": [], "image_dropout": 0.0,
    }  # fmt: skip
    architecture = architecture_form(values).model_validate(values)
    tokenizer = {"tokenizer": "moses", "lowercase": True, "normalize": True}
    extractor = {
        "dataset": "none", "images": "none", "backbone": "efficientnet_lite0",
        "weights": "package", "transform": "squash", "resize": 224, "crop": 224,
        "precision": "f32", "batch_size": 32,
    }  # fmt: skip
    preprocessing = Preprocessing.model_validate(
        {"tokenizers": dict.fromkeys(LANGUAGES, tokenizer), "extractor": extractor}
    )
    return Embedder(JointSpace(architecture, vocabulary, 1280).eval(), preprocessing)


def _times(searcher: Searcher, queries: int) -> list[float]:
    """Return the server's times in ms, for queries of eight words."""
    import uvicorn  # of the group serve, as the server

    from pipeline_lib.search.server import build_app

    logging.disable(logging.WARNING)
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(build_app(searcher, None), log_level="error"))
    thread = threading.Thread(target=server.run, args=([listening],))
    thread.start()
    while not server.started:
        time.sleep(0.01)
    draw = np.random.default_rng(1)
    address = f"http://127.0.0.1:{listening.getsockname()[1]}/search"
    try:
        return [_ask(address, draw.integers(0, WORDS, 8)) for _ in range(queries)]
    finally:
        server.should_exit = True
        thread.join()


def _plain(vectors: np.ndarray, queries: int) -> list[float]:
    """Return the times in ms to score all photos by one vector and sort them."""
    times = []
    for query in vectors[np.random.default_rng(2).integers(0, len(vectors), queries)]:
        start = time.perf_counter()
        np.argsort(-(vectors @ query))
        times.append((time.perf_counter() - start) * 1000)
    return times


def _ask(address: str, words: np.ndarray) -> float:
    text = " ".join(f"en{number}" for number in words)
    body = json.dumps({"terms": [{"text": text}]}).encode()
    request = urllib.request.Request(address, body, {"content-type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        return float(answer.headers["server-timing"].partition("dur=")[2])


if __name__ == "__main__":
    main()
