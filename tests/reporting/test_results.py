import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from graph import ROOT, read_yaml
from refusals import refused
from scipy import stats
from study import write_study

from pipeline_lib.contract.problems import ContractError
from pipeline_lib.contract.published import COLUMNS, read_published
from pipeline_lib.contract.reports import read_reports
from pipeline_lib.evaluation.tasks import TASKS
from pipeline_lib.reporting.comparisons import asked_by_comparisons, compare, comparison_tables
from pipeline_lib.reporting.differences import Measured, differences
from pipeline_lib.reporting.figure_tables import figure_tables
from pipeline_lib.reporting.figures import figures
from pipeline_lib.reporting.intervals import over_seeds
from pipeline_lib.reporting.pages import pages, with_results
from pipeline_lib.reporting.published import (
    beside_published,
    printed_table,
    published_tables,
)
from pipeline_lib.reporting.results import read_results
from pipeline_lib.reporting.study_tables import reranking_table, translator_table
from pipeline_lib.reporting.summary import headline, summary_table
from pipeline_lib.reporting.table import markdown_table
from pipeline_lib.settings.evaluations import Comparison
from pipeline_lib.settings.loading import load_settings
from stages.report import main as write_report

EVALUATIONS = load_settings(ROOT / "params.yaml").evaluations


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
                "mean_recall": total / 6,
            }
        }
        for seed, total in enumerate(sums)
    }
    return {"split": "test", "pools": {"de": "caption"}, "per_seed": seeds}


@pytest.fixture
def ours():
    reports = {"one": report([200.0]), "two": report([210.0, 214.0])}
    table = figures({"retrieval": reports})
    papers = {"one": "kiros2014", "two": "kadar2019"}
    return table.assign(paper=table["recipe"].map(papers), dataset="world")


@pytest.fixture
def table(ours):
    means = over_seeds(measured(ours))
    return summary_table(means)


def test_rows_are_means_over_seeds_with_their_spread(table):
    one, two = (row for _, row in table.iterrows())
    assert (one["seeds"], two["seeds"]) == (1, 2)
    assert np.isnan(one["sum_of_recalls_sd"])
    assert two["sum_of_recalls"] == 212
    assert two["sum_of_recalls_sd"] == pytest.approx(np.sqrt(8))
    # The interval of a mean is not the mean of the bounds, which is 202 to 224.
    reach = stats.t(1).ppf(0.975) * np.sqrt(8 / 2)
    bounds = [212 - np.hypot(10, reach), 212 + np.hypot(12, reach)]
    assert [two["sum_of_recalls_low"], two["sum_of_recalls_high"]] == pytest.approx(
        bounds, rel=0.03
    )
    assert (one["sum_of_recalls_low"], one["sum_of_recalls_high"]) == (190, 212)
    assert two["image_to_text_r1"] == 10.5


def asked_of(baseline, *recipes):
    return {"asked": Comparison(question="Better?", baseline=baseline, recipes=list(recipes))}


def test_tables_and_headline_show_the_same_numbers(ours, table):
    found = {each.name: each for each in figure_tables(ours, []) if each}
    assert markdown_table(found["languages"]).splitlines()[2:] == [
        "| recipe | seeds | de |",
        "| --- | ---: | ---: |",
        "| one | 1 | 200.0 (190.0–212.0) |",
        "| two | 2 | **212.0 ± 2.8 (202.0–224.0)** |",  # of single models
    ]
    assert headline(table) == {"one": 200.0, "two": 212.0}


def test_the_headline_is_the_mean_over_languages():
    rows = {"recipe": ["two", "one", "two"], "sum_of_recalls": [100.0, 300.0, 201.333]}
    assert headline(pd.DataFrame(rows)) == {"one": 300.0, "two": 150.67}


def measured(figures):
    """Return what is measured of recipes whose hits are not stored."""
    return Measured(figures, {}, {}, EVALUATIONS)


def test_recipes_stand_beside_the_baseline_of_their_question(ours, table):
    asked = asked_of("one", "two", "never_ran")
    tests = differences(asked_by_comparisons(table, asked), measured(ours))
    compared = compare(table, tests, asked)
    assert compared["recipe"].tolist() == ["one", "two"]
    [shown] = comparison_tables(compared, asked)
    assert shown.name == "comparison_asked"
    assert markdown_table(shown).splitlines() == [
        "**Better? Differences are from one, p is corrected for all tests of the study (Holm)**",
        "",
        "| recipe | seeds | de | difference | p |",
        "| --- | ---: | ---: | ---: | ---: |",
        "| one | 1 | 200.0 | – | – |",
        "| two | 2 | 212.0 ± 2.8 | +12.0 | one seed: not tested |",
    ]
    alone = asked_of("one", "never_ran")
    assert comparison_tables(compare(table, {}, alone), alone) == []


PRINTED = """
kadar2019,1,A model,authors,,,two,de,retrieval,i2t_r1,12.5
kadar2019,1,A model,authors,,,two,de,retrieval,i2t_median,7
kadar2019,1,A model,authors,,,two,de,retrieval,sum_of_recalls,210.5
kadar2019,3,The model again,authors,,,two,de,retrieval,sum_of_recalls,210.5
kadar2019,3,The model again,authors,,,two,de,retrieval,mean_recall,35.1
kadar2019,3,The model again,authors,,,two,en,retrieval,t2i_r1,99.0
kadar2019,1,A model,authors,,,two,de,retrieval_5x1k,t2i_r1,99.0
kadar2019,4,Not run here,authors,,,three,de,retrieval,t2i_r1,99.0
kadar2019,1,"Old, as published",quoted,Kiros et al. 2014,,,de,retrieval,t2i_r5,45.0
kadar2019,4,Elsewhere,quoted,Kiros et al. 2014,,,de,retrieval,t2i_r5,99.0
"""


@pytest.fixture
def published(tmp_path):
    """Return a function that writes and reads a file of printed figures."""

    def read(lines):
        path = tmp_path / "published.csv"
        path.write_text("\n".join([",".join(COLUMNS), *lines, ""]), encoding="utf-8")
        return read_published(path)

    return read


def test_ours_stand_beside_what_papers_print(ours, published):
    joined = beside_published(ours, published(PRINTED.split("\n")[1:-1]))
    two = joined[joined["recipe"] == "two"].set_index(["variant", "metric"])
    assert two["published"].to_dict() == {
        ("image_to_text", "r1"): 12.5,
        ("image_to_text", "median_rank"): 7,
        ("", "sum_of_recalls"): 210.5,
        ("", "mean_recall"): 35.1,
    }
    assert two.loc[("image_to_text", "r1"), "difference"] == -2.0
    assert two.loc[("", "mean_recall"), "difference"] == pytest.approx(212 / 6 - 35.1)
    assert two["tables"].to_dict()["", "sum_of_recalls"] == "1, 3"
    assert set(joined["recipe"]) == {"two", "Old, as published"}


def test_comparison_shows_recipes_that_ran_and_what_their_tables_quote(ours, published):
    joined = beside_published(ours, published(PRINTED.split("\n")[1:-1]))
    [table] = filter(None, published_tables(joined))
    none, place = ["–"] * 3, "kadar2019, table 1"
    assert table.rows == [
        ["two", "de", "ours", "10.5", *none[:2], "9.0", *none, "–", "212.0", "35.3"],
        ["two", "de", f"{place}, 3", "12.5", *none[:2], "7.0", *none, "–", "210.5", "35.1"],
        ["two", "de", "difference", "−2.0", *none[:2], "+2.0", *none, "–", "+1.5", "+0.2"],
        ["Old, as published", "de", f"Kiros et al. 2014, by {place}", *none, "–", "–",
         "45.0", "–", "–", "–", "–"],
    ]  # fmt: skip


def test_a_study_without_published_figures_is_its_own_scores(ours, published):
    joined = beside_published(ours, published([]))
    assert joined.empty
    assert [*published_tables(joined)] == [None, None]


def test_published_figures_that_are_no_numbers_are_named(published, tmp_path):
    with pytest.raises(ContractError, match=r"line 3: expected a number as value, found '1\.2\.3'"):
        published([PRINTED.split("\n")[1], PRINTED.split("\n")[1].replace("12.5", "1.2.3")])
    (tmp_path / "published.csv").write_text("source,value\n")
    with pytest.raises(ContractError, match="expected the columns source, table, row"):
        read_published(tmp_path / "published.csv")


def test_the_report_takes_the_recipes_that_ran(tmp_path, monkeypatch):
    for name in ("studies/multi30k/params.yaml", "studies/multi30k/published.csv", "papers.yaml"):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / "checkout").symlink_to(".")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ContractError, match="found none"):
        CliRunner().invoke(write_report, [], catch_exceptions=False)
    Path("metrics/reports/recipes/vse_de/scores").mkdir(parents=True)
    Path("metrics/reports/recipes/vse_de/scores/retrieval.json").write_text(
        json.dumps(report([200.0]))
    )
    Path("metrics/reports/recipes/vse_de/scores/sts.json").write_text(
        json.dumps({"reason": "German"})
    )
    CliRunner().invoke(write_report, [], catch_exceptions=False)
    assert pd.read_csv("metrics/results/summary.csv")["recipe"].tolist() == ["vse_de"]
    assert set(pd.read_csv("metrics/results/published.csv")["source"]) == {"calixto2017"}
    assert json.loads(Path("metrics/results/summary.json").read_text()) == {"vse_de": 200.0}
    assert "| difference |" in Path("metrics/results/tables/published.md").read_text(
        encoding="utf-8"
    )


@pytest.mark.parametrize("page", pages(ROOT), ids=lambda page: page.name)
def test_pages_show_the_results(page):
    text = page.read_text(encoding="utf-8")
    assert with_results(text, ROOT) == text, "run python -m pipeline_lib.reporting.pages"


def test_printed_figures_stand_once_with_their_table_and_whom_it_quotes():
    rows = printed_table(read_published(ROOT / "studies/multi30k/published.csv")).rows
    kinds = [kind for kind, *_ in rows]
    assert sorted(set(kinds), key=kinds.index) == [
        "sentence retrieval, exact",
        "sentence retrieval, first",
        "sentence similarity",
        "word translation",
        "re-ranked translations",
    ]
    by_name = {(kind, name): cells for kind, name, *cells in rows}
    assert len(by_name) == len(rows)
    assert by_name["sentence similarity", "MLMME β=.5"] == [
        "calixto2017, 2",
        "sts2014 0.727, sts2015 0.776",
    ]
    assert by_name["sentence retrieval, exact", "DPCCA"] == [
        "Rotman et al. 2018, by kadar2019, 7",
        "en→de 82.6, de→en 79.1",
    ]
    assert by_name["sentence retrieval, first", "AME, asymmetric"] == [
        "mohammadshahi2019, 5",
        "en→de R@1 51.7, en→de R@5 76.7, en→de R@10 85.1, "
        "de→en R@1 49.1, de→en R@5 72.6, de→en R@10 80.5",
    ]
    assert by_name["word translation", "AME, symmetric"] == ["mohammadshahi2019, 1", "en→de 66.9"]
    assert by_name["re-ranked translations", "NMT + MLMME β=.25"] == [
        "calixto2017, 3",
        "BLEU 35.4, METEOR 52.6, TER 44.6",
    ]


def test_tables_replace_what_stood_between_the_markers(tmp_path):
    folder = tmp_path / "studies/mine/metrics/results/tables"
    folder.mkdir(parents=True)
    (folder / "sts.md").write_text("new\n")
    text = "a\n<!-- results: mine/sts -->\nold\n<!-- end -->\nb\n"
    assert with_results(text, tmp_path) == text.replace("old", "new")
    assert with_results(text.replace("/sts", ""), tmp_path) == text.replace("old", "new").replace(
        "/sts", ""
    )
    with pytest.raises(ValueError, match="no such table"):
        with_results(text.replace("sts", "stss"), tmp_path)


@pytest.mark.parametrize("study", [".", "studies/flickr8k"])
def test_every_recipe_of_a_published_study_has_its_metrics(study):
    home = ROOT / study
    summary = pd.read_csv(home / "metrics/results/summary.csv")
    recipes = {item.name for item in (home / "metrics/reports/recipes").iterdir()}
    assert set(summary["recipe"]) == recipes
    locked = read_yaml(home / "dvc.lock")
    for recipe in recipes:
        folder = home / "metrics/reports/recipes" / recipe
        assert {path.name for path in folder.iterdir()} == {"model.json", "training.csv", "scores"}
        found = {path.name for path in (folder / "scores").iterdir()}
        older = {"images.csv", "retrieval.json"}  # without hits of each seed, and newer tasks
        assert found == {f"{task}.json" for task in TASKS} | {"hits.csv"} or older <= found
        outs = {
            out["path"]
            for stage in ("train", "evaluate")
            for out in locked["stages"][f"{stage}@{recipe}"]["outs"]
        }
        assert {path.relative_to(home).as_posix() for path in folder.iterdir()} <= outs


def quality(bleu):
    return {
        "n_segments": 1014, "bleu": bleu, "bleu_interval": [bleu - 1, bleu + 1], "ter": 40.0,
        "ter_interval": [39.0, 41.0], "chrf": 60.0,
    }  # fmt: skip


def test_tables_of_translators_and_of_reranking(tmp_path):
    report = {"updates": 8000, "pairs": {"train": 29000}, "quality": {"test": quality(37.04)}}
    (tmp_path / "en_de.json").write_text(json.dumps(report))
    ter = "40.0 (39.0–41.0)"
    assert translator_table(read_reports(tmp_path)).rows == [
        ["en_de", "test", "1,014", "37.0 (36.0–38.0)", ter, "60.0", "8,000", "29,000"]
    ]
    assert translator_table(read_reports(tmp_path / "none")) is None
    test = {
        "own": quality(30.0), "control": quality(31.0),
        "reranked": {"4": quality(31.5) | {"meteor": 52.34}, "5": quality(32.5) | {"meteor": 52}},
        "bleu_gain": {"difference": 2.0, "interval": [-0.5, 4.0], "p": 0.1},
        "ter_gain": {"difference": -1.0, "interval": [-3.0, -0.2], "p": 0.02},
        "bleu_gain_over_control": {"difference": 1.0, "interval": None, "p": None},
        "random_bleu": 25.0, "oracle_bleu": 44.4,
    }  # fmt: skip
    all_weights = {"weights": {"score": 1.0, "length": 2.0, "image": 3.0}}
    tuned = {
        "control": {"weights": {"score": 1.0, "length": 2.0}},
        "reranked": {"4": all_weights, "5": all_weights},
    }
    table = reranking_table({"vse": {**tuned, "val": {}, "test": test}})
    assert table.rows == [
        ["vse", "the translator", "–", "1,014", "30.0 (29.0–31.0)", ter, "60.0", *["–"] * 4],
        ["vse", "control: its score, length", "–", "1,014", "31.0 (30.0–32.0)", ter, "60.0",
         *["–"] * 4],
        ["vse", "control and image", "2", "1,014", "32.0 ± 0.7", "40.0 ± 0.0", "60.0 ± 0.0",
         "52.2 ± 0.2", "+2.0 (−0.5 to +4.0)", "−1.0 (−3.0 to −0.2)", "+1.0"],
        ["vse", "random choice", "–", "1,014", "25.0", *["–"] * 6],
        ["vse", "best choice (oracle)", "–", "1,014", "44.4", *["–"] * 6],
    ]  # fmt: skip
    assert reranking_table({}) is None


def test_a_re_ranking_of_before_is_to_be_run_again(tmp_path, monkeypatch):
    write_study(tmp_path)
    older = tmp_path / "metrics/reports/rerankings/images.json"
    older.parent.mkdir(parents=True)
    older.write_text(json.dumps({"test": {"own": {"bleu": 30.0}, "p_bleu": 0.1}}))
    monkeypatch.chdir(tmp_path)
    settings = load_settings()
    settings.rerankings["images"] = None
    with refused(
        "metrics/reports/rerankings",
        "images.json: expected what its seeds gain. Run dvc repro rerank@images",
    ):
        read_results(settings)
