"""What the code of a stage does, in a few lines of text: one digest per module that it imports.

A stage that depended on its modules themselves would have DVC write their 80 names into every
entry of dvc.lock, and train anew for a comment. The digest is of the syntax tree, which comments,
docstrings and layout do not change. In ``settings``, a field without a value changes it neither:
what a recipe has there is compared by value, and its type can only refuse.
"""

import ast
import gc
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
"""The folder that holds this package and ``stages``."""

_WRITES_NOTHING = frozenset(
    ROOT / "pipeline_lib" / module
    for module in ("settings/study.py", "settings/loading.py", "checks/study.py")
)
"""Of the first two, the form and the reading of all of params.yaml, for every stage: what a stage
reads of it is compared by value. The third can only refuse."""


def stage_code(stage: str, described: Iterable[str] = ()) -> str:
    """Return the fingerprints of the modules that ``stages/<stage>.py`` imports.

    Args:
        stage: Name of the stage, such as ``train``.
        described: Further modules, relative to the root: those that say what a value of
            params.yaml means, where values are compared before they are read.
    """
    starts = [ROOT / "stages" / f"{stage}.py", *(ROOT / module for module in described)]
    return fingerprints(starts, ROOT, _WRITES_NOTHING)


def is_resolved(stage: str) -> bool:
    """Return whether a stage's code does what it did when this run of DVC began."""
    text = Path(f"data/resolved/code/{stage}.txt").read_text(encoding="utf-8")
    return {*stage_code(stage).splitlines()} <= {*text.splitlines()}


def fingerprints(
    starts: Iterable[Path], root: Path, left_out: frozenset[Path] = frozenset()
) -> str:
    """Return a line ``digest  file`` for each of our modules that some modules import.

    Files in a folder ``templates`` beside a module belong to it.

    Args:
        starts: The first modules; they have lines as well.
        root: The folder that holds the packages, which module names start from.
        left_out: Modules that get no line, and whose imports are not followed.

    Raises:
        ValueError: A module has a relative import, which is not followed.
    """
    with _no_collection():
        modules = imported_closure(starts, root, left_out)
        templates = {file for module in modules for file in module.parent.glob("templates/*")}
        files = sorted(modules | templates)
        return "".join(f"{_digest(path)}  {path.relative_to(root).as_posix()}\n" for path in files)


@contextmanager
def _no_collection() -> Iterator[None]:
    """Look for no garbage within the block: syntax trees are none, and are many objects."""
    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if before:
            gc.enable()


def imported_closure(
    starts: Iterable[Path], root: Path, left_out: frozenset[Path] = frozenset()
) -> set[Path]:
    """Return the files under ``root`` that modules import, and these import, and the modules."""
    found: set[Path] = set()
    todo = {*starts}
    while todo := todo - found - left_out:
        path = todo.pop()
        found.add(path)
        todo |= imported_files(path, root)
    return found


@cache
def imported_files(path: Path, root: Path) -> frozenset[Path]:
    """Return the files under ``root`` that a module imports, wherever in it the import stands."""
    names = {name for each in _statements(_parsed(path)) for name in _imported_names(each, path)}
    files = (root.joinpath(*name.split(".")).with_suffix(".py") for name in names)
    return frozenset(file for file in files if file.is_file())


def _statements(block: ast.AST) -> Iterator[ast.AST]:
    """Yield the statements within a block at any depth: imports stand nowhere else."""
    for parts in ("body", "orelse", "handlers", "finalbody", "cases"):
        for statement in getattr(block, parts, ()):
            yield statement
            yield from _statements(statement)


def _imported_names(node: ast.AST, path: Path) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        if node.level or node.module is None:
            raise ValueError(
                f"{path}:{node.lineno}: expected an absolute import, found a relative one: write "
                "the module's whole name"
            )
        yield node.module
        yield from (f"{node.module}.{alias.name}" for alias in node.names)


@cache
def _digest(path: Path) -> str:
    if path.suffix != ".py":
        return hashlib.sha256(path.read_bytes()).hexdigest()
    does_nothing = _is_text_or_field if path.parent.name == "settings" else _is_text
    meaning = _meaning(_parsed(path), does_nothing)
    return hashlib.sha256(json.dumps(meaning).encode()).hexdigest()


@cache
def _parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def _meaning(node: object, does_nothing: Callable[[object], bool]) -> object:
    """Return a syntax tree as lists, without what does nothing and what is new in later Pythons."""
    if isinstance(node, list):
        return [_meaning(item, does_nothing) for item in node if not does_nothing(item)]
    if not isinstance(node, ast.AST):
        return repr(node)
    parts = ((name, getattr(node, name, None)) for name in node._fields)
    if isinstance(node, ast.JoinedStr):  # in which Python 3.12 has texts of no letter
        parts = [("values", [each for each in node.values if not _is_empty_text(each)])]
    given = [(name, value) for name, value in parts if value is not None and value != []]
    return [type(node).__name__, *([name, _meaning(each, does_nothing)] for name, each in given)]


def _is_text_or_field(statement: object) -> bool:
    """Return whether a statement is a docstring, or names a field and its type alone."""
    is_field = isinstance(statement, ast.AnnAssign) and statement.value is None
    return is_field or _is_text(statement)


def _is_empty_text(part: ast.AST) -> bool:
    return isinstance(part, ast.Constant) and part.value == ""


def _is_text(statement: object) -> bool:
    """Return whether a statement is a string and nothing else: a docstring."""
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )
