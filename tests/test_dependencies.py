"""A fresh machine gets the packages of today, and needs no optional one."""

import tomllib

import dependencies
import pytest
from graph import ROOT
from packaging.utils import canonicalize_name
from shell import python

DIRECT = dependencies.requirements()
FOUND = dependencies.closure(DIRECT)

BARE = """
import importlib.machinery, importlib.metadata, re, sys
allowed = set(sys.argv[1].split(","))
owners = importlib.metadata.packages_distributions()
class Bare:
    def __init__(self, finder):
        self.finder = finder
    def find_spec(self, name, path=None, target=None):
        dists = owners.get(name.partition(".")[0], [])
        if dists and not {re.sub("[-_.]+", "-", each).lower() for each in dists} & allowed:
            return None
        return self.finder.find_spec(name, path, target)
PathFinder = importlib.machinery.PathFinder
sys.meta_path = [Bare(each) if each is PathFinder else each for each in sys.meta_path]
for name in sys.argv[2].split(","):
    __import__(name)
"""


def test_every_package_that_is_needed_is_pinned_to_what_is_installed():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    pinned = set(project["tool"]["uv"]["constraint-dependencies"])
    missing = set(dependencies.pins(FOUND, DIRECT)) - pinned
    assert not missing, "run python .ci/dependencies.py"


def test_every_package_runs_on_the_oldest_python_that_is_promised():
    assert not dependencies.too_new(FOUND, dependencies.oldest_python())


def test_a_package_for_newer_pythons_alone_is_named():
    found = {"torch": FOUND["torch"]}
    assert dependencies.too_new(found, "3.5.0")[0].startswith("torch 2.15.0")
    assert not dependencies.too_new(found, dependencies.oldest_python())


def test_dependencies_have_one_version_and_no_address():
    for group in DIRECT.values():
        for needed in group:
            assert [each.operator for each in needed.specifier] == ["=="], needed
            assert needed.url is None


def test_the_licences_of_all_are_listed():
    page = (ROOT / "docs/licences.md").read_text(encoding="utf-8")
    missing = [name for name in FOUND if f"\n| {name} | " not in page]
    assert not missing, "run python .ci/dependencies.py"


OF_GROUPS = ("pipeline_lib.export.sentence_module", "pipeline_lib.search.server")
"""What commands import once they know that their group is installed."""


@pytest.mark.parametrize("room", ["pipeline_lib", "stages"])
def test_all_modules_are_imported_without_an_optional_package(room):
    modules = [
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for path in sorted((ROOT / room).rglob("*.py"))
    ]
    modules = [module for module in modules if module not in OF_GROUPS]
    main = {name for name, (_, group) in FOUND.items() if group == "main"}
    assert "hypothesis" not in main
    python(BARE, ",".join(main), ",".join(modules))


def test_the_bare_environment_lacks_what_is_optional():
    assert "No module named 'pytest'" in python(BARE, "numpy", "pytest", fails=True).stderr
    assert canonicalize_name("pytest") in FOUND
