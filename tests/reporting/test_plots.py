"""What ``dvc plots show`` draws: its specifications, drawn by Vega-Lite itself."""

import json
import os
import re
import shutil
import subprocess
import sys

import pandas as pd
import pytest
from graph import ROOT, read_yaml

from pipeline_lib.reporting.curves import training_curves

vl_convert = pytest.importorskip("vl_convert")
STUDY = ROOT / "studies/flickr8k/metrics"


@pytest.fixture(scope="module")
def curves():
    """Return the validation recalls of the study's recipes."""
    homes = sorted((STUDY / "reports/recipes").glob("*/training.csv"))
    return training_curves({path.parent.name: pd.read_csv(path) for path in homes})


@pytest.fixture(scope="module")
def drawn(tmp_path_factory, curves):
    """Return the page of DVC and the SVG of each plot, by title."""
    folder = tmp_path_factory.mktemp("plots")
    subprocess.run(["git", "init", "--quiet"], cwd=folder, check=True)
    shutil.copytree(ROOT / ".dvc/plots", folder / ".dvc/plots")
    plots = read_yaml(ROOT / "dvc.yaml")["plots"]
    (folder / "dvc.yaml").write_text(json.dumps({"plots": plots}))
    results = folder / "metrics/results"
    results.mkdir(parents=True)
    shutil.copy(STUDY / "results/summary.csv", results)
    curves.to_csv(results / "curves.csv", index=False)
    environment = os.environ | {"PATH": f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}"}
    command = [sys.executable, "-m", "dvc", "plots", "show"]
    subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)
    page = (folder / "dvc_plots/index.html").read_text(encoding="utf-8")
    found = [json.loads(text) for text in re.findall(r"var spec = (\{.*\});\n", page)]
    svgs = {each["title"]["text"]: vl_convert.vegalite_to_svg(each) for each in found}
    return {"page": page, **{title.partition(",")[0]: svg for title, svg in svgs.items()}}


def test_a_curve_ends_where_the_first_of_its_seeds_does():
    history = pd.DataFrame(
        {
            "update": [1, 2, 1, 2, 3],
            "seed": [1, 1, 2, 2, 2],
            "epoch": 1.0,
            "recall_sum_de": [1, 2, 3, 4, 9],
        }
    )
    found = training_curves({"a": history})
    assert found[["update", "sum_of_recalls"]].to_numpy().tolist() == [[1, 2], [2, 3]]


def values(svg, role, field):
    """Return what marks of a role are labelled with, which is what they show."""
    labels = re.findall(rf'aria-label="([^"]*)" role="[^"]*" aria-roledescription="{role}"', svg)
    return [re.search(rf"(?:^|; ){field}: ([^;]*)", label)[1] for label in labels]


def test_recalls_are_bars_with_intervals_the_best_on_top(drawn):
    summary = pd.read_csv(STUDY / "results/summary.csv")
    svg = drawn["Sum of recalls by recipe"]
    bars = [float(value) for value in values(svg, "bar", "sum of recalls")]
    assert sorted(bars) == pytest.approx(sorted(summary["sum_of_recalls"]))
    assert len(values(svg, "rule mark", "sum_of_recalls_low")) == len(summary)
    names = re.findall(r">([a-z0-9_]+)</text>", svg)
    english = summary[summary["language"] == "en"].sort_values("sum_of_recalls", ascending=False)
    first = names.index(english["recipe"].iloc[0])
    assert names[first : first + len(english)] == [*english["recipe"]]


def test_curves_of_all_recipes_are_in_one_plot(drawn, curves):
    svg = drawn["Sum of recalls on the validation captions"]
    lines = re.findall(r'aria-roledescription="line mark" d="([^"]*)"', svg)
    assert len(lines) == curves["recipe"].nunique() > 30
    assert sum(map(lambda line: line.count(","), lines)) == len(curves)


def test_the_page_of_dvc_loads_vega_and_nothing_else(drawn):
    sources = re.findall(r'src="([^"]*)"', drawn["page"])
    assert [re.sub(r".*/npm/([a-z-]+)@.*", r"\1", source) for source in sources] == [
        "vega", "vega-lite", "vega-embed",
    ]  # fmt: skip


def test_a_browser_draws_the_page_of_dvc_with_vega_at_hand(drawn, chromium, tmp_path):
    vega = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version="5.20")
    page = re.sub(r"<script src=[^>]*></script>", "", drawn["page"])
    (tmp_path / "vega.js").write_text(vega, encoding="utf-8")
    page = page.replace("<title>", '<script type="module" src="vega.js"></script><title>')
    page = page.replace('<script type = "text/javascript">', '<script type="module">')
    (tmp_path / "page.html").write_text(page, encoding="utf-8")
    dom, complaints = chromium(tmp_path / "page.html", "--allow-file-access-from-files")
    # Its Vega is newer than the one that DVC names, and says so.
    assert [line for line in complaints if "rror" in line] == []
    assert dom.count('class="marks"') == 2


@pytest.mark.parametrize("study", ["flickr8k", "multi30k", "coco"])
def test_every_study_has_the_templates(study):
    copies = ROOT / "studies" / study / ".dvc/plots"
    texts = {path.name: path.read_bytes() for path in (ROOT / ".dvc/plots").iterdir()}
    assert {path.name: path.read_bytes() for path in copies.iterdir()} == texts


def test_the_pictures_of_the_documentation_show_the_committed_sums():
    """``python docs/picture.py`` draws them anew, after ``dvc repro`` and ``dvc plots show``."""
    summary = pd.read_csv(ROOT / "metrics/results/summary.csv").set_index(["language", "recipe"])
    known = summary["sum_of_recalls"]
    report = (ROOT / "docs/report.svg").read_text(encoding="utf-8")
    for language, words in (("en", "English"), ("de", "German")):
        drawn = report.split(f">Sum of recalls, {words}, by recipe<")[1].split("</svg>")[0]
        bars = dict(re.findall(r'class="name[^>]*>(\w+)</text><text[^>]*>([0-9.]+)</text>', drawn))
        assert bars == {name: f"{value:.1f}" for name, value in known[language].items()}
    plots = (ROOT / "docs/plots.svg").read_text(encoding="utf-8")
    point = (
        r"; recipe: (\w+); rev: [^;]*; dataset: world; language: (\w+); sum_of_recalls: ([0-9.]+)"
    )
    found = re.findall(point, plots)
    assert {(language, recipe): float(value) for recipe, language, value in found} == dict(known)
