"""The headline figures of the other tasks: means over seeds, tables, beside printed ones."""

import numpy as np
import pandas as pd
import pytest

from pipeline_lib.reporting.published import COLUMNS
from pipeline_lib.reporting.published_tasks import published_task_markdown, tasks_beside_published
from pipeline_lib.reporting.tasks import task_markdown, task_table


def scores(metric, value, count):
    return {metric: value, f"{metric}_interval": [value - 2, value + 3], count: 100}


def translation(exact):
    first = {"de-en": scores("r1", 30.0, "n_queries"), "en-de": scores("r1", 50.0, "n_queries")}
    return {"first": first, "exact": {"en-de": scores("r1", exact, "n_queries")}}


def similarity(pearson):
    every = scores("pearson", pearson, "n_pairs") | scores("spearman", 0.75, "n_pairs")
    return {
        "sts2014": {
            "all": every,
            "without_overlap": every | {"pearson": 0.5, "n_pairs": 80},
            "overlap_only": {"n_pairs": 0},
        }
    }


WORDS = {
    "nearest_neighbour": scores("p1", 60.0, "n_queries"),
    "csls": scores("p1", 70.0, "n_queries"),
}
FOLDS = {
    "folds": {
        "image_to_text": scores("r1", 41.0, "n_queries") | scores("r5", 70.0, "n_queries")
        | scores("r10", 80.0, "n_queries"),
        "text_to_image": scores("r1", 31.0, "n_queries") | scores("r5", 60.0, "n_queries")
        | scores("r10", 70.0, "n_queries"),
    }
}  # fmt: skip
REPORTS = {
    "retrieval": {
        "one": {"per_seed": {"1": {"en": {}}}},
        "two": {"per_seed": {seed: {"en": FOLDS, "de": {}} for seed in ("1", "2")}},
    },
    "translation": {
        "one": {"reason": "one language"},
        "two": {"per_seed": {"1": translation(80.0), "2": translation(84.0)}},
    },
    "sts": {
        "one": {"per_seed": {"1": similarity(0.6)}},
        "two": {"per_seed": {"1": similarity(0.7), "2": similarity(0.8)}},
    },
    "alignment": {
        "two": {"learnt": 40.0, "per_seed": {seed: {"en-de": WORDS} for seed in ("1", "2")}}
    },
}  # fmt: skip


QUERIES = {"n_queries": 100}
TRANSLATED = {
    "any_name": {
        "recipe": "two",
        "source_language": "de",
        "target_language": "en",
        "per_seed": {
            seed: scores("sum_of_recalls", value, "n") | scores("mean_recall", value / 6, "n")
            | {"text_to_image": QUERIES}
            for seed, value in (("1", 120.0), ("2", 132.0))
        },
    }
}  # fmt: skip


@pytest.fixture
def table():
    return task_table(REPORTS, TRANSLATED)


def test_a_figure_is_the_mean_over_seeds_with_its_spread(table):
    exact = table.query("task == 'translation' and variant == 'exact'").squeeze()
    assert (exact["recipe"], exact["item"], exact["seeds"], exact["value"]) == (
        "two",
        "en-de",
        2,
        82,
    )
    assert exact["sd"] == pytest.approx(np.sqrt(8))
    assert (exact["low"], exact["high"], exact["queries"]) == (80, 85, 100)
    one = table.query("recipe == 'one'")
    assert set(one["task"]) == {"sts"}
    assert set(one["variant"]) == {"all", "without_overlap"}
    assert one["sd"].isna().all()
    assert table.query("task == 'alignment'")["learnt"].tolist() == [40, 40]
    assert table.query("task != 'alignment'")["learnt"].isna().all()


def test_markdown_has_a_table_for_each_task_that_was_done(table):
    lines = task_markdown(table).splitlines()
    for line in (
        "| `two` | 2 | 40.0 | de→en 30.0 ± 0.0 (28.0–33.0) | en→de 50.0 ± 0.0 (48.0–53.0) "
        "| 82.0 | en→de 82.0 ± 2.8 (80.0–85.0) | en→de 82.0 ± 2.8 (80.0–85.0) |",
        "| recipe | sts2014 | sts2014, unseen |",
        "| `one` | 0.600 (-1.400–3.600) | 0.500 (-1.400–3.600) |",
        "| `two` | en→de | 100 | 40 % | 60.0 ± 0.0 (58.0–63.0) | 70.0 ± 0.0 (68.0–73.0) |",
    ):
        assert line in lines
    cells = [f"{x:.1f} ± 0.0 ({x - 2:.1f}–{x + 3:.1f})" for x in (41, 70, 80, 31, 60, 70)]
    assert f"| `two` | en | {' | '.join(cells)} |" in lines
    assert "| `two` | de→en | 126.0 ± 8.5 (124.0–129.0) | 21.0 ± 1.4 (19.0–24.0) |" in lines
    assert sum("in folds" in line for line in lines) == 1
    assert "P@1" not in task_markdown(table[table["task"] != "alignment"])


def test_nothing_done_is_an_empty_text():
    reports = {"retrieval": {}, "translation": {}, "sts": {}}
    nothing = task_table({**reports, "alignment": {"one": {"reason": "none"}}}, {})
    assert task_markdown(nothing) == ""
    published = pd.DataFrame(columns=COLUMNS)
    assert published_task_markdown(tasks_beside_published(nothing, published), published) == ""


PRINTED = """
kadar2019,7,A model,authors,,,two,en-de,translation_retrieval,r1,90.0
kadar2019,7,A model,authors,,,two,en-fr,translation_retrieval,r1,11.0
kadar2019,7,Not run,authors,,,three,en-de,translation_retrieval,r1,12.0
kadar2019,7,Old,quoted,Rotman et al. 2018,,,en-de,translation_retrieval,r1,85.5
kadar2019,7,Old,quoted,Rotman et al. 2018,,,de-en,translation_retrieval,r1,86.5
calixto2017,2,A model,authors,,,two,en,sts,sts_pearson_2014,0.685
mohammadshahi2019,1,A model,authors,,,two,en-de,alignment,alignment,66.91
mohammadshahi2019,2,A model,authors,,,two,en-de,alignment,alignment,66.91
mohammadshahi2019,3,A model,authors,,,two,en,retrieval_5x1k,t2i_r5,58.0
mohammadshahi2019,3,A model,authors,,,two,en,retrieval_5x1k,t2i_median,2
kim2020,4,A model,authors,,,two,de,translated_query_retrieval,mean_recall,48.5
kadar2019,1,A model,authors,,,two,en,retrieval,i2t_r1,99.0
"""


@pytest.fixture
def published():
    rows = [line.split(",") for line in PRINTED.strip().splitlines()]
    return pd.DataFrame(rows, columns=COLUMNS).astype({"value": float})


def test_ours_stand_beside_what_papers_print(table, published):
    joined = tasks_beside_published(table, published)
    assert len(joined) == len(table)
    printed = joined.dropna(subset="published").set_index(["task", "item", "variant"])
    assert printed["published"].to_dict() == {
        ("translation", "en-de", "exact"): 90.0,
        ("sts", "sts2014", "all"): 0.685,
        ("alignment", "en-de", "nearest_neighbour"): 66.91,
        ("folds", "en", "text_to_image"): 58.0,
        ("translated_queries", "de", "en"): 48.5,
    }
    assert printed["difference"].tolist() == pytest.approx([-8.0, 0.065, -6.91, 2.0, -27.5])
    assert printed["tables"].tolist() == ["7", "2", "1, 2", "3", "4"]
    assert printed["metric"].tolist() == ["r1", "pearson", "p1", "r5", "mean_recall"]


def test_comparison_shows_what_ran_and_what_its_figures_quote(table, published):
    lines = published_task_markdown(
        tasks_beside_published(table, published), published
    ).splitlines()[2:]
    assert lines == [
        "| `two` | translation en-de, exact | 82.0 | 90.0 | -8.0 | kadar2019, table 7 |",
        "| `two` | sts sts2014, all | 0.750 | 0.685 | +0.065 | calixto2017, table 2 |",
        "| `two` | alignment en-de, nearest neighbour | 60.0 | 66.9 | -6.9 "
        "| mohammadshahi2019, table 1, 2 |",
        "| `two` | folds en, text to image R@5 | 60.0 | 58.0 | +2.0 | mohammadshahi2019, table 3 |",
        "| `two` | translated_queries de, en | 21.0 | 48.5 | -27.5 | kim2020, table 4 |",
        "| Old | translation en-de, exact | – | 85.5 | – "
        "| Rotman et al. 2018, by kadar2019, table 7 |",
    ]
