"""``polyview recipe``: each value of a recipe, and where it comes from."""

import re

import pytest
from click.testing import CliRunner
from ruamel.yaml import YAML
from study import ROOT

from pipeline_lib.cli.main import main
from pipeline_lib.settings.loading import load_settings


@pytest.mark.parametrize(("study", "count"), [(".", 4), ("studies/flickr8k", 5)])
def test_a_recipe_is_printed_as_it_is_run_with_the_place_of_each_value(monkeypatch, study, count):
    monkeypatch.chdir(ROOT / study)
    printed = CliRunner().invoke(main, ["recipe", "kadar_en"], catch_exceptions=False).output
    settings = load_settings()
    found = YAML(typ="safe").load(printed)
    assert found == settings.recipe("kadar_en").model_dump(mode="json")
    origins = dict(re.findall(r"^(\w+): .*# (.+)$", printed, re.MULTILINE))
    assert origins.keys() == found.keys()
    for key, origin in origins.items():
        places = {
            "recipes.kadar_en": settings.recipes["kadar_en"],
            "departures.kadar2019": settings.departures.get("kadar2019", {}),
            "departures": settings.departures,
            "papers.yaml: kadar2019": settings.papers["kadar2019"],
            "papers.yaml: shared": settings.shared,
        }
        assert origin == next(place for place, values in places.items() if key in values)
    assert len({*origins.values()}) == count


def test_an_unknown_recipe_names_the_closest(monkeypatch):
    monkeypatch.chdir(ROOT)
    monkeypatch.delenv("POLYVIEW_TRACEBACK")
    result = CliRunner().invoke(main, ["recipe", "kadar_eng"])
    assert result.exit_code == 2
    assert "Did you mean 'kadar_en'?" in result.output


def test_elsewhere_than_in_a_study_it_says_where_to_run(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("POLYVIEW_TRACEBACK")
    result = CliRunner().invoke(main, ["recipe", "kadar_en"])
    assert result.exit_code == 2
    assert "Run the command in the folder of a study" in result.output
