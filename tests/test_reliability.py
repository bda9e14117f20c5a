"""docs/reliability.md shows what is said today: each row's input is tried."""

import errno
import os
import re
import shutil
from functools import partial
from pathlib import Path

import numpy as np
import own_study
import pytest
import tiny
import torch
from graph import ROOT
from own_study import change, give, photo, rewrite
from safetensors.torch import save_file

from benchmarks import bad_cases
from pipeline_lib.checks.study import check_study
from pipeline_lib.cli.main import main
from pipeline_lib.contract.problems import raise_problems, warn
from pipeline_lib.models.joint_space import JointSpace
from pipeline_lib.running.edge import MISTAKE, explained
from pipeline_lib.search.index import default_index
from pipeline_lib.settings.loading import load_settings
from pipeline_lib.settings.messages import lines_of
from pipeline_lib.training.checkpoints import load_checkpoint
from pipeline_lib.training.doubts import doubts
from pipeline_lib.training.fitting import fit

PAGE = (ROOT / "docs/reliability.md").read_text(encoding="utf-8")
ROWS = dict(re.findall(r"^\| (.+?) \| (.*`.*) \|$", PAGE.split("## What is said")[1], re.MULTILINE))
"""The shown messages by the inputs that have them."""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Return the folder of a study of 40 photos in two languages, made by ``polyview new``."""
    home = tmp_path_factory.mktemp("home")
    own_study.make(home)
    return home


@pytest.fixture
def folder(made, tmp_path, monkeypatch):
    """Return a copy of that study, in which the process is."""
    shutil.copytree(made, tmp_path / "home", symlinks=True)
    study = tmp_path / "home/studies/mine"
    (study / "data/raw/mine/images").unlink()
    shutil.copytree(made / "photos", study / "data/raw/mine/images")
    monkeypatch.chdir(study)
    return study


def study(*makes):
    """Return what checks the study in which these are changed."""

    def run(folder):
        for make in makes:
            make()
        found = check_study(load_settings())
        for sentence in lines_of(Path("params.yaml"), found.warnings):
            warn(f"params.yaml: {sentence}")
        raise_problems("params.yaml", [*found.problems, *found.missing])

    return run


def params(*contents):
    """Return what reads each of these as the bytes of a params.yaml."""
    return [partial(bad_cases.read_params, content) for content in contents]


def value(keys, *values):
    """Return what loads world with each of these values of a key."""
    path = keys.split(".")
    return params(*(bad_cases.yaml_bytes(bad_cases.with_key(path, each)) for each in values))


def table(**changes):
    """Return what reads a table of one row."""
    return partial(bad_cases.read_complete, [bad_cases.row_of(**changes)])


def artefact(damage, name="HDF5"):
    return partial(bad_cases.read_damaged, bad_cases.ARTEFACTS[name], damage)


def model(damage, digests=True):
    return partial(bad_cases.read_model, damage, digests)


def seed_that_is_missing(folder):
    JointSpace.load(folder / "seed-3")


def broken_checkpoint(folder):
    (folder / "checkpoint.pt").write_bytes(b"PK")
    load_checkpoint(folder / "checkpoint.pt", torch.device("cpu"))


def failing(number):
    def run(folder):
        raise OSError(number, os.strerror(number), str(folder / "x"))

    return run


def too_much(folder):
    raise MemoryError


def not_a_number(folder):
    recipe = tiny.recipe(learning_rate=1e38, caption_caption_probability=0)
    learner = tiny.learner(recipe)
    fit(learner, tiny.examples(learner), lambda space: {"recall_sum": 0.0}, 1, folder, "test")


def doubtful(history, **changes):
    """Return what says what is doubtful in a run of this history."""

    def run(folder):
        recipe = tiny.recipe(**changes)
        learner = tiny.learner(recipe)
        train, val = (tiny.examples(learner, split) for split in ("train", "val"))
        base = {"recall_sum": 1200.0, "loss_image_caption": 0.1, "loss_caption_caption": 0.1}
        warn("; ".join(doubts([base | history], recipe, train, val)))

    return run


KADAR = "recipes.kadar_en"
LARGE = bad_cases.with_key(("recipes", "kadar_en", "hidden_dim"), 100_000)
LARGE["recipes"]["kadar_en"]["embed_dim"] = 100_000
INPUTS = {
    "no `params.yaml`": lambda _: load_settings(Path("nowhere/params.yaml")),
    "an empty `params.yaml`; a list": params(b"", b"- a\n"),
    "one in Latin-1": params("root: .\n# é\n".encode("latin-1")),
    "a key twice": params(b"root: .\na: 1\nroot: .\n"),
    "an unknown paper": value(f"{KADAR}.paper", "kadr2019"),
    "a typo in a data set's key": value("datasets.world.rwa", "x"),
    "no reader, or a wrong one": value(
        "datasets.world", {"raeder": "table", "raw": "x"}, {"reader": "tabel", "raw": "x"}
    ),
    "seed −1; 1e20": value(f"{KADAR}.seeds", [-1], [1e20]),
    "margin `.inf`; learning rate 1e400": [
        *value(f"{KADAR}.margin", float("inf")), *value(f"{KADAR}.learning_rate", 1e400),
    ],
    "`hidden_dim` and `embed_dim: 100000`": params(bad_cases.yaml_bytes(LARGE)),
    "a batch of one": value(f"{KADAR}.batch_size", 1),
    "a batch larger than the data": study(
        partial(change, "recipes", "mine", "batch_size", to=128)
    ),
    "a name where none is defined": value("lexicons", {}),
    "a data set called `none`": value("datasets.none", {"reader": "table", "raw": "x"}),
    "pairs that add themselves": value("pairs.sketch_en.plus", "world_de_sketch_en"),
    "a kind that the data lacks": study(partial(change, "pools", "de", to="translation")),
    "a language that nothing validates": study(
        partial(change, "pairs", "mine", "validation", to={"en": ["caption"]})
    ),
    "a language that one of two sets lacks": study(
        partial(change, "pairs", "mine", "captions", to={"en": ["caption"]})
    ),
    "a mistyped split": study(partial(change, "evaluations", "retrieval", "split", to="tset")),
    "no test split": study(partial(rewrite, ("\ttest\t", "\ttrain\t"))),
    "`dev` for `val`": study(partial(rewrite, ("\tval\t", "\tdev\t"))),
    "one training or validation photo": study(
        partial(rewrite, *((f"{name}\tval", f"{name}\ttrain") for name in own_study.NAMES[30:34]))
    ),
    "photos without features": study(
        partial(change, "datasets", "more", to={"reader": "table", "raw": "data/raw/mine"}),
        partial(change, "extractors", "mine_lite0", "dataset", to="more"),
    ),
    "given features of other photos": study(partial(give, names=own_study.NAMES[5:])),
    "the same photo in training and test": study(
        lambda: shutil.copy(photo(0), photo(39))
    ),
    "an image path out of the folder": table(image="../a.jpg"),
    "a column twice": partial(bad_cases.read_raw, "\t".join(
        [*bad_cases.COLUMNS, "text"]
    ).encode()),
    "a circle in `translation_of`": partial(bad_cases.read_complete, [
        bad_cases.row_of(annotation="translation", position=p, translation_of=f"en/translation/{q}")
        for p, q in (("0", "1"), ("1", "0"))
    ]),
    "`translation` without it": table(annotation="translation"),
    "NUL and other controls": table(text="a\0b"),
    "zero-width, marks of direction": table(text="a\u200bb"),
    "captions of punctuation": table(text="?!"),
    "quoted fields between tabs": table(text='"a ""big"" dog"'),
    "a caption in quotes": table(text='"a dog"'),
    "a photo of 1 × 1": partial(bad_cases.read_photo, bad_cases.photo_bytes("PNG", (1, 1))),
    "an artefact cut off, or something else": artefact(lambda _: 300 * b"x"),
    "one that is empty; missing": [
        artefact(lambda _: b""), lambda folder: bad_cases.read_features(folder / "nothing"),
    ],
    "a changed byte of one": artefact(partial(bad_cases.flipped, 0.9)),
    "a model with broken JSON, a pickle, other weights, a file less": [
        model(lambda f: (f / "architecture.json").write_text("{")),
        model(lambda f: torch.save({}, f / "weights.safetensors")),
        model(lambda f: save_file({"a": torch.ones(1)}, f / "weights.safetensors")),
        model(lambda f: (f / "vocabulary.json").unlink()),
    ],
    "a missing seed": seed_that_is_missing,
    "a damaged checkpoint": broken_checkpoint,
    "a full disk; a read-only one": [failing(errno.ENOSPC), failing(errno.EROFS)],
    "memory that is used up": too_much,
    "a loss that is no number": not_a_number,
    "a run at chance level": doubtful({"recall_sum": 33.1}),
    "a collapsed space": doubtful({"loss_image_caption": 0.398}),
    "caption–caption batches that never begin": doubtful(
        {"loss_caption_caption": np.nan}, caption_caption_below_loss=0.01
    ),
    "a study that is there already": lambda _: _as_a_user("new", "mine", *GIVEN),
    "an `--index` that is none": lambda folder: _as_a_user(
        "search", _saved(folder), photo(0).parent, "dog", "--index", "dvc.yaml"
    ),
    "no home folder for the index": lambda folder: default_index(folder, folder),
    "a table to embed without its columns": lambda folder: [
        Path("sentences.csv").write_text("sentence\na dog\n"),
        _as_a_user("embed", _saved(folder), "sentences.csv", "vectors.parquet"),
    ],
}  # fmt: skip
GIVEN = ("--captions", "captions.tsv", "--images", "photos")


def _nobody():
    raise RuntimeError("Could not determine home directory.")


def _as_a_user(*given):
    if given[0] == "new":
        os.chdir("../..")
    main.main([*map(str, given), "--traceback"], standalone_mode=False)


def _saved(folder):
    bad_cases.save_model(folder / "model")
    return folder / "model"


def said(run, folder, capfd):
    """Return all that a run says, in a folder of its own."""
    try:
        run(folder)
    except Exception as error:
        text, code = explained(error)
        assert code == MISTAKE, text
        return text + capfd.readouterr().err
    return capfd.readouterr().err


def test_every_row_has_its_input():
    assert [*ROWS] == [*INPUTS]


@pytest.mark.parametrize("row", INPUTS)
def test_what_is_shown_is_what_is_said(row, folder, tmp_path, capfd, monkeypatch):
    monkeypatch.setattr(Path, "home", _nobody)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    runs = INPUTS[row] if isinstance(INPUTS[row], list) else [INPUTS[row]]
    spoken = ""
    for number, run in enumerate(runs):
        own = tmp_path / str(number)
        own.mkdir()
        spoken += said(run, own, capfd)
    shown = [a or b for a, b in re.findall(r"``(.+?)``|`([^`]+)`", ROWS[row])]
    for words in shown:
        if words in ("doubts", "model.json"):
            continue
        pattern = ".*?".join(re.escape(part.strip()) for part in words.split("…"))
        assert re.search(pattern, spoken, re.DOTALL), f"{words!r} is not in\n{spoken}"


def test_readme_shows_the_sums_of_the_table():
    rows = re.findall(r"^\| (?!\*\*).+?((?: \| [\d,]+){4}) \|$", PAGE, re.MULTILINE)
    counts = [[int(n.replace(",", "")) for n in re.findall(r"[\d,]+", row)] for row in rows]
    tried, *ended = sums = [sum(column) for column in zip(*counts, strict=True)]
    assert (tried, ended[-1]) == (sum(ended), 0)
    shown = " | ".join(f"{number:,}" for number in sums)
    assert f"| **all** | {shown} |" in PAGE
    assert f"\n| {shown} |\n" in (ROOT / "README.md").read_text(encoding="utf-8")
