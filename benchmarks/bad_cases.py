"""The bad inputs of ``python -m benchmarks.faults --inputs``: by hand, generated, and mutated."""

import copy
import ctypes
import errno
import gzip
import io
import json
import os
import random
import re
import resource
import signal
import struct
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory
from types import SimpleNamespace

import numpy as np
import pandas as pd
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image
from ruamel.yaml import YAML
from safetensors.torch import save_file

from benchmarks.bad_inputs import Case, for_seconds, outcome
from pipeline_lib.checks.study import check_study
from pipeline_lib.cli.main import main as polyview
from pipeline_lib.contract.digests import NO_DIGEST, seal
from pipeline_lib.contract.features import Features, read_features, write_features
from pipeline_lib.contract.problems import raise_problems
from pipeline_lib.contract.reports import write_report
from pipeline_lib.contract.tables import read_images, write_images
from pipeline_lib.contract.word_vectors import WordVectors, read_word_vectors, write_word_vectors
from pipeline_lib.corpora.bitext import read_bitext
from pipeline_lib.corpora.coco import read_coco
from pipeline_lib.corpora.own_table import complete_table
from pipeline_lib.corpora.table import COLUMNS, read_captions_table, table_corpus
from pipeline_lib.export.vectors import embed_table, parts
from pipeline_lib.images.batches import FeatureStore
from pipeline_lib.images.decoding import decode
from pipeline_lib.models.embedder import Embedder
from pipeline_lib.models.joint_space import JointSpace, read_weights
from pipeline_lib.models.preprocessing import Preprocessing
from pipeline_lib.models.translator import Hypothesis
from pipeline_lib.running import publishing
from pipeline_lib.running.publishing import publish
from pipeline_lib.search.captions import kept_vectors
from pipeline_lib.search.index_file import Row, index_schema, read_rows, write_rows
from pipeline_lib.settings.architecture import architecture_form
from pipeline_lib.settings.loading import load_settings
from pipeline_lib.synthesis.engines import Engine
from pipeline_lib.synthesis.translate import translate_sentences
from pipeline_lib.text.vocabulary import Vocabulary
from pipeline_lib.training.checkpoints import load_checkpoint, save_checkpoint

ROOT = Path(__file__).resolve().parent.parent
PARAMS = YAML(typ="safe").load((ROOT / "params.yaml").read_text(encoding="utf-8"))

# Parameters


def read_params(content: bytes, folder: Path) -> None:
    """Load a params.yaml of these bytes, and check the study."""
    (folder / "papers.yaml").write_bytes((ROOT / "papers.yaml").read_bytes())
    (folder / "params.yaml").write_bytes(content)
    raise_problems("params.yaml", check_study(load_settings(folder / "params.yaml")).problems)


def yaml_bytes(content: object) -> bytes:
    """Return a params.yaml of this content."""
    text = io.StringIO()
    YAML().dump(content, text)
    return text.getvalue().encode()


def with_key(keys: tuple, value: object, rename: bool = False) -> dict:
    """Return world's parameters with one key set to a value, or misspelt."""
    content = node = copy.deepcopy(PARAMS)
    for key in keys[:-1]:
        node = node[key]
    if rename:
        node[f"{keys[-1]}x"] = node.pop(keys[-1])
    else:
        node[keys[-1]] = value
    return content


def _leaves(node: object, keys: tuple = ()) -> Iterator[tuple]:
    if isinstance(node, dict) and node:
        for key, value in node.items():
            yield from _leaves(value, (*keys, key))
    else:
        yield keys


FILES = {
    "empty": b"",
    "a list": b"- a\n",
    "a word": b"x\n",
    "Latin-1": "a: é".encode("latin-1"),
    "UTF-16": "root: .".encode("utf-16"),
    "a key twice": b"root: .\nroot: .\n",
    "a bracket": b"root: [.\n",
    "a tab": b"root:\n\t- x\n",
    "NUL": b"root: \0\n",
    "an object of Python": b"!!python/object/apply:os.system [ls]\n",
    "an alias of nothing": b"root: *b\n",
    "deep": b"root: " + 5000 * b"[",
    "two documents": b"root: .\n---\nroot: .\n",
    "null": b"null\n",
    "numbers": b"1: 2\n",
    "random bytes": random.Random(1).randbytes(1000),
}


def _params_cases() -> Iterator[Case]:
    for name, content in FILES.items():
        yield Case("params.yaml: files", name, partial(read_params, content))
    chosen = [keys for keys in _leaves(PARAMS) if len(keys) > 1]
    for keys in chosen[:: max(1, len(chosen) // 25)]:
        for what, content in (
            ("null", with_key(keys, None)),
            ("a mapping", with_key(keys, {"x": 1})),
            ("a typo", with_key(keys, None, rename=True)),
        ):
            name = f"{'.'.join(map(str, keys))} is {what}"
            # A name of the user's own may be any; a list that is there no more is refused or not.
            may = what == "a typo" and keys[0] in ("pools", "pairs", "evaluations", "worlds")
            yield Case("params.yaml: values", name, partial(read_params, yaml_bytes(content)), may)
    kadar = ("recipes", "kadar_en")
    for key, value in (
        ("seeds", [-1]), ("seeds", [10**20]), ("seeds", [1.5]), ("seeds", []), ("seeds", [1, 1]),
        ("margin", float("inf")), ("margin", float("nan")), ("margin", 0), ("margin", "x"),
        ("learning_rate", 1e400), ("learning_rate", -1), ("hidden_dim", 10**6), ("batch_size", 1),
        ("batch_size", 0), ("paper", "kadr2019"), ("languages", ["xx"]), ("languages", ["EN"]),
        ("languages", []), ("dataset", "none"), ("pairs", "wrld"), ("initial", "kadar_en"),
        ("max_epochs", 0), ("precision", "f16"), ("features", "none"), ("vocabulary", True),
    ):  # fmt: skip
        content = with_key((*kadar, key), value)
        yield Case(
            "params.yaml: values", f"{key}: {value}", partial(read_params, yaml_bytes(content))
        )
    for section in ("datasets", "pairs", "recipes", "extractors", "lexicons"):
        content = with_key((section, "none"), next(iter(PARAMS[section].values())))
        yield Case(
            "params.yaml: values", f"{section}.none", partial(read_params, yaml_bytes(content))
        )
    for keys, value in (
        (("evaluations", "retrieval", "split"), "tset"), (("pools", "en"), "translation"),
        (("pairs", "sketch_en", "plus"), "sketch_en"), (("pools", "de"), "machine"),
        (("extractors", "world_lite0", "crop"), 10**6), (("selection_seed"), -1),
        (("pairs", "world_six", "captions", "ja"), ["translation"]), (("root",), "nowhere"),
    ):  # fmt: skip
        keys = (keys,) if isinstance(keys, str) else keys
        run = partial(read_params, yaml_bytes(with_key(keys, value)))
        yield Case("params.yaml: values", f"{keys}: {value}", run)


# Tables

ROW = ("a.jpg", "train", "en", "caption", "0", "a dog", "")


def read_own(content: bytes, folder: Path, name: str = "captions.tsv") -> None:
    """Read a user's own table, as ``polyview new`` does, beside the photo a.jpg."""
    (folder / "images").mkdir(exist_ok=True)
    Image.new("RGB", (8, 8)).save(folder / "images/a.jpg")
    (folder / name).write_bytes(content)
    problems: list[str] = []
    table = complete_table(folder / name, problems)
    table_corpus(table, folder / name, folder / "images", "own", problems)


def read_complete(rows: list[tuple[str, ...]], folder: Path) -> None:
    """Read a complete table, as the stage ``captions`` does."""
    (folder / "images").mkdir(exist_ok=True)
    Image.new("RGB", (8, 8)).save(folder / "images/a.jpg")
    lines = ["\t".join(row) for row in (COLUMNS, *rows)]
    (folder / "captions.tsv").write_text("".join(f"{line}\n" for line in lines))
    read_captions_table(folder, "own")


def row_of(**changes: str) -> tuple[str, ...]:
    """Return a row of a complete table, with some columns changed."""
    return tuple(changes.get(column, value) for column, value in zip(COLUMNS, ROW, strict=True))


_ROWS = {
    **{f"image {v!r}": row_of(image=v) for v in (
        "", "../a.jpg", "/etc/passwd", "a.png", "a.jpg\0", "images/../../a.jpg", "~", "con", ".",
        "A.JPG", "a.jpg/", "\u202egpj.a", "a" * 5000,
    )},
    **{f"split {v!r}": row_of(split=v) for v in ("",)},
    **{f"language {v!r}": row_of(language=v) for v in (
        "", "EN", "english", "e", "e1", "de-AT", "\0",
    )},
    **{f"annotation {v!r}": row_of(annotation=v) for v in ("", "Caption", "captions", "x")},
    **{f"position {v!r}": row_of(position=v) for v in ("", "-1", "01", "1.5", "40000", "x", "٣")},
    **{f"text {v[:9]!r}": row_of(text=v) for v in (
        "", " ", "\0", "a\0b", "\x1b[2J", "\x7f", '"a ""big"" dog"', "\u00a0", "\u0085",
    )},
    **{f"translation_of {v!r}": row_of(annotation="translation", translation_of=v) for v in (
        "en/translation/0", "de/caption/0", "en", "en/caption", "../x", "en/caption/0/1",
    )},
    "a caption that translates": row_of(translation_of="en/caption/1"),
}  # fmt: skip

_TABLES = {
    "nothing": b"", "a blank line": b"\n", "no header": b"a.jpg\ten\ta dog\n",
    "commas": b"image,language,text\na.jpg,en,a dog\n", "semicolons": b"image;language;text\n",
    "UTF-16": "image\tlanguage\ttext\na.jpg\ten\ta dog\n".encode("utf-16"),
    "Latin-1": "image\tlanguage\ttext\na.jpg\tde\tTür\n".encode("latin-1"),
    "too few fields": b"image\tlanguage\ttext\na.jpg\ten\n",
    "too many fields": b"image\tlanguage\ttext\na.jpg\ten\ta\tb\n",
    "a column twice": b"image\timage\tlanguage\ttext\na.jpg\ta.jpg\ten\tx\n",
    "an unknown column": b"image\tlanguage\ttext\tweight\na.jpg\ten\tx\t1\n",
    "quotes around all": b'"image"\t"language"\t"text"\n"a.jpg"\t"en"\t"x"\n',
    "a spreadsheet": b"PK\x03\x04" + bytes(100), "binary": random.Random(2).randbytes(500),
    "the same row twice": b"image\tlanguage\ttext\tposition\n" + 2 * b"a.jpg\ten\tx\t0\n",
    "two splits of a photo": b"image\tsplit\tlanguage\ttext\n"
                             b"a.jpg\ttrain\ten\tx\na.jpg\tval\ten\ty\n",
}  # fmt: skip

_GOOD_TABLES = {
    "CRLF": b"image\tlanguage\ttext\r\na.jpg\ten\ta dog\r\n",
    "a byte order mark": b"\xef\xbb\xbfimage\tlanguage\ttext\na.jpg\ten\ta dog\n",
    "no newline at the end": b"image\tlanguage\ttext\na.jpg\ten\ta dog",
    "columns in another order": b"text\timage\tlanguage\na dog\ta.jpg\ten\n",
    "emoji": "image\tlanguage\ttext\na.jpg\ten\t👩‍👧 🐕\n".encode(),
    "a very long caption": b"image\tlanguage\ttext\na.jpg\ten\t" + 10**6 * b"a " + b"\n",
}


def _table_cases() -> Iterator[Case]:
    for name, row in _ROWS.items():
        yield Case("tables", name, partial(read_complete, [row]))
    circle = [row_of(annotation="translation", position=p, translation_of=f"en/translation/{q}")
              for p, q in (("0", "1"), ("1", "0"))]  # fmt: skip
    yield Case("tables", "a circle of translations", partial(read_complete, circle))
    for name, content in _TABLES.items():
        yield Case("tables", name, partial(read_own, content))
    for name, content in _GOOD_TABLES.items():
        yield Case("tables", name, partial(read_own, content), may_pass=True)
    for name, content in {
        "an open quote": b'image,language,text\na.jpg,en,"x\n',
        "a quote inside": b'image,language,text\na.jpg,en,x"y"z"\n',
        "tabs in .csv": b"image\tlanguage\ttext\na.jpg\ten\tx\n",
    }.items():
        may = name == "a quote inside"
        run = partial(read_own, content, name="captions.csv")
        yield Case("tables", f".csv: {name}", run, may)


# Photos


def photo_bytes(form: str, size: tuple[int, int] = (40, 30), mode: str = "RGB") -> bytes:
    """Return a photo of noise, as a file of this form."""
    pixels = np.random.default_rng(0).integers(0, 255, (size[1], size[0], 3), np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(pixels).convert(mode).save(buffer, form)
    return buffer.getvalue()


FORMS = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF", "PPM")


def read_photo(content: bytes, folder: Path) -> None:
    """Decode a photo of these bytes."""
    (folder / "photo").write_bytes(content)
    decode(folder / "photo")


def _png(width: int, height: int, rows: bytes) -> bytes:
    def chunk(kind: bytes, body: bytes) -> bytes:
        return (
            struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        )

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    start = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header)
    return start + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def _photo_cases() -> Iterator[Case]:
    for form in FORMS:
        whole = photo_bytes(form)
        for share in (0.01, 0.2, 0.5, 0.9):
            cut = whole[: int(share * len(whole))]
            yield Case("photos", f"{form} cut off at {share:.0%}", partial(read_photo, cut),
                       may_pass=form in ("GIF", "WEBP"))  # fmt: skip
        yield Case("photos", f"{form} of one pixel", partial(read_photo, photo_bytes(form, (1, 1))))
        yield Case("photos", f"{form} whole", partial(read_photo, whole), may_pass=True)
    for name, content in {
        "nothing": b"", "text": b"no photo", "HTML": b"<html>404</html>",
        "a pickle": b"\x80\x04K\x01.",
        "SVG": b"<svg xmlns='http://www.w3.org/2000/svg'/>", "PDF": b"%PDF-1.7\n",
        "EPS": b"%!PS-Adobe",
        "a huge claim": _png(100_000, 100_000, b""), "a bomb": _png(30_000, 30_000, bytes(10**8)),
        "no pixels": _png(0, 0, b""), "too few pixels": _png(100, 100, bytes(10)),
        "one row": photo_bytes("PNG", (500, 1)), "32 bits": photo_bytes("TIFF", mode="F"),
    }.items():  # fmt: skip
        yield Case("photos", name, partial(read_photo, content))
    for mode, form in (
        ("CMYK", "JPEG"),
        ("L", "PNG"),
        ("P", "GIF"),
        ("RGBA", "PNG"),
        ("1", "TIFF"),
    ):
        content = photo_bytes(form, mode=mode)
        yield Case("photos", f"{mode} in {form}", partial(read_photo, content), may_pass=True)
    yield Case("photos", "a folder", lambda folder: decode(folder))
    yield Case("photos", "a link to itself", _read_loop)


def _read_loop(folder: Path) -> None:
    (folder / "photo").symlink_to("photo")
    decode(folder / "photo")


# Archives and corpora


def read_zipped(content: bytes, folder: Path) -> None:
    """Read parallel text, of which one language is a gzipped file of these bytes."""
    (folder / "train.en").write_text("a dog\n")
    (folder / "train.de.gz").write_bytes(content)
    read_bitext(folder, "own", languages=["en", "de"])


def _bomb(folder: Path) -> None:
    with gzip.open(folder / "bomb", "wb", compresslevel=1) as file:
        for _ in range(8):
            file.write(bytes(2**26))  # 512 MiB
    read_zipped((folder / "bomb").read_bytes(), folder)


def read_json_corpus(content: bytes, folder: Path) -> None:
    """Read COCO captions from a file of these bytes."""
    (folder / "dataset_coco.json").write_bytes(content)
    read_coco(folder, "coco", languages=["en"], japanese="none", splits="karpathy")


def _archive_cases() -> Iterator[Case]:
    whole = gzip.compress(b"ein Hund\n")
    for name, content in {
        "cut off": whole[:-6], "no archive": b"x", "nothing": b"",
        "a changed byte": whole[:12] + b"x",
        "another length": gzip.compress(b"a\nb\n"), "NUL": gzip.compress(b"a\0b\n"),
        "Latin-1": gzip.compress("Tür\n".encode("latin-1")), "a zip": b"PK\x03\x04" + bytes(60),
        "random bytes": b"\x1f\x8b\x08" + random.Random(3).randbytes(200),
    }.items():  # fmt: skip
        yield Case("archives", name, partial(read_zipped, content))
    yield Case("archives", "half a GiB of zeros", _bomb)
    for name, content in {
        "nothing": b"", "a list": b"[]", "no images": b"{}", "cut off": b'{"images": [{',
        "deep": 100_000 * b"[", "images of numbers": b'{"images": [1, 2]}',
        "Latin-1": b'{"\xe9": 1}',
        "an image without an id": b'{"images": [{"split": "train"}]}', "NaN": b'{"images": NaN}',
        "an id of text": b'{"images": [{"cocoid": "x", "filepath": "", "filename": "", '
                         b'"split": "train", "sentences": []}]}',
        "a split of nobody": b'{"images": [{"cocoid": 1, "filepath": "", "filename": "", '
                             b'"split": "x", "sentences": [{"raw": "x"}]}]}',
        "a sentence of numbers": b'{"images": [{"cocoid": 1, "filepath": "", "filename": "", '
                                 b'"split": "train", "sentences": [{"raw": 5}]}]}',
    }.items():  # fmt: skip
        yield Case("archives", f"JSON: {name}", partial(read_json_corpus, content))


# Artefacts

ROWS = pd.DataFrame(
    {"image_id": [f"d:{n}" for n in range(50)], "dataset": "d", "split": "train",
     "path": [f"{n}.jpg" for n in range(50)]}
)  # fmt: skip


def _features() -> Features:
    vectors = np.random.default_rng(0).normal(size=(50, 8)).astype(np.float32)
    return Features(ROWS["image_id"].to_numpy(object), vectors, {"backbone": "x"})


def _words() -> WordVectors:
    return WordVectors({"en": (["a", "b"], np.ones((2, 3), np.float32))}, ["d:1"], {"dim": 3})


def _sealed_anew(path: Path) -> Path:
    """Give a file the digest of its bytes, as who changes one on purpose could."""
    none = NO_DIGEST.encode()
    content = re.sub(none[:-64] + b"[0-9a-f]{64}", none, path.read_bytes())
    path.write_bytes(content)
    if none in content:
        seal(path)
    return path


Artefact = tuple[Callable[[Path], None], Callable[[Path], object]]

ARTEFACTS: dict[str, Artefact] = {
    "Parquet": (lambda path: write_images(ROWS, path), read_images),
    "HDF5": (lambda path: write_features(_features(), path), read_features),
    "word vectors": (lambda path: write_word_vectors(_words(), path), read_word_vectors),
}
UNGUARDED: dict[str, Artefact] = {
    "Parquet sealed anew": (
        lambda path: write_images(ROWS, path),
        lambda path: read_images(_sealed_anew(path)),
    ),
    "safetensors": (lambda path: save_file({"a": torch.ones(9)}, path), read_weights),
    "checkpoint": (
        lambda path: save_checkpoint(path, {"network": {"a": torch.ones(9)}}),
        lambda path: load_checkpoint(path, torch.device("cpu")),
    ),
}
"""Artefacts of which a change may pass: no digest of theirs tells it."""


def read_damaged(artefact: Artefact, damage: Callable[[bytes], bytes], folder: Path) -> None:
    """Write an artefact, damage its file, and read it."""
    write, read = artefact
    write(folder / "x")
    (folder / "x").write_bytes(damage((folder / "x").read_bytes()))
    read(folder / "x")


def _cut(share: float, content: bytes) -> bytes:
    return content[: int(share * len(content))]


def flipped(share: float, content: bytes) -> bytes:
    """Return content with one bit flipped, at a share of its length."""
    place = int(share * (len(content) - 1))
    return content[:place] + bytes([content[place] ^ 4]) + content[place + 1 :]


def _artefact_cases() -> Iterator[Case]:
    for name, artefact in (ARTEFACTS | UNGUARDED).items():
        unguarded = name in UNGUARDED
        for share in (0, 0.1, 0.5, 0.9):
            run = partial(read_damaged, artefact, partial(_cut, share))
            # A checkpoint that is damaged is begun anew, and says so.
            yield Case("artefacts", f"{name}: cut off at {share:.0%}", run, name == "checkpoint")
        for share in (0.02, 0.15, 0.35, 0.5, 0.65, 0.85, 0.97):
            run = partial(read_damaged, artefact, partial(flipped, share))
            yield Case("artefacts", f"{name}: a changed byte at {share:.0%}", run, unguarded)
        for what, content in (("a pickle", b"\x80\x04K\x01."), ("text", b"x" * 300)):
            run = partial(read_damaged, artefact, lambda _, content=content: content)
            yield Case("artefacts", f"{name}: {what}", run, name == "checkpoint")
        read = artefact[1]
        missing = lambda folder, read=read: read(folder / "nothing")  # noqa: E731
        yield Case("artefacts", f"{name}: missing", missing, name == "checkpoint")
    for name, damage in {
        "no weights": lambda f: (f / "weights.safetensors").unlink(),
        "other weights": lambda f: save_file({"a": torch.ones(1)}, f / "weights.safetensors"),
        "a pickle": lambda f: torch.save({}, f / "weights.safetensors"),
        "broken JSON": lambda f: (f / "architecture.json").write_text("{"),
        "a list": lambda f: (f / "architecture.json").write_text("[]"),
        "no vocabulary": lambda f: (f / "vocabulary.json").unlink(),
        "an empty vocabulary": lambda f: (f / "vocabulary.json").write_text("{}"),
        "another size": lambda f: _resize(f, 5),
        "a huge size": lambda f: _resize(f, 10**15),
    }.items():  # fmt: skip
        for digests in (True, False):
            run = partial(read_model, damage, digests)
            yield Case("artefacts", f"model: {name}, digests: {digests}", run)


def _resize(folder: Path, word_dim: int) -> None:
    path = folder / "architecture.json"
    path.write_text(path.read_text().replace('"word_dim": 4', f'"word_dim": {word_dim}'))


def small_model() -> JointSpace:
    """Return a model of few weights."""
    values = {
        "languages": ["en"], "vocabulary": "pooled", "word_dim": 4, "tune_words": True,
        "text_encoder": "recurrent", "image_head": "mlp", "embed_dim": 4, "similarity": "cosine",
        "absolute": False, "precision": "f32", "orthogonal_map": False, "universal_dim": "none",
        "recurrent": "gru", "recurrent_sharing": "shared", "hidden_dim": 4, "projection": "none",
        "sentence_dropout": 0.0, "normalize_features": False, "image_hidden_dims": [],
        "image_dropout": 0.0,
    }  # fmt: skip
    build = {"pooled": True, "min_count": 1, "markers": "both", "oov": "unk", "max_tokens": 9}
    vocabulary = Vocabulary.build({"en": [["a", "dog"]]}, **build)
    return JointSpace(architecture_form(values).model_validate(values), vocabulary, 3)


def save_model(folder: Path) -> None:
    """Save a small model into a folder, as training does."""
    extractor = {**PARAMS["extractors"]["world_lite0"], "batch_size": 2}
    tokenizers = {"en": PARAMS["tokenizers"]["en"]}
    made = {"tokenizers": tokenizers, "extractor": extractor}
    small_model().save(folder, Preprocessing.model_validate(made), {})


def read_model(damage: Callable[[Path], object], digests: bool, folder: Path) -> None:
    """Save a small model, with or without its digests, damage its folder, and load it."""
    save_model(folder / "m")
    if not digests:
        (folder / "m/SHA256SUMS").unlink()
    damage(folder / "m")
    JointSpace.load(folder / "m")


# Disks

_PRIVATE, _NEW_MOUNTS, _NEW_USER, _READ_ONLY = 1 << 18 | 1 << 14, 0x20000, 0x10000000, 1


def _mount(folder: Path, flags: int = 0) -> bool:
    """Mount a disk of 256 KB that only this process sees; return whether it may."""
    libc = ctypes.CDLL(None)
    first = _NEW_MOUNTS if os.getuid() == 0 else _NEW_MOUNTS | _NEW_USER
    if libc.unshare(first) or libc.mount(None, b"/", None, _PRIVATE, None):
        return False
    return libc.mount(b"tmpfs", str(folder).encode(), b"tmpfs", flags, b"size=256k") == 0


def _limit(folder: Path, flags: int) -> None:
    """Where no disk may be mounted: no file may grow beyond 64 KB, or none be made."""
    if flags == _READ_ONLY:
        folder.chmod(0o500)
    else:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (2**16, 2**16))


def _write_store(path: Path) -> None:
    store = FeatureStore(path.parent, [bytes(32)] * 2, 1, 2, 200_000)
    store.write(0, np.ones((1, 200_000), "<f4").tobytes(), bytes(32))


def _write_folder(path: Path) -> None:
    with publish(path) as folder:
        save_model(folder)
        (folder / "more").write_bytes(bytes(10**6))


def _write_text(path: Path) -> None:
    with publish(path) as file:
        file.write_text("x" * 10**6)


BIG = Features(
    np.array([f"d:{n}" for n in range(999)], object), np.ones((999, 300), np.float32), {}
)

NOISE = [random.Random(n).randbytes(200).hex() for n in range(2500)]
"""Text that no form of file makes smaller."""

INDEX = index_schema(4, "", Path("photos"))

MANY_ROWS = pd.DataFrame(
    {"image_id": [f"d:{n}" for n in range(2500)], "dataset": "d", "split": "train",
     "path": NOISE}
)  # fmt: skip

CAPTIONS = [
    (f"{split}.png", split, "en", "caption", str(number), f"a {60 * 'dog '}", "")
    for split in ("train", "val", "test")
    for number in range(500)
]
"""Of a study that does not fit on the small disk."""


def _write_new_study(path: Path) -> None:
    root = path.parent.parent / "checkout"
    (root / "photos").mkdir(parents=True)
    for number, split in enumerate(("train", "val", "test")):
        Image.new("RGB", (8, 8), (number, 0, 0)).save(root / f"photos/{split}.png")
    (root / "captions.tsv").write_text("".join("\t".join(r) + "\n" for r in (COLUMNS, *CAPTIONS)))
    for name in ("dvc.yaml", "params.yaml", "papers.yaml"):
        (root / name).symlink_to(ROOT / name)
    (root / ".dvc").symlink_to(ROOT / ".dvc")
    (root / "studies").symlink_to(path.parent)
    os.chdir(root)
    given = ["new", path.name, "--captions", "captions.tsv", "--images", "photos", "--traceback"]
    polyview.main(given, standalone_mode=False)


def _small_embedder(path: Path) -> Embedder:
    folder = path.parent.parent / "model"
    save_model(folder)
    return Embedder.load(folder)


def _write_vectors(path: Path) -> None:
    table = path.parent.parent / "sentences.csv"
    table.write_text("language,text\n" + "".join(f"en,{text}\n" for text in NOISE))
    embed_table(_small_embedder(path), table, None, path)


def _write_index(path: Path, count: int = 2500) -> None:
    rows = {
        f"{n}.jpg": Row(n, n, text, "", np.ones(4, np.float32))
        for n, text in enumerate(NOISE[:count])
    }
    write_rows(rows, INDEX, path)


def _write_learnt_captions(path: Path) -> None:
    embedder = SimpleNamespace(embed_sentences=lambda texts, _: np.ones((len(texts), 64)))
    kept_vectors(embedder, {"en": NOISE}, path, "none")


def _write_translations(path: Path) -> None:
    hypothesis = Hypothesis(400 * "x", 0.0, 0.0)
    engine = Engine({}, lambda texts: [[hypothesis] for _ in texts], lambda texts: None, {})
    path.mkdir()
    try:
        translate_sentences(engine, None, NOISE, path, "x")
    finally:
        rmtree(path)


WRITERS: dict[str, Callable[[Path], object]] = {
    "a table": lambda path: write_images(MANY_ROWS, path),
    "features": lambda path: write_features(BIG, path),
    "word vectors": lambda path: write_word_vectors(WordVectors(
        {"en": ([str(n) for n in range(999)], np.ones((999, 300), np.float32))}, [], {}), path),
    "a model": _write_folder,
    "a checkpoint": lambda path: save_checkpoint(path, {"a": torch.ones(10**6)}),
    "weights": lambda path: _in_publish(path, lambda t: save_file({"a": torch.ones(10**6)}, t)),
    "the report's page": _write_text,
    "a report": lambda path: write_report({"a": "x" * 10**6}, path),
    "unfinished features": _write_store,
    "unfinished translations": _write_translations,
    "a new study": _write_new_study,
    "an index of photos": _write_index,
    "vectors for others": _write_vectors,
    "vectors of learnt captions": _write_learnt_captions,
}  # fmt: skip


def _in_publish(path: Path, write: Callable[[Path], None]) -> None:
    with publish(path) as temporary:
        write(temporary)


def _on_disk(write: Callable[[Path], object], flags: int, folder: Path) -> None:
    disk = folder / "disk"
    disk.mkdir()
    if not _mount(disk, flags):
        _limit(disk, flags)
    try:
        write(disk / "artefact")
    finally:
        _nothing_is_left(disk)


def _nothing_is_left(disk: Path) -> None:
    left = [path.name for path in disk.iterdir() if path.suffix not in (".f32", ".sha256")]
    if left:
        raise AssertionError(f"left on the disk: {left}")


def _with_error(write: Callable[[Path], object], folder: Path) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    disk = folder / "disk"
    disk.mkdir()
    publishing.os.fsync = fail
    try:
        write(disk / "artefact")
    finally:
        _nothing_is_left(disk)


def _disk_cases() -> Iterator[Case]:
    for name, write in WRITERS.items():
        yield Case("disks", f"{name}: full", partial(_on_disk, write, 0))
        yield Case("disks", f"{name}: read-only", partial(_on_disk, write, _READ_ONLY))
        yield Case("disks", f"{name}: input/output error", partial(_with_error, write))


# Generated inputs


def _made(read: Callable[[object, Path], None], made: st.SearchStrategy, folder: Path) -> Counter:
    ended: Counter[str] = Counter()

    @settings(max_examples=40, database=None, deadline=None, derandomize=True,
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(made)
    def tried(value: object) -> None:
        ended[outcome(lambda: read(value, folder))] += 1

    tried()
    return ended


def _hypothesis_cases() -> Iterator[Case]:
    text = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
    values = st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | text,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
        max_leaves=5,
    )
    leaves = [keys for keys in _leaves(PARAMS) if len(keys) > 1]

    def params(drawn: tuple, folder: Path) -> None:
        read_params(json.dumps(with_key(*drawn)).encode(), folder)

    cells = (
        st.sampled_from(["a.jpg", "en", "de", "train", "caption", "0", "en/caption/0", ""]) | text
    )
    tables = st.lists(st.lists(cells, min_size=7, max_size=7), min_size=1, max_size=3)
    for name, read, made in (
        ("values of params.yaml", params, st.tuples(st.sampled_from(leaves), values)),
        ("params.yaml of bytes", read_params, st.binary(max_size=200)),
        ("tables of cells", read_complete, tables),
        ("tables of bytes", read_own, st.binary(max_size=200)),
        ("photos of bytes", read_photo, st.binary(max_size=200)),
        ("archives of bytes", read_zipped, st.binary(max_size=200)),
        (
            "JSON",
            lambda value, folder: read_json_corpus(json.dumps(value).encode(), folder),
            values,
        ),
    ):
        yield Case("made by hypothesis", name, partial(_made, read, made), may_pass=True)


# Mutations


def mutated(content: bytes, chance: random.Random) -> bytes:
    """Return bytes with one to eight changes: of bits, of numbers, of places, of length."""
    found = bytearray(content)
    for _ in range(chance.choice([1, 1, 2, 4, 8])):
        place, length = chance.randrange(len(found) + 1), chance.choice([1, 2, 4, 8, 64])
        how = chance.randrange(6)
        if how == 0 and found:
            found[place % len(found)] ^= 1 << chance.randrange(8)
        elif how == 1:
            found[place : place + length] = chance.choice([b"\0", b"\xff", b"\x7f"]) * length
        elif how == 2:
            found[place : place + length] = chance.randbytes(length)
        elif how == 3:
            del found[place : place + length]
        elif how == 4:
            found[place:place] = found[: chance.randrange(65)]
        elif chance.random() < 0.3:
            del found[place:]
    return bytes(found)


def _fuzzed(
    seeds: list[bytes], read: Callable[[bytes, Path], object], seconds: float, folder: Path
) -> Counter[str]:
    chance = random.Random(len(seeds[0]))

    def tries() -> Iterator[Callable[[], object]]:
        while True:
            yield partial(read, mutated(chance.choice(seeds), chance), folder)

    return for_seconds(seconds, tries())


def _bytes_of(artefact: Artefact) -> list[bytes]:
    with TemporaryDirectory() as folder:
        artefact[0](Path(folder) / "x")
        return [(Path(folder) / "x").read_bytes()]


def _read_bytes(artefact: Artefact, content: bytes, folder: Path) -> None:
    (folder / "x").write_bytes(content)
    artefact[1](folder / "x")


Fuzzed = tuple[list[bytes], Callable[[bytes, Path], object]]
"""Whole files, and what reads changed ones."""


def _readers() -> dict[str, list[Fuzzed]]:
    """Return what is fuzzed, by the form of its files."""
    table = ["\t".join(row) for row in (COLUMNS, ROW, row_of(position="1"))]
    artefacts = {
        name: (_bytes_of(artefact), partial(_read_bytes, artefact))
        for name, artefact in (ARTEFACTS | UNGUARDED).items()
    }
    of_form = {
        form: [made for name, made in artefacts.items() if name.startswith(names)]
        for form, names in {
            "Parquet": ("Parquet",),
            "HDF5": ("HDF5", "word vectors"),
            "safetensors": ("safetensors",),
            "checkpoints": ("checkpoint",),
        }.items()
    }
    sentences = pd.DataFrame({"language": ["en", "de"] * 9, "text": ["a dog", "Hund"] * 9})
    whole = {"parquet": sentences.to_parquet(), "tsv": sentences.to_csv(sep="\t").encode()}
    embedded = {
        form: ([content], partial(_read_sentences, form)) for form, content in whole.items()
    }
    of_form["Parquet"] += [embedded["parquet"], (_index_file(), _read_index)]
    return {
        "images": [([photo_bytes(form)], read_photo) for form in FORMS],
        **of_form,
        "YAML": [([yaml_bytes(PARAMS)], read_params)],
        "TSV": [embedded["tsv"]]
        + [(["\n".join([*table, ""]).encode()], read) for read in (read_own, read_raw)],
    }


def read_raw(content: bytes, folder: Path) -> None:
    """Read a complete table of these bytes, as the stage ``captions`` does."""
    (folder / "images").mkdir(exist_ok=True)
    Image.new("RGB", (8, 8)).save(folder / "images/a.jpg")
    (folder / "captions.tsv").write_bytes(content)
    read_captions_table(folder, "own")


def _read_sentences(form: str, content: bytes, folder: Path) -> None:
    """Read sentences to embed from a table of these bytes."""
    path = folder / f"table.{form}"
    path.write_bytes(content)
    for part in parts(path):
        part.to_pylist()


def _index_file() -> list[bytes]:
    with TemporaryDirectory() as folder:
        _write_index(Path(folder) / "x", 20)
        return [(Path(folder) / "x").read_bytes()]


def _read_index(content: bytes, folder: Path) -> None:
    """Read an index of these bytes, of which no changed vector may pass."""
    (folder / "x").write_bytes(content)
    rows = read_rows(folder / "x", INDEX)
    if any(row.vector is None or list(row.vector) != [1, 1, 1, 1] for row in rows.values()):
        raise AssertionError("a changed vector")


def _mutation_cases(minutes: float) -> Iterator[Case]:
    for form, fuzzed in _readers().items():
        for number, (seeds, read) in enumerate(fuzzed):
            run = partial(_fuzzed, seeds, read, 60 * minutes / len(fuzzed))
            yield Case(f"mutated: {form}", f"{form} {number}", run, may_pass=True)


def all_cases(minutes: float) -> Iterator[Case]:
    """Yield all bad inputs; mutated files of each form are read for so many minutes."""
    yield from _params_cases()
    yield from _table_cases()
    yield from _photo_cases()
    yield from _archive_cases()
    yield from _artefact_cases()
    yield from _disk_cases()
    yield from _hypothesis_cases()
    yield from _mutation_cases(minutes)
