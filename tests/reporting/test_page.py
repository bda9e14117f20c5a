import base64
import hashlib
import io
import json
import re
import shutil
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace
from xml.etree.ElementTree import fromstring

import numpy as np
import pandas as pd
import pytest
import tiny
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from refusals import refused
from ruamel.yaml import YAML
from study import CHANCES, IMAGES, PER_IMAGE, ROOT, TEXT, write_study

from pipeline_lib.cli.recipe import recipe
from pipeline_lib.contract.queries import read_queries
from pipeline_lib.contract.recalls import chance_recall_sum
from pipeline_lib.contract.tables import read_captions
from pipeline_lib.evaluation.retrieval.hits import read_hits
from pipeline_lib.reporting.curves import mean_recall_sum
from pipeline_lib.reporting.differences import ONE_SEED, Asked, Difference
from pipeline_lib.reporting.figure_tables import figure_tables
from pipeline_lib.reporting.figures import figures
from pipeline_lib.reporting.page.charts import (
    _growth,
    beta_charts,
    growth_charts,
    word_translation_charts,
)
from pipeline_lib.reporting.page.gallery import galleries, queries_each, spread
from pipeline_lib.reporting.page.page import _leads, report_page
from pipeline_lib.reporting.page.svg import (
    WIDTH,
    Estimate,
    bar_chart,
    estimates_chart,
    interval_chart,
    line_chart,
    round_ticks,
)
from pipeline_lib.reporting.results import read_results
from pipeline_lib.reporting.study_tables import model_table
from pipeline_lib.reporting.table import Table, latex_table, markdown_table
from pipeline_lib.reporting.verdicts import asked_by_verdicts, evidence, verdicts
from pipeline_lib.settings.images import GivenFeatures
from pipeline_lib.settings.loading import load_settings
from stages.report import main as report

VOID = {"meta", "link", "img", "br", "input", "hr"}


class Page(HTMLParser):
    """What stands in a page: its tags with their attributes, in order, and its text."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.open, self.text, self.problems, self.scripts = [], [], [], [], []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag in ("p", "li", "td", "div"):
            self.text.append("\n")
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.problems.append(f"</{tag}> at {self.getpos()}")

    def handle_data(self, data):
        if self.open and self.open[-1] == "script":
            self.scripts.append(data)
        elif self.open and self.open[-1] != "style":
            self.text.append(data)

    def attributes(self, name):
        return [attributes[name] for _, attributes in self.tags if name in attributes]


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Return the folder of a study with its report."""
    folder = tmp_path_factory.mktemp("study")
    write_study(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        CliRunner().invoke(report, [], catch_exceptions=False)
    return folder


@pytest.fixture(scope="module")
def html(study):
    return (study / "data/report/index.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def page(html):
    return Page(html)


def test_page_is_well_formed_and_its_links_lead_somewhere(page):
    assert page.problems == []
    assert page.open == []
    ids = page.attributes("id")
    assert len(ids) == len(set(ids))
    links = [link for link in page.attributes("href") if link != "data:,"]
    assert set(links) == {f"#{name}" for name in ids}
    assert {"scores", "questions", "beta", "languages", "sentences", "pseudopairs", "gallery",
            "claims", "curves", "growth", "training", "recipes", "method",
            *(f"recipe-{name}" for name in CHANCES)} == set(ids)  # fmt: skip


def test_page_loads_nothing_and_names_no_place_or_time(page, html, study):
    sources = page.attributes("src")
    assert len(sources) == 2 * 6 * queries_each(2)
    assert all(source.startswith("data:image/jpeg;base64,") for source in sources)
    (script,) = page.scripts
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    (policy,) = (words for words in page.attributes("content") if "default-src" in words)
    assert policy.startswith("default-src 'none';")
    assert policy.endswith(f"script-src 'sha256-{digest}'")
    assert not re.search(r"https?:|url\(|@import", html)
    assert str(study) not in html


def test_captions_stand_in_the_page_as_text(page, html):
    assert TEXT.split(" |")[0] not in html
    assert TEXT in "".join(page.text)
    assert any(TEXT in words for words in page.attributes("alt"))
    assert len(re.findall('<(?:blockquote|span) lang="[a-z]+" dir="auto">', html)) > 1
    assert not re.findall('<(?:blockquote|span) lang="[a-z]+">', html)


def test_equal_inputs_give_equal_bytes(study, tmp_path, monkeypatch):
    write_study(tmp_path)
    monkeypatch.chdir(tmp_path)
    CliRunner().invoke(report, [], catch_exceptions=False)
    for folder in ("data/report", "metrics/results", "metrics/results/tables"):
        for path in (study / folder).glob("*.*"):
            assert (tmp_path / folder / path.name).read_bytes() == path.read_bytes()


def test_photos_that_are_gone_are_left_out_and_all_else_is_there(
    study, tmp_path, monkeypatch, capsys
):
    shutil.copytree(study, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    folder = Path("data/raw/world/images")
    shutil.rmtree("data/report")
    shutil.rmtree(folder)
    report([], standalone_mode=False)
    assert f"{folder}: {IMAGES} photos of world are not there" in capsys.readouterr().err
    html = Path("data/report/index.html").read_text(encoding="utf-8")
    assert "data:image/jpeg" not in html
    assert 'id="claims"' in html


def test_no_photos_are_shown_of_features_that_were_given(study, monkeypatch, capsys):
    monkeypatch.chdir(study)
    results = read_results(load_settings())
    given = GivenFeatures(dataset="world", images="given.h5", backbone="given")
    extractors = dict.fromkeys(results.settings.extractors, given)
    settings = results.settings.model_copy(update={"extractors": extractors})
    assert galleries(results)
    capsys.readouterr()
    assert not galleries(replace(results, settings=settings))
    assert not capsys.readouterr().err


def test_what_is_doubtful_of_a_model_stands_on_the_first_screen(study, tmp_path, monkeypatch):
    shutil.copytree(study, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    path = Path("metrics/reports/recipes/mlmme_b100/model.json")
    found = json.loads(path.read_text())
    path.write_text(json.dumps(found | {"doubts": {"2": ["nothing was learnt"]}}))
    report([], standalone_mode=False)
    html = Path("data/report/index.html").read_text(encoding="utf-8")
    first = " ".join(re.sub(r"<[^>]*>", " ", html.partition("<nav")[0]).split())
    assert "Doubtful : mlmme_b100 , seed 2: nothing was learnt." in first


def test_first_screen_says_who_won_and_by_how_much(study, page):
    sums = {}
    for name in CHANCES:
        text = (study / f"metrics/reports/recipes/{name}/scores/retrieval.json").read_text()
        per_seed = YAML(typ="safe").load(text)["per_seed"].values()
        for language in ("en", "de"):
            found = [seed[language]["sum_of_recalls"] for seed in per_seed if language in seed]
            if found:
                sums[name, language] = np.mean(found)
    words = "".join(page.text)
    claims = re.findall(r"(\w+) (wins|leads) by ([\d.]+) over (\w+)", words)
    assert [claim[:2] for claim in claims] == [("mlmme_b100", "wins")] * 2
    for language, (_, _, lead, second) in zip(("en", "de"), claims, strict=True):
        difference = sums["mlmme_b100", language] - sums[second, language]
        assert float(lead) == pytest.approx(difference, abs=0.051)
        others = [value for (name, code), value in sums.items()
                  if code == language and name != "mlmme_b100"]  # fmt: skip
        assert sums[second, language] == max(others)
    assert "Leads at 95 %: certain in English, German." in words
    assert words.count("learnt from English, German (world_six)") == 2
    summary = pd.read_csv(study / "metrics/results/summary.csv").set_index(["recipe", "language"])
    for language in ("en", "de"):
        row = summary.loc["mlmme_b100", language]
        bounds = row["sum_of_recalls_low"], row["sum_of_recalls_high"]
        assert "{:.1f}\n{:.1f}–{:.1f}".format(row["sum_of_recalls"], *bounds) in words
    assert (
        f"guessing at random gets {chance_recall_sum(IMAGES, IMAGES * PER_IMAGE)[0]:.0f}." in words
    )


def test_each_row_of_a_recipe_leads_to_its_settings_and_their_places(study, page, monkeypatch):
    names = [row[0] for row in retrieval_rows(study)]
    links = [link.removeprefix("#recipe-") for link in page.attributes("href")]
    assert all(links.count(name) > names.count(name) for name in CHANCES)
    words = "".join(page.text)
    monkeypatch.chdir(study)
    for name in CHANCES:
        printed = CliRunner().invoke(recipe, [name], catch_exceptions=False).output
        assert f"\n{printed}" in words


def test_claims_have_a_section_where_reporting_has_a_table_of_them(study, monkeypatch):
    monkeypatch.chdir(study)
    results = read_results(load_settings())
    claims = Table("claims", "Claims", ["claim", "verdict"], [["two help", "holds"]], 2)
    results.tables["claims"] = claims
    html = report_page(results, [])
    section = html[html.index('<section id="claims">') :].partition("</section>")[0]
    assert "two help</th>" in section
    assert html.count("two help") == 1


def test_a_word_that_is_also_the_name_of_a_recipe_leads_to_none(study, monkeypatch):
    """A recipe may be called ``de``."""
    monkeypatch.chdir(study)
    results = read_results(load_settings())
    name = next(iter(CHANCES))
    header = ["recipe", "language", "row"]
    results.tables["claims"] = Table("claims", "Claims", header, [[name] * 3], 3)
    html = report_page(results, [])
    section = html[html.index('<section id="claims">') :].partition("</section>")[0]
    assert section.count(f'href="#recipe-{name}"') == 2
    assert f'<td class="text">{name}</td>' in section


@pytest.mark.parametrize(
    ("ranked", "dataset"), [("caption", "world"), ("machine", "world_machine")]
)
def test_translated_captions_are_compared_with_the_others_unless_they_are_ranked(
    study, monkeypatch, ranked, dataset
):
    settings = load_settings(study / "params.yaml")
    settings.recipes["mlmme_b100"] |= {"dataset": "world_machine"}
    settings.pools["de"] = ranked
    monkeypatch.chdir(study)
    summary = read_results(settings).summary
    datasets = summary.groupby("recipe")["dataset"].unique()
    assert datasets["mlmme_b100"].tolist() == [dataset]
    assert datasets["kadar_en"].tolist() == ["world"]


def test_machine_captions_that_a_data_set_has_itself_are_no_added_ones(study, monkeypatch):
    """World's captions in another language may be a machine's, whatever world_machine adds."""
    settings = load_settings(study / "params.yaml")
    settings.recipes["mlmme_b100"] |= {"dataset": "world_machine"}
    settings.pools["en"] = "machine"
    monkeypatch.chdir(study)
    assert set(read_results(settings).summary["dataset"]) == {"world"}


def test_translations_of_several_engines_are_added_to_one_data_set(study, monkeypatch):
    settings = load_settings(study / "params.yaml")
    first = settings.translations["world_machine"]
    settings.translations["more"] = first.model_copy(update={"dataset": "world_machine"})
    settings.recipes["mlmme_b100"] |= {"dataset": "more"}
    monkeypatch.chdir(study)
    assert set(read_results(settings).summary["dataset"]) == {"world"}


def test_what_is_no_longer_in_the_settings_is_not_in_the_report(study, monkeypatch):
    monkeypatch.chdir(study)
    settings = load_settings()
    assert read_results(settings).tables["pseudopairs"].header == ["", "borrowed"]
    settings.pseudopairs.clear()
    assert "pseudopairs" not in read_results(settings).tables


def test_the_method_names_the_draws_and_the_correction(html):
    method = html[html.index('<section id="method">') :]
    assert "200 bootstrap draws for an interval of one model; 2,000 draws" in method
    assert "corrected for all tests of the study by Holm" in method


def test_beta_is_shown_of_joint_recipes_whatever_their_names(study, monkeypatch):
    monkeypatch.chdir(study)
    results = read_results(load_settings())
    joint = {"half": "mlmme_b050", "whole": "mlmme_b100", "mlmme_like": "kadar_en"}
    recipes = {new: results.recipes[old] for new, old in joint.items()}
    summary = results.summary.assign(
        recipe=results.summary["recipe"].map({old: new for new, old in joint.items()})
    )
    charts = [*beta_charts(SimpleNamespace(recipes=recipes, summary=summary))]
    assert [chart.title for chart in charts] == ["English", "German"]
    assert all(
        "whole" in chart.charts[0] and "mlmme_like" not in chart.charts[0] for chart in charts
    )


def test_recipes_that_do_not_differ_are_no_winners(study, tmp_path, monkeypatch):
    shutil.copytree(study, tmp_path, dirs_exist_ok=True)
    homes = [
        tmp_path / f"metrics/reports/recipes/{name}/scores" for name in ("mlmme_b050", "mlmme_b100")
    ]
    for file in ("hits.csv", "retrieval.json"):
        shutil.copy(homes[0] / file, homes[1] / file)
    monkeypatch.chdir(tmp_path)
    CliRunner().invoke(report, [], catch_exceptions=False)
    words = "".join(Page(Path("data/report/index.html").read_text(encoding="utf-8")).text)
    assert "mlmme_b050 leads by 0.0 over mlmme_b100, which may be chance" in words
    assert "p = 1.000" in words.replace("\N{NO-BREAK SPACE}", " ")


@pytest.mark.parametrize(
    ("test", "certain", "said"),
    [({"p": 0.001, "holm": 0.07}, False, "p = .070 after correction"),
     ({"p": 0.001, "holm": 0.03}, True, "p = .030 after correction"),
     ({"untested": "one seed: not tested"}, False, "one seed: not tested")],
    ids=["chance among so many tests", "corrected", "one seed"],
)  # fmt: skip
def test_a_lead_is_certain_where_its_corrected_test_says_so(test, certain, said):
    rows = [{"dataset": "world", "language": "de", "recipe": name, "sum_of_recalls": points,
             "text_to_image_r1": 1.0, "image_to_text_r1": 2.0}
            for name, points in (("mule", 50.0), ("embn_de", 41.0))]  # fmt: skip
    lead = Difference(9.0, 0.2, 38.5, **test)
    (found,) = verdicts(pd.DataFrame(rows), {Asked.sums("mule", "embn_de", "de"): lead}, 0.95)
    assert (found.lead.points, found.lead.certain) == (9, certain)
    assert (found.lead.test is None) == ("untested" in test)
    words = evidence(found, 0.95).replace("\N{NO-BREAK SPACE}", " ")
    assert said in words
    assert words.endswith("R@1: 1 % of captions, 2 % of images")


def test_a_recipe_is_ranked_among_those_of_its_data_set():
    columns = ["dataset", "recipe", "sum_of_recalls"]
    rows = [("world", "a", 1.0), ("world", "b", 2.0), ("coco", "c", 4.0), ("coco", "d", 3.0)]
    summary = pd.DataFrame(rows, columns=columns).assign(language="de")
    expected = [Asked.sums("b", "a", "de"), Asked.sums("c", "d", "de")]
    assert [*asked_by_verdicts(summary)] == expected


def test_a_recipe_trained_elsewhere_is_shown_as_far_as_it_is_known(study, tmp_path, monkeypatch):
    shutil.copytree(study, tmp_path, dirs_exist_ok=True)
    (tmp_path / "metrics/reports/recipes/mlmme_b100/scores/hits.csv").unlink()
    (tmp_path / "data/queries/mlmme_b100.parquet").unlink()
    monkeypatch.chdir(tmp_path)
    CliRunner().invoke(report, [], catch_exceptions=False)
    words = "".join(Page(Path("data/report/index.html").read_text(encoding="utf-8")).text)
    assert words.count(", which was not tested") == 2
    assert "English · mlmme_b050 (mlmme_b100 is better, but its queries are not here)" in words
    shutil.rmtree(tmp_path / "data/queries")
    CliRunner().invoke(report, [], catch_exceptions=False)
    assert 'id="gallery"' not in Path("data/report/index.html").read_text(encoding="utf-8")


def test_hits_that_do_not_add_up_to_the_scores_are_named(study, tmp_path, monkeypatch):
    shutil.copytree(study, tmp_path, dirs_exist_ok=True)
    for name in ("kadar_en", "mlmme_b100"):
        path = tmp_path / f"metrics/reports/recipes/{name}/scores/hits.csv"
        hits = read_hits(path)
        hits.assign(image_to_text="0" * IMAGES).to_csv(path, index=False)
    monkeypatch.chdir(tmp_path)
    with refused("3 problem", "dvc repro evaluate@kadar_en"):
        CliRunner().invoke(report, [], catch_exceptions=False)


def test_gallery_outlines_what_is_right(page):
    shots = [
        (attributes["class"], page.tags[number + 1][1]["src"])
        for number, (tag, attributes) in enumerate(page.tags)
        if tag == "figure" and attributes.get("class", "").startswith("shot")
    ]
    right = [source for kind, source in shots if kind == "shot right"]
    assert len(shots) == 2 * 6 * queries_each(2)
    assert len(right) == 2 * 2 * queries_each(2)
    for _, source in shots:
        image = Image.open(io.BytesIO(base64.b64decode(source.partition(",")[2])))
        assert image.format == "JPEG"
        assert max(image.size) == 160


def test_gallery_shows_captions_of_its_language_and_ranks_of_the_first_seed(study, monkeypatch):
    monkeypatch.chdir(study)
    captions = read_captions(Path("data/captions/world.parquet")).set_index("text")["caption_id"]
    for gallery in galleries(read_results(load_settings())):
        shown = [each for query in gallery.queries for each in (query.asked, *query.answers)]
        assert all(f" {gallery.verdict.language} " in answer.text for answer in shown)
        queries = read_queries(Path(f"data/queries/{gallery.recipe}.parquet"))
        ranks = queries[queries["seed"] == 1].set_index("query_id")["rank"]
        asked = [query for query in gallery.queries if query.direction == "text_to_image"]
        assert [query.rank for query in asked] == [ranks[captions[q.asked.text]] for q in asked]


def test_queries_shown_are_spread_over_those_found_and_missed():
    assert spread(np.array([1, 9, 1, 4, 1, 7]), 1) == [2, 5]
    assert spread(np.array([5, 2, 3, 4]), 2) == [2, 0]
    assert spread(np.array([1]), 1) == [0]
    assert [queries_each(n) for n in (1, 2, 3, 6, 20)] == [6, 3, 2, 1, 1]


def test_chance_is_that_of_all_possible_rankings():
    images, captions = 4, 8
    per_image = captions // images
    places = list(combinations(range(captions), per_image))
    recalls = [np.mean([min(own) < k for own in places]) for k in (1, 5, 10)]
    recalls += [min(k / images, 1) for k in (1, 5, 10)]
    assert chance_recall_sum(images, captions)[0] == pytest.approx(100 * sum(recalls))


@given(low=st.floats(-1e4, 1e4), span=st.floats(1e-3, 1e4), about=st.integers(2, 6))
def test_ticks_are_even_and_enclose_the_range(low, span, about):
    ticks = round_ticks(low, low + span, about)
    assert ticks[0] <= low + 1e-9 * span
    assert ticks[-1] >= low + span - 1e-9 * span
    assert 2 <= len(ticks) <= about + 2
    steps = np.diff(ticks)
    assert np.allclose(steps, steps[0])
    digits = f"{steps[0]:.6e}".split("e")[0].rstrip("0").rstrip(".")
    assert digits in ("1", "2", "2.5", "5")


def test_dots_stand_at_their_values_within_their_intervals():
    rows = [Estimate("a", 30, 20, 40, True), Estimate("b", 10, 0, 15, False)]
    chart = fromstring(interval_chart("", rows, 0, 40))
    dots = [float(dot.get("cx")) for dot in chart.iter("circle")]
    whiskers = [
        (float(w.get("x1")), float(w.get("x2")))
        for w in chart.iter("line")
        if w.get("class").startswith("interval")
    ]
    for dot, (left, right), row in zip(dots, whiskers, rows, strict=True):
        share = (row.value - row.low) / (row.high - row.low)
        assert (dot - left) / (right - left) == pytest.approx(share, abs=0.01)
    scale = (dots[0] - dots[1]) / (rows[0].value - rows[1].value)
    assert (whiskers[0][1] - whiskers[1][0]) / 40 == pytest.approx(scale, rel=0.01)


def test_curves_leave_out_what_is_not_known():
    curve = "x", [0, 50, 100], [0.0, np.nan, 10.0]
    chart = fromstring(line_chart("", [curve], [0, 10], 100, [(100, 10)]))
    (curve,) = chart.iter("polyline")
    first, last = (tuple(map(float, point.split(","))) for point in curve.get("points").split())
    (dot,) = chart.iter("circle")
    assert (float(dot.get("cx")), float(dot.get("cy"))) == last
    assert first[0] < last[0]
    assert first[1] > last[1]


TABLE = Table("t", "50 % of it", ["a_b", "n"], [["x|y", "1"], ["β & γ", "2 ± 1"]], 1,
              frozenset({(1, 1)}))  # fmt: skip


def test_words_are_drawn_over_training_where_their_translations_are_known(study, monkeypatch):
    monkeypatch.chdir(study)
    results = read_results(load_settings())
    (figure,) = word_translation_charts(results)
    assert figure.title == "kadar_en"
    chart = fromstring(figure.charts[0])
    seeds = results.recipes["kadar_en"].seeds
    words, recall = list(chart.iter("polyline"))[:2]
    assert len(list(chart.iter("polyline"))) == 2 * len(seeds)
    assert "second" in recall.get("class")
    heights = [
        [float(point.split(",")[1]) for point in curve.get("points").split()]
        for curve in (words, recall)
    ]
    assert heights[0] == sorted(heights[0])  # 80 % falls to 40 %; y grows downwards
    assert heights[1].index(min(heights[1])) == 2
    assert (heights[0][4] - heights[0][0]) / 40 == pytest.approx(
        (heights[1][0] - heights[1][2]) / 20, rel=0.02
    )


def test_recipes_grow_with_photos_and_with_languages(study, monkeypatch):
    monkeypatch.chdir(study)
    results = read_results(load_settings())
    by_photos, by_languages = growth_charts(results)
    assert (by_photos.title, by_languages.title) == ("kadar_en", "kadar_en")
    assert "training photos" in by_photos.words
    assert "languages learnt" in by_languages.words
    found = {}
    for figure in (by_photos, by_languages):
        assert [*figure.legend] == ["English", "German"]
        curves = fromstring(figure.charts[0]).iter("polyline")
        found[figure.words] = [curve.get("points").split() for curve in curves]
        rings = [*fromstring(figure.charts[0]).iter("circle")]
        assert len(rings) == sum(map(len, found[figure.words]))
    assert [[len(curve) for curve in curves] for curves in found.values()] == [[3, 3], [2, 1]]
    sums = results.tables["growth"].rows
    assert sums[0] == ["kadar_en", "10", "2", "2", "212.0", "213.0"]
    assert sums[2] == ["kadar_en", "39", "1", "2", "141.0", "–"]


def test_the_figure_of_a_recipe_that_grows_has_room_for_any_number_of_languages():
    codes = [f"l{first}{second}"[:3] for first in "abc" for second in "abcdefghij"]
    rows = pd.DataFrame(
        {"language": codes, "photos": 10, "recall_sum": [float(n) for n in range(len(codes))]}
    )
    assert len(_growth("mine", "by photos", "photos", rows).legend) == len(codes)


def test_markdown_keeps_cells_apart():
    assert markdown_table(TABLE).splitlines() == [
        "**50 % of it**", "",
        "| a_b | n |", "| --- | ---: |", r"| x\|y | 1 |", "| β & γ | **2 ± 1** |",
    ]  # fmt: skip


def test_latex_escapes_and_has_as_many_columns_as_the_table():
    lines = latex_table(TABLE).splitlines()
    assert lines[0] == "% 50 % of it"
    assert lines[1] == r"\begin{tabular}{lr}"
    assert lines[3] == r"a\_b & n \\"
    assert lines[6] == r"$\beta$ \& γ & \textbf{2 $\pm$ 1} \\"
    assert lines[-1] == r"\end{tabular}"


def test_a_question_with_paragraphs_is_one_line_above_its_table():
    question = replace(TABLE, title="Does it help?\n\nAnd how much?\n", header=["a|b", "n"])
    assert latex_table(question).startswith("% Does it help? And how much?\n\\begin{tabular}")
    lines = markdown_table(question).splitlines()
    assert lines[0] == "**Does it help? And how much?**"
    assert lines[2] == r"| a\|b | n |"


def retrieval_rows(study):
    text = (study / "metrics/results/tables/retrieval.md").read_text(encoding="utf-8")
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()[4:]]


def test_every_table_is_exported_and_bold_is_the_best(study):
    names = {path.name for path in (study / "metrics/results/tables").iterdir()}
    stems = {"papers", "retrieval", "languages", "models", "pseudopairs", "sts", "claims", "growth"}
    stems.add("comparison_beta")
    assert names == {f"{stem}.{ending}" for stem in stems for ending in ("md", "tex")}
    rows = retrieval_rows(study)
    assert [row[:2] for row in rows] == [
        ["mlmme_b050", "en"], ["mlmme_b050", "de"], ["mlmme_b100", "en"], ["mlmme_b100", "de"],
        ["kadar_en", "en"],
    ]  # fmt: skip
    assert [row[3].startswith("**") for row in rows] == [False, False, True, True, False]
    assert "±" in rows[4][3]


PRINTED = """\
calixto2017,1,A row,authors,,,mlmme_b100,de,retrieval,t2i_r1,12.5
calixto2017,1,A row,authors,,,mlmme_b100,de,retrieval,sum_of_recalls,300
calixto2017,2,A row,authors,,,mlmme_b100,en,sts,sts_pearson_2014,.4
"""


def test_papers_figures_stand_below_ours(study, tmp_path, monkeypatch):
    shutil.copytree(study, tmp_path, dirs_exist_ok=True)
    header = (tmp_path / "published.csv").read_text(encoding="utf-8").splitlines()[0]
    (tmp_path / "published.csv").write_text(f"{header}\n{PRINTED}", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    CliRunner().invoke(report, [], catch_exceptions=False)
    lines = Path("metrics/results/tables/published.md").read_text(encoding="utf-8").splitlines()[4:]
    rows = [[cell.strip(" *") for cell in line.strip("|").split("|")] for line in lines]
    assert [row[:3] for row in rows] == [
        ["mlmme_b100", "de", words] for words in ("ours", "calixto2017, table 1", "difference")
    ]
    assert (rows[1][7], rows[1][11]) == ("12.5", "300.0")
    assert [rows[1][n] for n in (3, 4, 5, 6, 8, 9, 10, 12)] == ["–"] * 8
    for column in (7, 11):
        ours, theirs, difference = (float(row[column]) for row in rows)
        assert difference == pytest.approx(ours - theirs, abs=0.101)
    (line,) = (
        Path("metrics/results/tables/published_tasks.md")
        .read_text(encoding="utf-8")
        .splitlines()[4:]
    )
    assert line == (
        "| mlmme_b100 | sts | sts2014 | all | calixto2017, table 2 | 0.500 | 0.400 | +0.100 |"
    )
    words = "".join(Page(Path("data/report/index.html").read_text(encoding="utf-8")).text)
    assert "Compared with the papers' figures" in words


def test_model_table_has_the_updates_whose_weights_were_kept(study):
    text = (study / "metrics/results/tables/models.md").read_text(encoding="utf-8")
    row = next(line for line in text.splitlines() if "kadar_en" in line)
    sizes = "| kadar_en | kadar2019 | en | – | 2.50 | 0.00 "
    assert row == f"{sizes}| 500, 500 | 300, 300 | 5.0, 5.0 | – | – |"


def test_model_table_says_what_ended_each_seed():
    models = {"tiny": {"ended": {"1": "stalled", "2": "cap"}}}
    table = model_table({"tiny": tiny.recipe()}, {}, models)
    named = dict(zip(table.header, table.rows[0], strict=True))
    assert (named["schedule"], named["ended by"]) == ("steps", "validation, most epochs")


def test_model_table_has_its_seeds_in_one_order():
    """A recipe may list them in any."""
    models = {"tiny": {"ended": {"10": "cap", "3": "stalled"}}}
    curves = pd.DataFrame(
        {"seed": [10, 3], "update": [900, 300], "epoch": [9.0, 3.0], "recall_sum": [1.0, 2.0]}
    )
    table = model_table({"tiny": tiny.recipe()}, {"tiny": curves}, models)
    named = dict(zip(table.header, table.rows[0], strict=True))
    assert (named["updates"], named["ended by"]) == ("300, 900", "validation, most epochs")


def test_model_table_names_the_arithmetic_of_each_seed_where_they_differ():
    trained = {"now": {"precision": {"2": "f32", "10": "f32", "1": "bf16"}}}
    (row,) = model_table({"now": tiny.recipe()}, {}, trained).rows
    assert row[3] == "bf16, f32, f32"


def test_model_table_names_the_arithmetic_of_the_training_and_not_todays():
    recipes = {name: tiny.recipe(precision="f32") for name in ("before", "now")}
    rows = model_table(recipes, {}, {"before": {}, "now": {"precision": "bf16"}}).rows
    assert [row[3] for row in rows] == ["–", "bf16"]


def tables(reports, best=()):
    """Return the tables of some reports, whose recipes are of one paper and data set."""
    frame = figures(reports).assign(paper="one", dataset="world")
    return {table.name: table for table in figure_tables(frame, best) if table}


def test_tasks_that_do_not_concern_a_recipe_leave_no_row():
    scored = {"all": {"pearson": 0.5, "pearson_interval": [0.4, 0.6], "n_pairs": 1200}}
    reports = {"one": {"reason": "none"}, "two": {"per_seed": {"1": {"set": scored}}}}
    assert tables({"sts": reports})["sts"].rows == [
        ["two", "set", "1", "–", "–", "–", "0.500 (0.400–0.600)", "–", "1,200"]
    ]
    assert tables({"sts": {"one": {"reason": "none"}}}) == {}


def test_a_task_that_reporting_does_not_know_has_a_table_of_all_its_figures():
    scores = {"en": {"images": {"entropy": 2.0, "entropy_interval": [1.0, 3.0]}}}
    table = tables({"novel_task": {"one": {"per_seed": {"1": scores}}}})["novel_task"]
    assert table.header == ["recipe", "item", "seeds", "images entropy"]
    assert table.rows == [["one", "en", "1", "2.0 (1.0–3.0)"]]


def scored_sets(**pearsons):
    """Return a report of STS: Pearson's correlation and the number of pairs of each set."""
    sets = {
        name: {"all": {"pearson": pearson, "n_pairs": pairs}}
        for name, (pearson, pairs) in pearsons.items()
    }
    return {"per_seed": {"1": sets}}


def test_the_best_is_the_best_of_those_that_were_tested_alike():
    reports = {
        "one": scored_sets(a=(0.5, 100), b=(0.8, 50), c=(0.3, 300)),
        "two": scored_sets(a=(0.6, 98), b=(0.7, 50), c=(0.2, 200)),
        "few": scored_sets(a=(0.9, 10)),
    }
    table = tables({"sts": reports})["sts"]
    bold = {(*table.rows[row][:2], table.header[column]) for row, column in table.best}
    assert bold == {("two", "a", "Pearson"), ("one", "b", "Pearson")}


def test_the_best_of_each_paper_stand_together_in_the_language_they_are_best_in():
    rows = {  # paper, data set and sums of recalls
        "english": ("one", "world", {"en": 300.0, "de": 100.0}),
        "german": ("one", "world", {"en": 200.0, "de": 150.0}),
        "second": ("one", "world", {"en": 250.0, "de": 120.0}),
        "other": ("two", "world", {"en": 50.0}),
        "elsewhere": ("three", "coco", {"en": 400.0}),
    }
    reports = {
        name: {
            "pools": sums,
            "per_seed": {"1": {n: {"sum_of_recalls": s} for n, s in sums.items()}},
        }
        for name, (*_, sums) in rows.items()
    }
    found = figures({"retrieval": reports})
    for column, place in (("paper", 0), ("dataset", 1)):
        found[column] = found["recipe"].map({name: row[place] for name, row in rows.items()})
    named = {table.name: table for table in figure_tables(found, []) if table}
    assert [row[0] for row in named["papers"].rows] == ["english", "german", "other"]


def test_a_few_rows_tested_on_more_pairs_do_not_take_the_place_of_all_others():
    reports = {
        "one": scored_sets(a=(0.92, 110)),
        "two": scored_sets(a=(0.90, 111)),
        "three": scored_sets(a=(0.91, 110)),
        "halves": scored_sets(a=(0.87, 355)),
        "more_halves": scored_sets(a=(0.95, 355)),
    }
    table = tables({"sts": reports})["sts"]
    bold = {(table.rows[row][0], table.header[column]) for row, column in table.best}
    assert bold == {("one", "Pearson")}


def test_mixed_pools_show_the_language_that_comes_first():
    def seed(share):
        recalls = {"r1": share, "r5": 50.0, "r10": 60.0, "r1_interval": [share - 1, share + 1]}
        return recalls | {"first_language": {"en": share, "de": 100 - share}}

    report = {"mixed": {"1": seed(70.0), "2": seed(80.0)}, "per_seed": {}}
    table = tables({"retrieval": {"one": {"per_seed": {}}, "two": report}})["mixed"]
    assert table.header[-2:] == ["first in en %", "first in de %"]
    assert table.rows == [
        ["two", "en de", "2", "75.0 ± 7.1 (74.0–76.0)", "50.0 ± 0.0", "60.0 ± 0.0",
         "75.0 ± 7.1", "25.0 ± 7.1"]
    ]  # fmt: skip


def test_bins_of_captions_name_the_data_set_where_there_are_several():
    scores = {"r1": 1.0, "r5": 2.0, "r10": 3.0, "n_queries": 4}
    kinds = {"caption_length": {"0-7": scores}}
    probes = {name: {"per_seed": {"1": {"en": kinds}}} for name in ("one", "two")}
    found = figures({"probes": probes})
    found = found.assign(dataset=found["recipe"].map({"one": "world", "two": "coco"}), paper="x")
    named = {
        table.name: table for table in figure_tables(found, [("one", "en"), ("two", "en")]) if table
    }
    assert [row[0] for row in named["kinds"].rows] == ["en · world", "en · coco"]


def test_bins_of_captions_are_readable():
    scores = {"r1": 1.0, "r5": 2.0, "r10": 3.0, "n_queries": 4}
    kinds = {"caption_length": {"0-7": scores, "8-11": scores, "12": scores, "13-": scores}}
    reports = {"probes": {"one": {"per_seed": {"1": {"en": kinds}}}}}
    assert [row[1] for row in tables(reports, [("one", "en")])["kinds"].rows] == [
        "tokens 0–7",
        "tokens 8–11",
        "tokens 12",
        "tokens ≥ 13",
    ]


MEASURE = """<script>
const root = document.documentElement, wide = [...document.querySelectorAll('body *')]
  .filter(e => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest('.scroll table'));
root.dataset.measured = JSON.stringify({
  page: root.scrollWidth <= innerWidth, wide: wide.length,
  blank: [...document.images].filter(i => !i.naturalWidth).length,
  dark: getComputedStyle(document.body).backgroundColor});
</script>"""


def test_browser_shows_the_page_without_a_complaint(study, chromium, page, html):
    # The page's own policy forbids every request; the browser would log one.
    dom, complaints = chromium(study / "data/report/index.html")
    assert complaints == []
    assert len(re.findall("<img ", dom)) == len(page.attributes("src"))
    assert dom.count("<button") > html.count("<button") == 0, "the policy lets the script run"


@pytest.mark.parametrize(("width", "scheme"), [(400, 1), (1200, 0)])
def test_page_fits_phones_and_desktops_in_light_and_dark(html, chromium, tmp_path, width, scheme):
    probe = (
        without_policy(html).replace('loading="lazy"', "").replace("</body>", f"{MEASURE}</body>")
    )
    (tmp_path / "page.html").write_text(probe, encoding="utf-8")
    options = (f"--window-size={width},900", f"--blink-settings=preferredColorScheme={scheme}")
    dom, complaints = chromium(tmp_path / "page.html", *options)
    assert complaints == []
    measured = re.search(r'data-measured="([^"]*)"', dom)[1].replace("&quot;", '"')
    found = YAML(typ="safe").load(measured)
    brightness = sum(map(int, re.findall(r"\d+", found.pop("dark"))))
    assert found == {"page": True, "wide": 0, "blank": 0}
    assert (brightness > 380) == (scheme == 1)


USE = """<script>
const root = document.documentElement, done = {};
const box = document.querySelector('[aria-label^="Image–text retrieval: the sum"]');
const tools = box.previousElementSibling, table = box.querySelector('table');
const shown = column => [...table.tBodies[0].rows].filter(row => !row.hidden)
  .map(row => row.cells[column].textContent);
const head = name => [...table.tHead.rows[0].cells].find(cell => cell.textContent === name);
const press = name => { head(name).firstChild.focus(); document.activeElement.click();
  return head(name).getAttribute('aria-sort'); };
done.before = shown(0);
done.turns = [];
for (const name of ['sum of recalls', 'sum of recalls', 'sum of recalls', 'recipe'])
  done.turns.push([press(name), shown(3), shown(0)]);
const [search, list, count] = tools.children;
const set = (input, value) => { input.value = value; input.dispatchEvent(new Event('input')); };
set(search, 'MULE');
done.mule = [count.value, count.role || count.tagName, shown(0)];
set(list, 'fr');
done.french = [count.value, list.getAttribute('aria-label'), shown(0), shown(1)];
set(search, ''); set(list, '');
done.all = count.value;
const claims = document.querySelector('[aria-label^="What the papers claim"] table');
const p = [...claims.tHead.rows[0].cells].find(cell => cell.textContent === 'p');
p.firstChild.click();
done.p = [...claims.tBodies[0].rows].map(row => row.cells[p.cellIndex].textContent);
const models = document.querySelector('[aria-label^="Models: parameters"] table');
const ends = [...models.tHead.rows[0].cells].find(cell => cell.textContent === 'schedule');
done.schedules = [];
for (const _ of [1, 2]) { ends.firstChild.click(); done.schedules.push(
  [...models.tBodies[0].rows].map(row => row.cells[ends.cellIndex].textContent)); }
box.scrollLeft = 300;
done.fixed = table.tBodies[0].rows[0].cells[0].getBoundingClientRect().left
  - box.getBoundingClientRect().left;
done.scrolled = box.scrollLeft;
const keys = [...document.querySelectorAll('.curves .keys button')];
keys[2].click();
done.picked = [keys[2].textContent, keys[2].getAttribute('aria-pressed'),
  [...document.querySelectorAll('.line.on title')].map(title => title.textContent)];
location.hash = 'recipe-mule';
requestAnimationFrame(() => {
  done.open = [...document.querySelectorAll('details[open] summary code')].map(e => e.textContent);
  root.dataset.done = JSON.stringify(done); });
</script>"""


def test_tables_are_sorted_and_filtered_and_links_open_recipes(chromium, tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT / "studies/flickr8k")
    results = read_results(load_settings())
    probe = without_policy(report_page(results, [])).replace("</body>", f"{USE}</body>")
    probe = re.sub(r"\w+ is not trained", "mlmme_b025 is not trained", probe)
    probe = re.sub(r">\.0[1-9]\d<", ">&gt; .050<", probe)
    (tmp_path / "page.html").write_text(probe, encoding="utf-8")
    dom, complaints = chromium(tmp_path / "page.html", "--window-size=900,900")
    assert complaints == []
    done = json.loads(unescape(re.search(r'data-done="([^"]*)"', dom)[1]))
    names = [row[0] for row in results.tables["retrieval"].rows]
    assert done["before"] == names
    turns, sums, recipes = zip(*done["turns"], strict=True)
    numbers = [[float(re.match(r"[\d.]+", cell)[0]) for cell in cells] for cells in sums]
    assert turns == ("descending", "ascending", None, "ascending")
    assert numbers[0] == sorted(numbers[0], reverse=True) != numbers[2]
    assert numbers[1] == sorted(numbers[1])
    assert recipes[2] == names
    assert recipes[3] == sorted(names)
    mule = [name for name in sorted(names) if "mule" in name]
    assert done["mule"] == [f"{len(mule)} of {len(names)} rows", "OUTPUT", mule]
    count, label, french, languages = done["french"]
    assert count.startswith(f"{len(french)} of ")
    assert label.startswith("language of: Image–text retrieval")
    of_french = {row[0] for row in results.tables["retrieval"].rows if row[1] == "fr"}
    assert set(french) == {name for name in of_french if "mule" in name} != of_french
    assert set(languages) == {"fr"}
    assert done["all"] == f"{len(names)} of {len(names)} rows"
    tested = [bool(re.match(r"([<>] )?1?\.\d", cell)) for cell in done["p"]]
    assert "> .050" in done["p"]
    assert any("mlmme_b025" in cell for cell in done["p"])  # of which the digits are no p
    assert tested == sorted(tested, reverse=True)
    falling, rising = ([word for word in turn if word != "–"] for turn in done["schedules"])
    assert rising == sorted(rising) == falling[::-1]
    assert len({*rising}) > 1
    assert done["scrolled"] == 300
    assert abs(done["fixed"]) <= 1.5
    name = done["picked"][0]
    assert done["picked"] == [name, "true", [name]]
    assert done["open"] == ["mule"]


def without_policy(html):
    return re.sub(r"<meta [^>]*Content-Security-Policy[^>]*>", "", html)


@pytest.mark.parametrize("name", [".", "studies/flickr8k"])
def test_committed_curves_are_means_over_languages(name):
    curves = sorted((ROOT / name / "metrics/reports/recipes").glob("*/training.csv"))
    assert curves
    for path in curves:
        history = pd.read_csv(path)
        languages = history.filter(regex="^recall_sum_").shape[1]
        summed = (mean_recall_sum(history) * languages).to_numpy()
        assert summed == pytest.approx(history["recall_sum"], abs=0.05)


def test_a_lead_that_was_not_tested_is_not_said_to_be_chance(study, monkeypatch):
    monkeypatch.chdir(study)
    results = read_results(load_settings())
    verdict = next(each for each in results.verdicts if each.lead)
    leads = {
        "certain": replace(verdict.lead, certain=True),
        "may be chance": replace(verdict.lead, certain=False),
        "not tested": replace(verdict.lead, certain=False, test=None, untested=ONE_SEED),
    }
    for words, lead in leads.items():
        found = _leads([replace(verdict, lead=lead)], results.summary)
        assert [each for each, pools in found.items() if pools] == [words]


@pytest.mark.parametrize("counts", [[9, 24, 3, 1], [20, 1], [200]])
def test_each_estimate_stands_over_its_own_number_within_the_chart(counts):
    """However many stand at one number."""
    points = [
        (float(at), Estimate(f"{at} {n}", 50.0, 40.0, 60.0, best=False))
        for at, count in enumerate(counts, 1)
        for n in range(count)
    ]
    drawn = str(estimates_chart("languages", points, [0.0, 100.0]))
    middles = [float(x) for x in re.findall(r'<circle cx="([^"]*)"', drawn)]
    labels = re.findall(r'<text x="([^"]*)" y="[^"]*" text-anchor="middle"[^>]*>(.)</text>', drawn)
    assert len(middles) == len(points)
    assert len(labels) == len(counts)
    for x, (at, _) in zip(middles, points, strict=True):
        assert 34 <= x <= WIDTH
        _, nearest = min(labels, key=lambda label: abs(float(label[0]) - x))
        assert float(nearest) == at


def test_large_counts_are_written_out():
    assert "1,234,567" in str(bar_chart("counts", [("once", 1234567.0)]))
