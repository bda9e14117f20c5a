"""Claims of papers: which verdict a test gives, what stands in the table, and which are refused."""

import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from graph import read_yaml
from refusals import refused
from study import CLAIM, ROOT, write_study

from pipeline_lib.reporting.claims import (
    asked_by_claims,
    claim_table,
    judged,
    reranked_figures,
    reranking_tests,
)
from pipeline_lib.reporting.differences import ONE_SEED, Difference, Measured, differences
from pipeline_lib.settings.claims import Claim
from pipeline_lib.settings.loading import load_settings
from pipeline_lib.settings.strict import SettingsError
from stages.report import main as report


def claims(**changes):
    return {"c": Claim.model_validate({**CLAIM, **changes})}


def verdict(found, **changes):
    """Return the only row of a claim about German whose test is given."""
    own = claims(compared={"de": CLAIM["compared"]["de"]}, **changes)
    [asked] = asked_by_claims(own)
    return judged(own, {asked: found}, {}, 0.95).iloc[0]


@pytest.mark.parametrize(
    ("points", "holm", "expected", "judged_as"),
    [(9, 0.04, "more", "reproduced"), (-9, 0.04, "more", "contradicted"),
     (9, 0.06, "more", "not decided"), (-9, 0.06, "more", "not decided"),
     (9, 0.04, "less", "contradicted"), (-9, 0.04, "less", "reproduced")],
)  # fmt: skip
def test_the_corrected_test_decides(points, holm, expected, judged_as):
    row = verdict(Difference(points, points - 8, points + 8, 0.001, holm), expected=expected)
    assert row["verdict"] == judged_as
    assert row["why"] == ("p .060 after correction" if judged_as == "not decided" else "")


@pytest.mark.parametrize(
    ("holm", "error", "judged_as"),
    [(0.047, 0.003, "not decided"), (0.053, 0.003, "not decided"), (0.047, 0.001, "reproduced")],
)
def test_what_other_draws_might_turn_is_not_decided(holm, error, judged_as):
    row = verdict(Difference(9.0, 1.0, 17.0, 0.001, holm, error))
    drawn = f"p .{1000 * holm:03.0f} after correction, ± .006: other draws might turn it"
    assert (row["verdict"], row["why"]) == (judged_as, drawn if error == 0.003 else "")


def test_what_is_not_tested_is_not_decided_and_says_why():
    row = verdict(Difference(9.0, untested="one seed: not tested"))
    assert (row["verdict"], row["why"]) == ("not decided", "one seed: not tested")
    row = verdict(Difference(np.nan, untested="mule is not trained"))
    assert (row["verdict"], row["why"]) == ("not decided", "mule is not trained")


def test_the_table_has_a_line_per_claim_and_language():
    own = claims(measure="sts_unseen", compared={"world": {"row": "a", "against": "b"}})
    [asked] = asked_by_claims(own)
    assert asked[2:] == ("sts", "world", "without_overlap", "pearson")
    found = {asked: Difference(-0.05, -0.1, -0.01, 0.002, 0.012)}
    ours = {"a": SimpleNamespace(value=0.7, sd=0.01), "b": SimpleNamespace(value=0.75, sd=np.nan)}
    cells = {(name, *asked.figure): cell for name, cell in ours.items()}
    table = claim_table(judged(own, found, cells, 0.95))
    counted = "0 reproduced, 0 not decided, 1 contradicted (in 1 comparisons of 1 claims)"
    assert counted in table.title
    assert table.rows == [
        ["calixto2017", "Translations help.", "table 1: 3 against 1", "sts_unseen", "world", "a",
         "more than b", "contradicted", "0.700 ± 0.010 against 0.750", "−0.050 (−0.100 to −0.010)",
         ".012"],
    ]  # fmt: skip
    assert claim_table(judged({}, {}, {}, 0.95)) is None


def test_what_no_paper_prints_is_counted_apart():
    own = {**claims(), "control": claims(printed="none")["c"]}
    found = {asked: Difference(9.0, 1.0, 17.0, 0.001, 0.01) for asked in asked_by_claims(own)}
    title = claim_table(judged(own, found, {}, 0.95)).title
    counted = "2 reproduced, 0 not decided, 0 contradicted (in 2 comparisons of 1 claims)"
    papers = f"What the papers claim: {counted}. Our own questions: {counted}. Differences"
    assert title.startswith(papers)


def test_a_study_reports_its_claims(tmp_path, monkeypatch):
    write_study(tmp_path)
    monkeypatch.chdir(tmp_path)
    CliRunner().invoke(report, [], catch_exceptions=False)
    found = pd.read_csv("metrics/results/claims.csv").set_index("item")
    # mlmme_b050 finds a twentieth of the queries first, mlmme_b100 half of them.
    assert found.loc["de", "verdict"] == "contradicted"
    assert found.loc["de", "high"] < 0
    tests = pd.read_csv("metrics/results/comparisons.csv").set_index(["recipe", "language"])
    assert tests.loc[("mlmme_b050", "de"), "holm"] == found.loc["de", "holm"]
    # Corrected together: what is asked in English and German, and in English of kadar_en.
    assert found.loc["de", "holm"] == pytest.approx(3 * found.loc["de", "p"], rel=5e-4)
    assert found.loc["en", "verdict"] == "not decided"
    text = (tmp_path / "metrics/results/tables/claims.md").read_text(encoding="utf-8")
    assert "1 contradicted" in text
    assert "Translations help." in (tmp_path / "data/report/index.html").read_text(encoding="utf-8")


def test_rerankings_stand_beside_their_translators():
    table = reranked_figures(*reranked(interval=[1.0, 8.0], p=0.01))
    assert table[["recipe", "item", "metric", "seeds", "value"]].to_numpy().tolist() == [
        ["images", "images", "bleu", 2, 35.4],
        ["en_de", "images", "bleu", 1, 30.9],
        ["images", "images", "bleu", 2, 35.4],
        ["en_de", "images", "bleu", 1, 33.0],
    ]
    assert table["variant"].tolist() == ["", "", "control", "control"]


def reranked(interval, p):
    """Return the report of a re-ranking, and whose translations it ranks."""
    test = {
        "reranked": {"1": {"bleu": 35.3}, "2": {"bleu": 35.5}},
        "own": {"bleu": 30.9},
        "control": {"bleu": 33.0},
        "bleu_gain": {"difference": 4.5, "interval": interval, "p": p},
        "bleu_gain_over_control": {"difference": 2.4, "interval": interval, "p": p and 2 * p},
    }
    return {"images": {"test": test}}, {"images": "en_de", "unknown": "en_de"}


@pytest.mark.parametrize("turned", [False, True])
def test_a_claim_of_bleu_is_decided_by_the_test_of_the_re_ranking(turned):
    row, against = ("en_de", "images") if turned else ("images", "en_de")
    own = claims(measure="bleu", compared={"images": {"row": row, "against": against}})
    [asked] = asked_by_claims(own)
    settings = load_settings(ROOT / "params.yaml").evaluations

    def found(interval, p):
        reports = reranked(interval, p)
        tested = reranking_tests(*reports)
        measured = Measured(reranked_figures(*reports), {}, {}, settings, tested)
        return differences([asked], measured)[asked]

    sign = -1 if turned else 1
    clear = found([1.0, 8.0], 0.01)
    assert clear == Difference(sign * 4.5, *sorted([sign * 1.0, sign * 8.0]), 0.01, 0.01)
    verdict = "contradicted" if turned else "reproduced"
    assert judged(own, {asked: clear}, {}, 0.95)["verdict"].tolist() == [verdict]
    assert found(None, None).untested == ONE_SEED


def test_a_re_ranking_that_has_not_run_is_named():
    compared = {"images": {"row": "images", "against": "en_de"}}
    [asked] = asked_by_claims(claims(measure="bleu", compared=compared))
    settings = load_settings(ROOT / "params.yaml").evaluations
    measured = Measured(reranked_figures({}, {"images": "en_de"}), {}, {}, settings)
    assert differences([asked], measured)[asked].untested == "images has not run"


def test_a_claim_may_ask_what_is_gained_over_the_control():
    compared = {"images": {"row": "images", "against": "en_de"}}
    [asked] = asked_by_claims(claims(measure="bleu_over_control", compared=compared))
    reports = reranked(interval=[1.0, 8.0], p=0.01)
    settings = load_settings(ROOT / "params.yaml").evaluations
    tested = reranking_tests(*reports)
    measured = Measured(reranked_figures(*reports), {}, {}, settings, tested)
    found = differences([asked], measured)[asked]
    assert (found.difference, found.p) == (pytest.approx(2.4), 0.02)


def test_claims_that_name_nothing_are_refused_all_at_once(tmp_path):
    write_study(tmp_path)
    params = json.loads((tmp_path / "params.yaml").read_text())
    wrong = {"row": "mlmme_b050", "against": "mlmme_b10"}
    params["claims"] = {
        "one": {**CLAIM, "paper": "calixto", "compared": {"de": wrong}},
        "two": {**CLAIM, "compared": {"fr": CLAIM["compared"]["de"]}},
        "three": {**CLAIM, "measure": "sts", "compared": {"de": CLAIM["compared"]["de"]}},
        "four": {**CLAIM, "measure": "bleu", "compared": {"images": wrong}},
    }
    (tmp_path / "params.yaml").write_text(json.dumps(params))
    with refused(
        "claims.one.paper: nothing is called 'calixto'. Did you mean 'calixto2017'?",
        "claims.one.compared.de: nothing is called 'mlmme_b10'. Did you mean 'mlmme_b100'?",
        "claims.two.compared.fr: mlmme_b050: nothing is called 'fr'. Legal names: de, en.",
        "claims.three.compared.de: mlmme_b050: nothing is called 'de'. Legal names: world.",
        "claims.four.compared.images: nothing is called 'mlmme_b050'.",
        by=SettingsError,
    ):
        load_settings(tmp_path / "params.yaml")
    params["claims"] = {"five": {**CLAIM, "measure": "recall", "expected": "equal", "compared": {}}}
    (tmp_path / "params.yaml").write_text(json.dumps(params))
    said = "measure: expected 'sum_of_recalls'", "expected", "compared: expected 1 or more"
    with refused(*(f"claims.five.{each}" for each in said), by=SettingsError):
        load_settings(tmp_path / "params.yaml")


def test_a_claim_of_bleu_is_of_a_re_ranking_and_its_translator(tmp_path):
    params = read_yaml(ROOT / "params.yaml")
    params["translators"]["other"] = params["translators"]["world_en_de"]
    params["rerankings"]["world_kadar_2"] = params["rerankings"]["world_kadar"]
    claim = {**CLAIM, "measure": "bleu"}
    params["claims"] = {
        against: {**claim, "compared": {row: {"row": row, "against": against}}}
        for row, against in (
            ("world_kadar", "world_kadar_2"),
            ("world_kadar", "other"),
            ("world_en_de", "world_en_de"),
            ("world_kadar", "world_kadar"),
        )
    }
    for name, text in (
        ("papers", (ROOT / "papers.yaml").read_text()),
        ("params", json.dumps(params)),
    ):
        (tmp_path / f"{name}.yaml").write_text(text)
    ranks = "world_kadar ranks translations of world_en_de, found"
    with refused(
        f"claims.world_kadar_2.compared.world_kadar.against: {ranks} world_kadar_2",
        f"claims.other.compared.world_kadar.against: {ranks} other",
        "claims.world_en_de.compared.world_en_de.row: expected an entry of rerankings",
        "claims.world_kadar.compared.world_kadar: expected two different rows",
        by=SettingsError,
    ):
        load_settings(tmp_path / "params.yaml")


@pytest.mark.parametrize("languages", [None, 5, [["de"]]])
def test_a_claim_about_a_broken_recipe_leaves_the_message_to_the_recipe(tmp_path, languages):
    write_study(tmp_path)
    params = json.loads((tmp_path / "params.yaml").read_text())
    params["claims"] = {"one": CLAIM}
    params["recipes"]["mlmme_b050"]["languages"] = languages
    (tmp_path / "params.yaml").write_text(json.dumps(params))
    with pytest.raises(SettingsError, match=r"recipes\.mlmme_b050\.languages.*: expected"):
        load_settings(tmp_path / "params.yaml")


def test_the_published_study_judges_every_paper():
    settings = load_settings(ROOT / "studies/flickr8k/params.yaml")
    papers = {claim.paper for claim in settings.claims.values()}
    assert papers == {"calixto2017", "kadar2019", "kim2020", "mohammadshahi2019"}
    assert len(settings.claims) >= 15
