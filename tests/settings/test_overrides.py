"""``dvc exp run -S`` writes params.yaml anew: its layout is the one that DVC's writer keeps."""

import difflib
from pathlib import Path

import pytest
from dvc.utils.hydra import apply_overrides
from ruamel.yaml import YAML
from shown_parameters import add_shown_parameters

from pipeline_lib.settings.loading import load_settings

ROOT = Path(__file__).resolve().parents[2]
OF_PAPERS = {"kadar2019.margin": 0.1, "kim2020.anchor_weight": 1e-6}
OF_EVERY_STUDY = {"evaluations.retrieval.bootstrap_samples": 500}
OF_A_RECIPE = {
    ".": {"recipes.kadar_en.max_epochs": 3, "+recipes.kadar_en.margin": 0.1},
    "studies/flickr8k": {
        "departures.kadar2019.image_dropout": 0.1,
        "+recipes.kadar_en.margin": 0.1,
    },
    "studies/multi30k": {"recipes.mlmme_b050.beta": 0.6, "+recipes.mlmme_b050.margin": 0.1},
    "studies/coco": {"departures.kim2020.max_tokens": 50, "+recipes.mule_nc_lc.margin": 0.1},
}
FILES = [*((study, "params.yaml") for study in OF_A_RECIPE), (".", "papers.yaml")]
CASES = [
    *(
        (study, "params.yaml", key, value)
        for study, of_a_recipe in OF_A_RECIPE.items()
        for key, value in (OF_EVERY_STUDY | of_a_recipe).items()
    ),
    *((".", "papers.yaml", key, value) for key, value in OF_PAPERS.items()),
]


@pytest.fixture
def params(tmp_path):
    """Return a function that copies a study's params.yaml, or papers.yaml, beside papers.yaml."""
    (tmp_path / "checkout").symlink_to(".")
    (tmp_path / "papers.yaml").write_bytes((ROOT / "papers.yaml").read_bytes())

    def copy(study, name="params.yaml"):
        (tmp_path / "params.yaml").write_bytes((ROOT / study / "params.yaml").read_bytes())
        return tmp_path / name

    return copy


@pytest.mark.parametrize(("study", "name"), FILES)
def test_nothing_is_laid_out_anew(params, study, name):
    path = params(study, name)
    before = path.read_text(encoding="utf-8")
    apply_overrides(path, [])
    changed = list(_changed_lines(before, path.read_text(encoding="utf-8")))
    assert not changed, "write it as DVC does: block style, no list before a comment"


@pytest.mark.parametrize(("study", "file", "key", "value"), CASES)
def test_one_value_changes_one_line(params, study, file, key, value):
    path = params(study, file)
    before = path.read_text(encoding="utf-8")
    apply_overrides(path, [f"{key}={value}"])
    after = path.read_text(encoding="utf-8")
    assert _read(after) == _with_value(_read(before), key.lstrip("+").split("."), value)
    load_settings(params(study) if file == "papers.yaml" else path)
    changed = list(_changed_lines(before, after))
    assert [line[0] for line in changed] == (["+"] if key.startswith("+") else ["-", "+"]), changed
    name = key.rsplit(".", 1)[-1]
    assert all(line[1:].strip().startswith(f"{name}: ") for line in changed), changed


def test_what_the_documents_show_is_accepted_and_has_that_layout(params):
    path = params(".")
    add_shown_parameters(path)
    assert "mine_margin" in load_settings(path).recipes
    before = path.read_text(encoding="utf-8")
    apply_overrides(path, [])
    assert list(_changed_lines(before, path.read_text(encoding="utf-8"))) == []


def test_the_row_that_the_documents_add_has_one_key_apart_from_its_baseline(params):
    path = params(".")
    add_shown_parameters(path)
    settings = load_settings(path)
    compared = settings.comparisons["margin"]
    assert compared.recipes == ["mine_margin"]
    row, baseline = (
        settings.recipe(name).model_dump() for name in (*compared.recipes, compared.baseline)
    )
    assert [key for key in row if row[key] != baseline[key]] == ["margin"]
    assert len(row["seeds"]) > 1  # else it is not tested


def _read(text):
    return YAML(typ="safe").load(text)  # YAML 1.2, as the pipeline and DVC read it


def _with_value(content, key, value):
    *parents, last = key
    inner = content
    for name in parents:
        inner = inner[name]
    inner[last] = value
    return content


def _changed_lines(before, after):
    lines = difflib.ndiff(before.splitlines(), after.splitlines())
    return (line[0] + line[2:] for line in lines if line[0] in "+-")
