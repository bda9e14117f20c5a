"""A study of a user's own: 40 photos with captions in two languages, made by ``polyview new``."""

import shutil
from pathlib import Path

import given
import numpy as np
import pytest
from click.testing import CliRunner
from graph import ROOT
from PIL import Image
from ruamel.yaml import YAML

from pipeline_lib.cli.main import main

NAMES = [f"{number:02}.jpg" for number in range(40)]
SPLITS = dict(zip(NAMES, ["train"] * 30 + ["val"] * 5 + ["test"] * 5, strict=True))


def make(home):
    """Write captions and photos into a folder, and make studies/mine of them there; return it."""
    rng = np.random.default_rng(0)
    (home / "photos").mkdir()
    for name in NAMES:
        pixels = rng.integers(0, 255, (8, 8, 3), np.uint8)
        Image.fromarray(pixels).save(home / "photos" / name, "PNG")
    rows = [(n, SPLITS[n], lang, f"{lang} {n}") for n in NAMES for lang in ("en", "de")]
    lines = ["image\tsplit\tlanguage\ttext", *("\t".join(row) for row in rows)]
    (home / "captions.tsv").write_text("".join(f"{line}\n" for line in lines))
    (home / "studies").mkdir()
    for name in ("dvc.yaml", "params.yaml", "papers.yaml"):
        shutil.copy(ROOT / name, home)
    shutil.copytree(ROOT / ".dvc/plots", home / ".dvc/plots")
    arguments = ["new", "mine", "--captions", "captions.tsv", "--images", "photos"]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(home)
        CliRunner().invoke(main, arguments, catch_exceptions=False)
    return home / "studies/mine"


def change(*keys, to):
    """Change a value of params.yaml."""
    yaml = YAML()
    content = node = yaml.load(Path("params.yaml"))
    for key in keys[:-1]:
        node = node[key]
    node[keys[-1]] = to
    yaml.dump(content, Path("params.yaml"))


def rewrite(*changes):
    """Change words of the table of captions."""
    path = Path("data/raw/mine/captions.tsv")
    text = path.read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path.write_text(text)


def give(name="mine_given", names=NAMES, dim=6):
    """Name a file of features of the photos as an extractor."""
    path = given.give(f"data/raw/{name}.h5", np.eye(len(names), dim) + 1, names)
    change("extractors", name, to={"dataset": "mine", "images": path, "backbone": "given"})


def photo(number):
    return Path("data/raw/mine/images") / NAMES[number]
