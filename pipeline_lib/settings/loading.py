"""params.yaml and papers.yaml, read and checked.

YAML is read with ruamel as YAML 1.2, as DVC does (so ``no`` is Norwegian and ``2e-4`` a number).
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path

from pydantic import ValidationError

from pipeline_lib.settings.messages import lines_of, read_yaml, readable
from pipeline_lib.settings.references.recipes import form_problems
from pipeline_lib.settings.references.sections import reference_problems
from pipeline_lib.settings.strict import SettingsError
from pipeline_lib.settings.study import PAPERS, PARAMS, Settings

_OF_PAPERS = ("papers", "shared")
"""Sections that papers.yaml makes, and params.yaml may not have."""


def load_settings(path: Path = PARAMS) -> Settings:
    """Read and check params.yaml.

    Raises:
        SettingsError: Lists every problem: unknown, missing and ill-typed keys, dangling names.
    """
    if not path.is_file():
        raise SettingsError(
            f"{path.resolve().name}: not found. Run the command in the folder of a study: "
            "the one that holds params.yaml and dvc.yaml."
        )
    content = read_yaml(path)
    for key in _OF_PAPERS:
        if key in content:
            raise SettingsError(
                f"{path.name}: {key}: unknown key. What papers fix stands in {PAPERS}."
            )
    root = content.get("root", ".")
    papers = path.parent / str(root) / PAPERS
    if not papers.is_file():
        problem = (
            f"root: expected the folder that holds {PAPERS}, found {root!r}: in "
            "studies/NAME it is checkout, in the root of Polyview it is ."
        )
        _raise(path, [problem])
    content["papers"] = fixed = read_yaml(papers)
    content["shared"] = fixed.pop("shared", {})
    try:
        settings = Settings.model_validate(content)
    except ValidationError as error:
        found = readable(error, Settings, "", hidden=_OF_PAPERS)
        _raise(path, chain(found, _of_recipes(content, error)))
    _raise(path, reference_problems(settings))
    return settings


def _of_recipes(content: Mapping[str, object], error: ValidationError) -> Iterator[str]:
    """Yield what is wrong within recipes, unless a section that they are merged from is wrong."""
    layers = {"shared", "papers", "departures", "recipes"}
    if layers.isdisjoint(str(item["loc"][0]) for item in error.errors()):
        whole = Settings.model_construct(**{key: content[key] for key in layers})
        for name in whole.recipes:
            yield from form_problems(whole, name)


def _raise(path: Path, problems: Iterable[str]) -> None:
    listed = "\n".join(f"  - {problem}" for problem in lines_of(path, problems))
    if listed:
        raise SettingsError(f"{path.name} cannot be used:\n{listed}")
