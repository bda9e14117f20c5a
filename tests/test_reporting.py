import json
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from ruamel.yaml import YAML

from pipeline_lib.contract.problems import ContractError
from pipeline_lib.evaluation.tasks import REPORTS
from pipeline_lib.reporting.comparisons import compare, comparison_tables, difference
from pipeline_lib.reporting.published import (
    COLUMNS,
    beside_published,
    published_markdown,
    read_published,
)
from pipeline_lib.reporting.published_tasks import printed_table
from pipeline_lib.reporting.readme import (
    PAPERS,
    RERANKINGS,
    TABLES,
    TRANSLATORS,
    printed_markdown,
    reranking_markdown,
    translator_markdown,
    with_results,
)
from pipeline_lib.reporting.summary import headline, markdown, summary_table
from pipeline_lib.reporting.tables import markdown_table
from pipeline_lib.reporting.translator_tables import reranking_table
from pipeline_lib.settings.evaluations import Comparison
from pipeline_lib.settings.study import load_settings
from stages.summarize import main as summarize

ROOT = Path(__file__).resolve().parent.parent
SETTINGS = load_settings(ROOT / "params.yaml").evaluations.retrieval


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


def hits(ranks):
    """Return the hits of images with these ranks, one caption each, found the same way."""
    found = [sum(rank <= k for k in (1, 5, 10)) for rank in ranks]
    ids = [f"i{number}" for number in range(len(ranks))]
    rows = {"image_id": ids, "image_to_text": found, "text_to_image": found}
    return pd.DataFrame(rows | {"language": "de", "seeds": 1, "captions": 1})


def evaluations(baseline, *recipes):
    settings = load_settings(ROOT / "params.yaml").evaluations
    chosen = Comparison(question="Is it better?", baseline=baseline, recipes=list(recipes))
    return settings.model_copy(update={"comparisons": {"asked": chosen}})


def test_markdown_and_headline_show_the_same_numbers(table):
    assert markdown(table).splitlines()[2:] == [
        "| recipe | seeds | de |",
        "| --- | ---: | ---: |",
        "| `one` | 1 | 200.0 (190–212) |",
        "| `two` | 2 | 212.0 ± 2.8 (202–224) |",
    ]
    assert headline(table) == {"one": 200.0, "two": 212.0}


def test_the_headline_is_the_mean_over_languages():
    rows = {"recipe": ["two", "one", "two"], "sum_of_recalls": [100.0, 300.0, 201.333]}
    assert headline(pd.DataFrame(rows)) == {"one": 300.0, "two": 150.67}


def test_recipes_stand_beside_the_baseline_of_their_question(table):
    # 30 images: all first hits, and none within ten; the sums in the table are given apart.
    found = {"one": hits([1] * 30), "two": hits([20] * 30)}
    asked = evaluations("one", "two", "never_ran")
    compared = compare(table, found, asked)
    assert compared["recipe"].tolist() == ["one", "two"]
    assert compared["difference"].iloc[1] == pytest.approx(-600)
    [shown] = comparison_tables(compared, asked)
    assert (shown.name, shown.title) == (
        "comparison_asked",
        "Is it better? Differences are from one",
    )
    assert markdown_table(shown).splitlines() == [
        "| recipe | seeds | de | difference | p |",
        "| --- | ---: | ---: | ---: | ---: |",
        "| one | 1 | 200.0 | – | – |",
        "| two | 2 | 212.0 ± 2.8 | −600.0 (−600.0 to −600.0) | < .001 |",
    ]


def test_recipes_are_tested_on_the_same_queries_only(table):
    found = {"one": hits([1, 1, 1, 20]), "two": hits([1, 1, 20, 20])}
    settings = evaluations("one", "two")
    tested = compare(table, found, settings).set_index("recipe")
    # Of the two labellings of the one image that differs, both are as extreme.
    assert tested.loc["two", "p"] == 1
    assert np.isnan(tested.loc["one", "p"])
    assert compare(table, {"two": found["two"]}, settings)["p"].isna().all()
    found["one"] = hits([1, 1, 1])
    assert compare(table, found, settings)["p"].isna().all()
    assert comparison_tables(compare(table, found, evaluations("one")), settings) == []


def test_a_difference_is_that_of_a_double_loop():
    ranks = {"a": [1, 3, 8, 40, 2, 2], "b": [2, 1, 30, 9, 7, 11]}
    found = difference("a", "b", {n: hits(each) for n, each in ranks.items()}, "de", SETTINGS)
    images = len(ranks["a"])
    points = {
        name: sum(200 / images for rank in each for k in (1, 5, 10) if rank <= k)
        for name, each in ranks.items()
    }
    assert found.difference == pytest.approx(points["a"] - points["b"])
    assert found.low < found.difference < found.high


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


def test_ours_stand_beside_what_papers_print(table, published):
    joined = beside_published(table, published(PRINTED.split("\n")[1:-1]))
    two = joined.set_index("recipe").loc["two"]
    assert (two["image_to_text_r1_published"], two["image_to_text_r1_difference"]) == (12.5, -2.0)
    assert two["sum_of_recalls_difference"] == pytest.approx(1.5)
    assert two["mean_recall_difference"] == pytest.approx(212 / 6 - 35.1)
    assert (two["source"], two["tables"]) == ("kadar2019", "1, 3")
    assert np.isnan(two["text_to_image_r1_published"])
    assert joined.set_index("recipe").loc["one"].filter(regex="published|difference").isna().all()
    assert joined[table.columns].equals(table)


def test_comparison_shows_recipes_that_ran_and_what_their_tables_quote(table, published):
    figures = published(PRINTED.split("\n")[1:-1])
    lines = published_markdown(beside_published(table, figures), figures).splitlines()[2:]
    assert lines == [
        "| `two` | de | ours | 10.5/40.0/50.0 (9) | 20.0/40.0/50.0 (9) | 212.0 | 35.3 |",
        "|  |  | kadar2019, table 1, 3 | 12.5/–/– (7) | –/–/– | 210.5 | 35.1 |",
        "|  |  | difference | -2.0/–/– (+2) | –/–/– | +1.5 | +0.2 |",
        "| Old, as published | de | Kiros et al. 2014, by kadar2019, table 1 "
        "| –/–/– | –/45.0/– | – | – |",
    ]


def test_a_study_without_published_figures_is_its_own_scores(table, published):
    nothing = published([])
    assert beside_published(table, nothing).equals(table)
    assert published_markdown(table, nothing) == ""


def test_published_figures_that_are_no_numbers_are_named(published, tmp_path):
    with pytest.raises(ContractError, match=r"line 3: expected a number as value, found '1\.2\.3'"):
        published([PRINTED.split("\n")[1], PRINTED.split("\n")[1].replace("12.5", "1.2.3")])
    (tmp_path / "published.csv").write_text("source,value\n")
    with pytest.raises(ContractError, match="expected the columns source, table, row"):
        read_published(tmp_path / "published.csv")


def test_summarize_takes_the_recipes_that_ran(tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT / "studies" / "multi30k")
    params, figures = (Path(name).read_bytes() for name in ("params.yaml", "published.csv"))
    monkeypatch.chdir(tmp_path)
    Path("params.yaml").write_bytes(params)
    Path("published.csv").write_bytes(figures)
    with pytest.raises(ContractError, match="found none"):
        CliRunner().invoke(summarize, [], catch_exceptions=False)
    Path("metrics/recipes/vse_de").mkdir(parents=True)
    Path("metrics/recipes/vse_de/retrieval.json").write_text(json.dumps(report([200.0])))
    Path("metrics/recipes/vse_de/sts.json").write_text(json.dumps({"reason": "German"}))
    CliRunner().invoke(summarize, [], catch_exceptions=False)
    summary = pd.read_csv("metrics/summary.csv")
    assert summary["recipe"].tolist() == ["vse_de"]
    assert summary["source"].tolist() == ["calixto2017"]
    assert json.loads(Path("metrics/summary.json").read_text()) == {"vse_de": 200.0}
    text = Path("metrics/summary.md").read_text(encoding="utf-8")
    assert text.startswith("Sum of R@1, R@5 and R@10")
    assert "| difference |" in text


def committed(path):
    """Return a file of the last commit: `dvc repro` may have changed the one in the folder."""
    command = ["git", "-C", str(ROOT), "show", f"HEAD:{path}"]
    return subprocess.run(command, check=True, capture_output=True, encoding="utf-8").stdout


def test_readme_shows_the_tracked_metrics():
    readme = committed("README.md")
    tables = {study: committed(path) for study, path in TABLES.items()}
    tables |= {name: translator_markdown(ROOT / folder) for name, folder in TRANSLATORS.items()}
    tables |= {name: reranking_markdown(ROOT / folder) for name, folder in RERANKINGS.items()}
    tables |= {name: printed_markdown(ROOT / path) for name, path in PAPERS.items()}
    assert with_results(readme, tables) == readme, "run python -m pipeline_lib.reporting.readme"


def test_printed_figures_stand_once_with_their_table_and_whom_it_quotes():
    rows = printed_table(read_published(ROOT / "studies/multi30k/published.csv")).rows
    kinds = [kind for kind, *_ in rows]
    assert sorted(set(kinds), key=kinds.index) == [
        "translation retrieval, exact",
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
    assert by_name["translation retrieval, exact", "DPCCA"] == [
        "Rotman et al. 2018, by kadar2019, 7",
        "en→de 82.6, de→en 79.1",
    ]
    assert by_name["word translation", "AME, symmetric"] == ["mohammadshahi2019, 1", "en→de 66.9"]
    assert by_name["re-ranked translations", "NMT + MLMME β=.25"] == [
        "calixto2017, 3",
        "BLEU 35.4, METEOR 52.6, TER 44.6",
    ]


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
    locked = YAML(typ="safe").load((folder.parent / "dvc.lock").read_text(encoding="utf-8"))
    for recipe in recipes:
        home = folder / "recipes" / recipe
        files = {item.relative_to(folder.parent).as_posix() for item in home.iterdir()}
        names = {f"{task}.json" for task in REPORTS} | {"model.json", "training.csv"}
        assert files >= {f"metrics/recipes/{recipe}/{name}" for name in names}
        outs = [
            out["path"]
            for stage in ("train", "evaluate")
            for out in locked["stages"][f"{stage}@{recipe}"]["outs"]
        ]
        assert files == {path for path in outs if path.startswith("metrics/")}


def quality(bleu):
    return {
        "n_segments": 1014, "bleu": bleu, "bleu_interval": [bleu - 1, bleu + 1], "ter": 40.0,
        "ter_interval": [39.0, 41.0], "chrf": 60.0,
    }  # fmt: skip


def test_tables_of_translators_and_of_reranking(tmp_path):
    report = {"updates": 8000, "pairs": {"train": 29000}, "quality": {"test": quality(37.04)}}
    (tmp_path / "en_de.json").write_text(json.dumps(report))
    line = translator_markdown(tmp_path).splitlines()[-1]
    assert (
        line
        == "| en_de | test | 1,014 | 37.0 (36.0–38.0) | 40.0 (39.0–41.0) | 60.0 | 8,000 | 29,000 |"
    )
    assert translator_markdown(tmp_path / "none") == ""
    test = {
        "own": quality(30.0), "control": quality(31.0),
        "reranked": quality(31.5) | {"meteor": 52.34}, "p_bleu": 0.004, "p_ter": 0.2,
        "p_bleu_control": 0.5, "random_bleu": 25.0, "oracle_bleu": 44.4,
    }  # fmt: skip
    tuned = {
        "control": {"weights": {"score": 1.0, "length": 2.0}},
        "reranked": {"weights": {"score": 1.0, "length": 2.0, "image": 3.0}},
    }
    table = reranking_table({"vse": {**tuned, "val": {}, "test": test}})
    ter = "40.0 (39.0–41.0)"
    assert table.rows == [
        ["vse", "the translator", "1,014", "30.0 (29.0–31.0)", ter, "60.0", *["–"] * 4],
        ["vse", "its score, length", "1,014", "31.0 (30.0–32.0)", ter, "60.0", *["–"] * 4],
        ["vse", "these and image", "1,014", "31.5 (30.5–32.5)", ter, "60.0",
         "52.3", "0.004", "0.200", "0.500"],
        ["vse", "chance", "1,014", "25.0", *["–"] * 6],
        ["vse", "hindsight", "1,014", "44.4", *["–"] * 6],
    ]  # fmt: skip
    assert reranking_table({}) is None
