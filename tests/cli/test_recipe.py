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
    for key, said in origins.items():
        origin, _, before = said.partition(", in place of ")
        places = {
            "recipes.kadar_en": settings.recipes["kadar_en"],
            "departures.kadar2019": settings.departures.get("kadar2019", {}),
            "departures": settings.departures,
            "papers.yaml: kadar2019": settings.papers["kadar2019"],
            "papers.yaml: shared": settings.shared,
        }
        origin_of, *others = [place for place, values in places.items() if key in values]
        assert origin == origin_of
        if others and places[others[0]][key] != found[key]:
            assert before.endswith(f" ({others[0]})")
            other = YAML(typ="safe").load(before.removesuffix(f" ({others[0]})"))
            assert other == places[others[0]][key]
        else:
            assert not before
    assert len({said.partition(",")[0] for said in origins.values()}) == count


def test_what_a_study_has_in_place_of_a_papers_value_is_named(monkeypatch):
    monkeypatch.chdir(ROOT / "studies/flickr8k")
    printed = CliRunner().invoke(main, ["recipe", "kadar_en"], catch_exceptions=False).output
    line = next(line for line in printed.splitlines() if line.startswith("embed_dim"))
    paper = load_settings().papers["kadar2019"]["embed_dim"]
    assert line.endswith(f"# departures, in place of {paper} (papers.yaml: kadar2019)")


@pytest.mark.parametrize("study", [".", "studies/flickr8k"])
def test_without_a_name_all_recipes_are_listed(monkeypatch, study):
    monkeypatch.chdir(ROOT / study)
    head, *rows = CliRunner().invoke(main, ["recipe"], catch_exceptions=False).output.splitlines()
    settings = load_settings()
    assert head.split() == ["recipe", "paper", "seeds", "languages"]
    for row, name in zip(rows, settings.recipes, strict=True):
        own = settings.recipe(name)
        assert row.split() == [name, own.paper, *map(str, own.seeds), *own.languages]


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
