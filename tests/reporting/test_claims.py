"""Claims of papers: which verdict a test gives, what stands in the table, and which are refused."""

import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from refusals import refused
from study import CLAIM, ROOT, write_study

from pipeline_lib.reporting.claims import asked_by_claims, claim_table, judged, reranked_figures
from pipeline_lib.reporting.differences import Difference
from pipeline_lib.settings.claims import Claim
from pipeline_lib.settings.strict import SettingsError
from pipeline_lib.settings.study import load_settings
from stages.report import main as report


def claims(**changes):
    return {"c": Claim.model_validate({**CLAIM, **changes})}


def verdict(found, **changes):
    """Return the only row of a claim about German whose test is given."""
    own = claims(compared={"de": CLAIM["compared"]["de"]}, **changes)
    [asked] = asked_by_claims(own)
    return judged(own, {asked: found}, 0.95).iloc[0]


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


def test_what_is_not_tested_is_not_decided_and_says_why():
    row = verdict(Difference(9.0, untested="one seed: not tested"))
    assert (row["verdict"], row["why"]) == ("not decided", "one seed: not tested")
    row = verdict(Difference(np.nan, untested="mule is not trained"))
    assert (row["verdict"], row["why"]) == ("not decided", "mule is not trained")


def test_the_table_has_a_line_per_claim_and_language():
    own = claims(measure="sts_unseen", compared={"world": {"row": "a", "against": "b"}})
    [asked] = asked_by_claims(own)
    assert asked[2:] == ("sts", "world", "without_overlap", "pearson")
    table = claim_table(judged(own, {asked: Difference(-0.05, -0.1, -0.01, 0.002, 0.012)}, 0.95))
    assert "0 reproduced, 0 not decided, 1 contradicted" in table.title
    assert table.rows == [
        ["calixto2017", "Translations help.", "table 1: 3 against 1", "sts_unseen", "world", "a",
         "more than b", "contradicted", "−0.050 (−0.100 to −0.010)", ".012"],
    ]  # fmt: skip
    assert claim_table(judged({}, {}, 0.95)) is None


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
    assert found.loc["en", "verdict"] == "not decided"
    text = (tmp_path / "metrics/results/tables/claims.md").read_text(encoding="utf-8")
    assert "1 contradicted" in text
    assert "Translations help." in (tmp_path / "data/report/index.html").read_text(encoding="utf-8")


def test_rerankings_stand_beside_their_translators():
    test = {"reranked": {"bleu": 35.4, "n_segments": 9}, "own": {"bleu": 30.9, "n_segments": 9}}
    table = reranked_figures({"images": {"test": test}}, {"images": "en_de", "unknown": "en_de"})
    assert table[["recipe", "item", "metric", "seeds", "value"]].to_numpy().tolist() == [
        ["images", "images", "bleu", 1, 35.4],
        ["en_de", "images", "bleu", 1, 30.9],
    ]


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
