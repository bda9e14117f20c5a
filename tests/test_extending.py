"""The table "Add …" of docs/extending.md is true: its places are there, and there are no others."""

import ast
import importlib
import re
from functools import cache

import pytest
from graph import ROOT, read_yaml

TEXT, _, LINES = (ROOT / "docs/extending.md").read_text(encoding="utf-8").partition("## Lines")
ROWS = re.findall(r"^\| ([^|]+) \| ([^|]+) \| (\d+) \| [^|]+ \|$", TEXT, re.MULTILINE)
LIBRARY = ROOT / "pipeline_lib"


def spots(cell):
    """Return the files and folders that a cell names, each with a name in it or nothing."""
    return re.findall(r"`([\w/]+/|[\w/]+\.(?:py|yaml))`(?:: `(\w+)`)?", cell)


@pytest.mark.parametrize(("kind", "cell", "now"), ROWS, ids=[row[0] for row in ROWS])
def test_places_are_there_and_as_many_as_the_table_says(kind, cell, now):
    for path, name in spots(cell):
        found = [folder / path for folder in (LIBRARY, ROOT) if (folder / path).exists()]
        assert found, path
        if path.endswith(".yaml"):
            assert not name or name in read_yaml(found[0])
        elif name:
            assert re.search(rf"^{name}\b", found[0].read_text(encoding="utf-8"), re.MULTILINE)
    # Of recipes.py and the classes of parts, a number stands in one.
    assert len(spots(cell)) == int(now)


def test_every_room_has_a_row_of_lines():
    rooms = {path.parent.name for path in LIBRARY.glob("*/__init__.py")}
    rows = re.findall(r"^\| `(\w+)/`(?: \| (?:–|[\d,]+)){3} \|$", LINES, re.MULTILINE)
    assert rooms == set(rows) - {"stages", "tests", "docs"}


TABLES = [
    (path, name, [file for file, _ in spots(cell)])
    for _, cell, _ in ROWS
    for path, name in spots(cell)
    if path.endswith(".py") and name and not path.startswith("corpora/world/")  # others have those
]


@pytest.mark.parametrize(("path", "name", "named"), TABLES, ids=str)
def test_no_other_module_lists_what_a_table_holds(path, name, named):
    module = importlib.import_module(f"pipeline_lib.{path[:-3].replace('/', '.')}")
    entries = {*getattr(module, name)}
    if len(entries) < 2:
        pytest.skip("a list of one cannot be told from a use")
    lists = {file for file, found in collections() for listed in found if entries <= listed}
    assert lists <= {*named}


@cache
def collections():
    """Return the texts in each literal collection, or ``Literal[...]``, of each module."""
    kinds = (ast.Tuple, ast.List, ast.Set, ast.Dict)
    return [
        (
            path.relative_to(LIBRARY).as_posix(),
            [texts(node) for node in ast.walk(tree) if isinstance(node, kinds)],
        )
        for path in LIBRARY.rglob("*.py")
        for tree in [ast.parse(path.read_text(encoding="utf-8"))]
    ]


def texts(node):
    items = node.keys if isinstance(node, ast.Dict) else node.elts
    return {item.value for item in items if isinstance(item, ast.Constant)}


def test_every_row_is_read():
    assert len(ROWS) == TEXT.count("\n| ") - 1 > 10
    assert {"loss", "objective", "text encoder", "image head"} <= {kind for kind, _, _ in ROWS}
