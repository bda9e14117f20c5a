import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pipeline_lib.reporting.readme import TABLES, with_results
from pipeline_lib.reporting.summary import headline, markdown, summary_table

ROOT = Path(__file__).resolve().parent.parent


def direction(r1):
    return {
        "r1": r1, "r5": 40.0, "r10": 50.0, "median_rank": 9, "mean_rank": 20.5,
        "n_queries": 200, "n_candidates": 1000,
    }  # fmt: skip


def report(sums):
    seeds = {
        str(seed): {
            "de": {
                "image_to_text": direction(10.0 + seed),
                "text_to_image": direction(20.0),
                "sum_of_recalls": total,
                "sum_of_recalls_interval": [total - 10, total + 12],
            }
        }
        for seed, total in enumerate(sums)
    }
    return {"split": "test", "pools": {"de": "caption"}, "per_seed": seeds}


@pytest.fixture
def table():
    reports = {"one": report([200.0]), "two": report([210.0, 214.0])}
    return summary_table(reports, {"one": "kiros2014", "two": "kadar2019"})


def test_rows_are_means_over_seeds_with_their_spread(table):
    one, two = (row for _, row in table.iterrows())
    assert (one["seeds"], two["seeds"]) == (1, 2)
    assert np.isnan(one["sum_of_recalls_sd"])
    assert two["sum_of_recalls"] == 212
    assert two["sum_of_recalls_sd"] == pytest.approx(np.sqrt(8))
    assert (two["sum_of_recalls_low"], two["sum_of_recalls_high"]) == (202, 224)
    assert two["image_to_text_r1"] == 10.5


def test_markdown_and_headline_show_the_same_numbers(table):
    lines = markdown(table).splitlines()
    assert lines[3] == (
        "| `two` | de | 2 | 10.5/40.0/50.0 (9) | 20.0/40.0/50.0 (9) | 212.0 ± 2.8 | 202.0–224.0 |"
    )
    assert headline(table) == {"one": {"de": 200.0}, "two": {"de": 212.0}}


def committed(path):
    """Return a file of the last commit: `dvc repro` may have changed the one in the folder."""
    command = ["git", "-C", str(ROOT), "show", f"HEAD:{path}"]
    return subprocess.run(command, check=True, capture_output=True, encoding="utf-8").stdout


def test_readme_shows_the_tracked_metrics():
    readme = committed("README.md")
    tables = {study: committed(path) for study, path in TABLES.items()}
    assert with_results(readme, tables) == readme, "run python -m pipeline_lib.reporting.readme"


def test_results_replace_what_stood_between_the_markers():
    text = "a\n<!-- results: s -->\nold\n<!-- end of results: s -->\nb\n"
    expected = "a\n<!-- results: s -->\nnew\n<!-- end of results: s -->\nb\n"
    assert with_results(text, {"s": "new\n"}) == expected
    with pytest.raises(ValueError, match="once, found 0"):
        with_results("no markers", {"s": "new\n"})


@pytest.mark.parametrize("path", TABLES.values(), ids=TABLES)
def test_every_recipe_of_a_published_study_has_its_metrics(path):
    folder = (ROOT / path).parent
    summary = pd.read_csv(folder / "summary.csv")
    recipes = {item.name for item in (folder / "recipes").iterdir()}
    assert set(summary["recipe"]) == recipes
    for recipe in recipes:
        assert {item.name for item in (folder / "recipes" / recipe).iterdir()} == {
            "retrieval.json",
            "training.csv",
        }
