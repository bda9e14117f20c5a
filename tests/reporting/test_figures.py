"""Figures of the tasks: means over seeds, and beside printed ones."""

import numpy as np
import pandas as pd
import pytest

from pipeline_lib.contract.published import COLUMNS
from pipeline_lib.reporting.figure_tables import figure_tables
from pipeline_lib.reporting.figures import figures, headlines
from pipeline_lib.reporting.published import beside_published, published_tables


def scores(metric, value, count):
    return {metric: value, f"{metric}_interval": [value - 2, value + 3], count: 100}


def sentences(exact):
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
        "one": {"pools": ["en"], "per_seed": {"1": {"en": {}}}},
        "two": {
            "pools": ["en", "de"],
            "per_seed": {seed: {"en": FOLDS, "de": {}} for seed in ("1", "2")},
        },
    },
    "sentence_retrieval": {
        "one": {"reason": "one language"},
        "two": {"per_seed": {"1": sentences(80.0), "2": sentences(84.0)}},
    },
    "sts": {
        "one": {"per_seed": {"1": similarity(0.6)}},
        "two": {"per_seed": {"1": similarity(0.7), "2": similarity(0.8)}},
    },
    "word_translation": {
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
    return figures(REPORTS, TRANSLATED.values())


def test_a_figure_is_the_mean_over_seeds_with_its_spread(table):
    exact = table.query("variant == 'exact' and metric == 'r1'").squeeze()
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
    assert set(one["variant"]) == {"all", "without_overlap", "overlap_only"}
    assert one["sd"].isna().all()


def test_headlines_are_a_few_figures_of_each_task(table):
    chosen = headlines(table)
    assert set(chosen["task"]) == {"retrieval", *REPORTS, "translated_queries"}
    learnt = chosen[chosen["metric"] == "learnt"]
    assert learnt[["item", "variant", "value"]].to_numpy().tolist() == [["en-de", "", 40]]
    folds = chosen[chosen["task"] == "retrieval"]
    assert folds["value"].tolist() == [41, 70, 80, 31, 60, 70]
    assert set(folds["variant"]) == {"folds/image_to_text", "folds/text_to_image"}
    translated = chosen[chosen["task"] == "translated_queries"]
    assert translated["item"].tolist() == ["de-en"] * 2
    assert translated["value"].tolist() == [126, 21]
    assert translated["queries"].tolist() == [100, 100]
    assert not set(chosen["metric"]) & {"n_queries", "n_pairs"}


def test_of_two_languages_that_are_compared_neither_is_first():
    """Recipes list the same languages in different orders, and are set side by side."""
    reports = {
        name: {"per_seed": {"1": {pair: scores("overlap", 37.0, "n") for pair in pairs}}}
        for name, pairs in {"a": ["en-fr"], "b": ["ja-en", "ja-fr"], "c": ["fr-ja"]}.items()
    }
    found = figures({"consistency": reports}).drop_duplicates(["recipe", "item"])
    assert found["item"].tolist() == ["en-fr", "en-ja", "fr-ja", "fr-ja"]


def test_nothing_done_leaves_no_figure():
    nothing = figures({"sts": {"one": {"reason": "none"}}})
    assert nothing.empty
    joined = beside_published(nothing, pd.DataFrame(columns=COLUMNS))
    assert [*published_tables(joined)] == [None, None]


PRINTED = """
kadar2019,7,A model,authors,,,two,en-de,sentence_retrieval,exact_r1,90.0
kadar2019,7,A model,authors,,,two,en-fr,sentence_retrieval,exact_r1,11.0
kadar2019,7,Not run,authors,,,three,en-de,sentence_retrieval,exact_r1,12.0
kadar2019,7,Old,quoted,Rotman et al. 2018,,,en-de,sentence_retrieval,exact_r1,85.5
kadar2019,7,Old,quoted,Rotman et al. 2018,,,de-en,sentence_retrieval,exact_r1,86.5
calixto2017,2,A model,authors,,,two,en,sts,sts_pearson_2014,0.685
mohammadshahi2019,1,A model,authors,,,two,en-de,word_translation,p1,66.91
mohammadshahi2019,2,A model,authors,,,two,en-de,word_translation,p1,66.91
mohammadshahi2019,3,A model,authors,,,two,en,retrieval_5x1k,t2i_r5,58.0
mohammadshahi2019,3,A model,authors,,,two,en,retrieval_5x1k,t2i_median,2
kim2020,4,A model,authors,,,two,de,translated_queries,mean_recall,48.5
"""


@pytest.fixture
def published():
    rows = [line.split(",") for line in PRINTED.strip().splitlines()]
    return pd.DataFrame(rows, columns=COLUMNS).astype({"value": float})


def test_ours_stand_beside_what_papers_print(table, published):
    joined = beside_published(table, published)
    ours = joined[joined["recipe"] == "two"].set_index(["task", "item", "variant"])
    assert ours["published"].to_dict() == {
        ("sentence_retrieval", "en-de", "exact"): 90.0,
        ("sts", "sts2014", "all"): 0.685,
        ("word_translation", "en-de", "nearest_neighbour"): 66.91,
        ("retrieval", "en", "folds/text_to_image"): 58.0,
        ("translated_queries", "de-en", ""): 48.5,
    }
    differences = ours["difference"].to_dict()
    assert [differences[name] for name in ours.index] == pytest.approx(
        (ours["value"] - ours["published"]).tolist()
    )
    assert ours["tables"].to_dict()["word_translation", "en-de", "nearest_neighbour"] == "1, 2"


def test_the_table_shows_what_ran_and_what_its_figures_quote(table, published):
    [shown] = filter(None, published_tables(beside_published(table, published)))
    rows = {(name, task): cells for name, task, *cells in shown.rows}
    assert rows["two", "sts"] == [
        "sts2014",
        "all",
        "calixto2017, table 2",
        "0.750",
        "0.685",
        "+0.065",
    ]
    assert rows["two", "retrieval"][1] == "folds/text to image R@5"
    assert rows["Old", "sentence retrieval"] == [
        "en-de",
        "exact R@1",
        "Rotman et al. 2018, by kadar2019, table 7",
        "–",
        "85.5",
        "–",
    ]
    assert ("Not run", "sentence retrieval") not in rows


def unknown_task(**seeds):
    return figures({"mrr": {"one": {"per_seed": seeds}}})


def test_a_task_that_nobody_knows_has_its_figures_in_tasks_csv_and_in_a_table():
    found = unknown_task(**{seed: {"en": {"mrr": 0.264, "n_queries": 9}} for seed in ("1", "2")})
    assert headlines(found)["metric"].tolist() == ["mrr"]
    [table] = filter(None, figure_tables(found.assign(dataset="world", paper="own"), []))
    assert table.name == "mrr"
    assert [*table.rows[0]][2:] == ["2", "0.264 ± 0.000", "9 ± 0"]


def test_a_figure_of_no_item_is_one():
    found = unknown_task(**{"1": {"mrr": 0.264}})
    assert found[["item", "variant", "metric", "value"]].values.tolist() == [["", "", "mrr", 0.264]]
