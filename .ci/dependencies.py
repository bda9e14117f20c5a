"""Pin what our dependencies depend on, and list the licences: ``python .ci/dependencies.py``.

Reads the packages of this environment, made anew with the newest versions that one wants to use.
Writes ``constraint-dependencies`` of pyproject.toml and docs/licences.md.
"""

import re
import tomllib
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

INSTALLED = ("main", "dev")
"""Groups that ``uv sync`` installs."""

ROOT = Path(__file__).resolve().parent.parent
PROJECT, PAGE = ROOT / "pyproject.toml", ROOT / "docs/licences.md"

HEADER = """# Licences of dependencies

Every package that `uv sync` installs, with what it depends on; `uv run python .ci/dependencies.py`
writes this page. The optional groups are in `pyproject.toml`. Polyview is under the Apache License
2.0, and distributes none of them.

| package | version | needed by | licence |
|---|---|---|---|
"""


def requirements() -> dict[str, list[Requirement]]:
    """Return the direct dependencies by group, ``main`` being those of all."""
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))
    groups = {"main": project["project"]["dependencies"], **project["dependency-groups"]}
    return {group: [Requirement(line) for line in lines] for group, lines in groups.items()}


def closure(direct: dict[str, list[Requirement]]) -> dict[str, tuple[Distribution, str]]:
    """Return all installed packages that the direct ones need, each with the first group."""
    found: dict[str, tuple[Distribution, str]] = {}
    seen: set[tuple[str, frozenset[str]]] = set()
    for group, todo in direct.items():
        todo = [*todo]
        while todo:
            needed = todo.pop()
            name, extras = canonicalize_name(needed.name), frozenset(needed.extras)
            package = _installed(name)
            if package is None or (name, extras) in seen:
                continue
            seen.add((name, extras))
            found.setdefault(name, (package, group))
            todo += _needed(package, extras)
    return found


def _installed(name: str) -> Distribution | None:
    try:
        return distribution(name)
    except PackageNotFoundError:  # of another platform, or of a group that is not installed
        return None


def _needed(package: Distribution, extras: frozenset[str]) -> Iterator[Requirement]:
    for line in package.requires or []:
        needed = Requirement(line)
        marker = needed.marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *extras)):
            yield needed


def pins(
    found: dict[str, tuple[Distribution, str]], direct: dict[str, list[Requirement]]
) -> list[str]:
    """Return one pin per package that is needed and not named in pyproject.toml itself."""
    named = {canonicalize_name(each.name) for group in direct.values() for each in group}
    others = sorted(found.keys() - named)
    return [f"{name}=={found[name][0].version.partition('+')[0]}" for name in others]


def licence(package: Distribution) -> str:
    """Return the licence that a package names: as an expression, by classifiers, or in words."""
    about = package.metadata
    classified = [
        line.rpartition(" :: ")[2]
        for line in about.get_all("Classifier") or []
        if line.startswith("License ::") and not line.endswith("OSI Approved")
    ]
    stated = (about.get("License") or "").strip().splitlines()
    return about.get("License-Expression") or ", ".join(classified) or " ".join(stated[:1]) or "?"


def main() -> None:
    """Write both."""
    direct = requirements()
    found = closure({group: direct[group] for group in INSTALLED})
    listed = "".join(f'    "{pin}",\n' for pin in pins(found, direct))
    text = PROJECT.read_text(encoding="utf-8")
    pattern = r"(?<=constraint-dependencies = \[\n)[^\]]*(?=\])"
    PROJECT.write_text(re.sub(pattern, listed, text), encoding="utf-8")
    rows = "".join(
        f"| {name} | {package.version.partition('+')[0]} | {group} | {licence(package)[:80]} |\n"
        for name, (package, group) in sorted(found.items())
    )
    PAGE.write_text(HEADER + rows, encoding="utf-8")


if __name__ == "__main__":
    main()
