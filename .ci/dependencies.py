"""Pin what our dependencies depend on, and list the licences: ``python .ci/dependencies.py``.

Reads the packages of this environment, made anew with the newest versions that one wants to use,
of all groups: ``uv sync --all-groups``.
Writes ``constraint-dependencies`` of pyproject.toml and docs/licences.md.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
PROJECT, PAGE = ROOT / "pyproject.toml", ROOT / "docs/licences.md"

HEADER = """# Licences of dependencies

This page lists the dependencies that `pyproject.toml` names, those of optional groups included, and
the packages that these depend on. `uv run python .ci/dependencies.py` writes it. `uv sync` installs
what main and dev need; the other groups are optional. Polyview is under the Apache License 2.0, and
distributes none of the packages.

| package | version | needed by | licence |
|---|---|---|---|
"""


def requirements() -> dict[str, list[Requirement]]:
    """Return the direct dependencies by group, ``main`` being those of all."""
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))
    groups = {"main": project["project"]["dependencies"], **project["dependency-groups"]}
    return {group: [Requirement(line) for line in lines] for group, lines in groups.items()}


def oldest_python() -> str:
    """Return the oldest Python that pyproject.toml admits, such as 3.11.0."""
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    return project["requires-python"].removeprefix(">=") + ".0"


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


def too_new(found: dict[str, tuple[Distribution, str]], python: str) -> list[str]:
    """Return the packages that do not run on ``python``, the oldest that Polyview supports.

    uv resolves for every Python of ``requires-python``: one of these leaves it without a solution.
    """
    return [
        f"{name} {package.version} needs Python {package.metadata['Requires-Python']}"
        for name, (package, _) in sorted(found.items())
        if python not in SpecifierSet(package.metadata["Requires-Python"] or "")
    ]


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


def _kept(old: list[str], found: Iterable[str], name: str) -> list[str]:
    """Return the lines of packages of groups that are not installed here, as they stand."""
    names = [(line, re.match(name, line)) for line in old]
    return [line for line, match in names if match and match[1] not in found]


def main() -> None:
    """Write both; what belongs to groups that are not installed stays as it stands."""
    direct = requirements()
    found = closure(direct)
    if unfit := too_new(found, oldest_python()):
        raise SystemExit("Choose older versions: " + "; ".join(unfit))
    text, page = PROJECT.read_text(encoding="utf-8"), PAGE.read_text(encoding="utf-8")
    pattern = r"(?<=constraint-dependencies = \[\n)[^\]]*(?=\])"
    old = re.search(pattern, text)[0].splitlines(keepends=True)
    lines = [f'    "{pin}",\n' for pin in pins(found, direct)]
    lines += _kept(old, found, r'\s*"([^=]+)==')
    PROJECT.write_text(re.sub(pattern, "".join(sorted(lines)), text), encoding="utf-8")
    rows = [
        f"| {name} | {package.version.partition('+')[0]} | {group} | {licence(package)[:80]} |\n"
        for name, (package, group) in found.items()
    ]
    rows += _kept(
        page.partition("|---|---|---|---|\n")[2].splitlines(keepends=True), found, r"\| (\S+) \|"
    )
    PAGE.write_text(HEADER + "".join(sorted(rows)), encoding="utf-8")


if __name__ == "__main__":
    main()
