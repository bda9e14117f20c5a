"""The committed studies: each row is asked about, and rows that are compared end by one rule."""

import re
from itertools import product

import pandas as pd
import pytest
from graph import ROOT

from pipeline_lib.settings.loading import load_settings
from pipeline_lib.settings.strict import NONE

STUDIES = {study: ROOT / "studies" / study for study in ("flickr8k", "multi30k", "coco")}
RECALLS = [f"{way}_r{k}" for way, k in product(("i2t", "t2i"), (1, 5, 10))]
RULE = {
    "schedule": "stall",
    "decays": 1,
    "decay_factor": 0.1,
    "patience_validations": 5,
    "validate_every_updates": 220,
    "select_by": "recall_sum",
    "max_epochs": 1000,
    "precision": "f32",
}
"""What ends each row of flickr8k's papers; no row meets the most epochs."""
OTHERWISE = {"half_pseudo_real": {"validate_every_updates": 330}}
"""Two updates of human captions to one of pseudopairs: as many human ones between validations."""


@pytest.fixture(scope="module", params=STUDIES)
def settings(request):
    return load_settings(STUDIES[request.param] / "params.yaml")


@pytest.fixture(scope="module")
def flickr8k():
    return load_settings(STUDIES["flickr8k"] / "params.yaml")


def test_every_row_is_asked_about(settings):
    """What is in no comparison, claim or re-ranking is trained, and tested against nothing."""
    asked = {entry.recipe for entry in settings.rerankings.values()}
    for comparison in settings.comparisons.values():
        asked |= {comparison.baseline, *comparison.recipes}
    for claim in settings.claims.values():
        asked |= {row for pair in claim.compared.values() for row in (pair.row, pair.against)}
    assert settings.recipes.keys() - asked == set()


def test_the_papers_rows_of_flickr8k_end_by_one_rule(flickr8k):
    papers = [name for name in flickr8k.recipes if flickr8k.recipe(name).paper != "polyview"]
    assert len(papers) > 50
    for name in papers:
        recipe = flickr8k.recipe(name)
        assert len(recipe.seeds) >= 3
        found = {key: getattr(recipe, key) for key in RULE}
        assert found == RULE | OTHERWISE.get(name, {}), name


def test_the_translator_of_a_half_has_not_learnt_peoples_translations_of_it(flickr8k):
    """It had read them of 2,638 of the 2,822 photos."""
    kept_out = flickr8k.pairs[flickr8k.translators["en_de"].exclude_pairs]
    halves = [flickr8k.pairs[name] for name in ("half_translated", "half_en")]
    assert {half.dataset for half in halves} == {"flickr8k_machine", "flickr8k"}
    assert flickr8k.translations["flickr8k_machine"].dataset == kept_out.dataset == "flickr8k"
    assert kept_out.images == "all"


@pytest.mark.parametrize("name", ["half_aligned", "half_translated"])
def test_captions_that_a_half_adds_choose_no_weights(flickr8k, name):
    """Its German validation captions counted twice, or a machine's chose."""
    assert flickr8k.pairs[name].validation_kinds == {}
    assert flickr8k.pairs[name].plus != "none"


def test_one_embn_of_all_languages_has_no_map_per_language():
    recipe = load_settings(STUDIES["multi30k"] / "params.yaml").recipe("muse_embn")
    assert recipe.universal_dim == "none"


@pytest.fixture(scope="module")
def printed():
    """Return the figures that papers print, as claims quote them: single ones, and sums."""
    tables = [pd.read_csv(STUDIES[name] / "published.csv") for name in ("multi30k", "coco")]
    cells = pd.concat(tables).drop_duplicates()
    row = ["source", "table", "row", "language"]
    six = cells[cells["metric"].isin(RECALLS)].drop_duplicates([*row, "metric"])
    recalls = six.groupby(row)["value"].agg(["sum", "count"]).query("count == 6")
    sums = recalls["sum"].reset_index().rename(columns={"sum": "value"})
    both = pd.concat([cells, sums])
    return both.groupby("source")["value"].agg(lambda values: {*values.round(3)})


def test_claims_quote_what_the_papers_print(settings, printed):
    for claim in settings.claims.values():
        quoted = re.findall(r"(?<![\w.])(?:\d+)?\.\d+", claim.printed.partition(":")[2])
        # A value of β is no figure of a table.
        figures = {float(number) for number in quoted} - {0.5, 0.25}
        assert figures or claim.printed == NONE
        assert figures <= printed[claim.paper], claim.printed
