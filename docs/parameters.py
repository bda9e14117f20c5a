"""Write docs/parameters.md: every key of params.yaml, as the classes of settings describe it."""

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from types import UnionType
from typing import Annotated, Literal, Union, get_args, get_origin

import annotated_types
from pydantic.fields import FieldInfo

from pipeline_lib.settings.architecture import PARTS
from pipeline_lib.settings.losses import LOSSES
from pipeline_lib.settings.objectives import OBJECTIVES
from pipeline_lib.settings.optimization import OPTIMIZERS, SCHEDULES
from pipeline_lib.settings.recipes import Recipe
from pipeline_lib.settings.strict import LANGUAGE_CODE, Strict
from pipeline_lib.settings.study import Settings

PAGE = Path(__file__).with_name("parameters.md")

HEAD = """# Parameters

Every key of `params.yaml`, in the order of the file. A recipe takes from `papers.yaml` what its
paper fixes. No number of an experiment has a default (only `layers` of an extractor may be left
out: `last`), and an unknown key is an error. `uv run polyview check` names mistakes with their
lines.

This page is written from the code by `uv run python docs/parameters.py`; a test compares both.
"""

OF_RECIPES = {
    "objective": OBJECTIVES,
    "loss": LOSSES,
    **PARTS,
    "optimizer": OPTIMIZERS,
    "schedule": SCHEDULES,
}
"""Keys of a recipe that name a part, which has keys of its own."""

_SECTIONS = {
    "root": "From the study's folder to the folder of `papers.yaml` and the code.",
    "selection_seed": "Decides which captions and which half of the photos a pair set takes, and "
    "the shares of `growth`.",
    "pools": "The kind of captions that each language is tested on.",
    "departures": "Keys of recipes that this study changes for all of them; in an entry of a "
    "paper's name, for those of that paper.",
}
"""Sections that are no class of their own."""


def page() -> str:
    """Return the page."""
    parts = [HEAD]
    for name, field in Settings.model_fields.items():
        if name == "recipes":
            parts += _recipes()
        elif name not in ("papers", "shared"):
            parts += _section(name, field)
    return "\n".join(parts)


def _section(name: str, field: FieldInfo) -> Iterator[str]:
    forms = [*_forms(field.annotation)]
    yield f"## `{name}`\n"
    if not forms:
        yield f"{_SECTIONS[name]} {_capital(_values(field.annotation, field.metadata))}.\n"
        return
    if get_origin(field.annotation) is dict:
        [key, _] = get_args(field.annotation)
        yield f"A mapping from {_values(key)} to these keys.\n"
    for form in forms:
        yield from _form(form, 3 if len(forms) > 1 else 0)


def _recipes() -> Iterator[str]:
    yield "## `recipes`\n"
    yield "A mapping from a name to these keys, and to those of the parts that they name.\n"
    yield from _form(Recipe, 0)
    for key, forms in OF_RECIPES.items():
        for name, form in forms.items():
            yield f"### `{key}: {name}`\n"
            yield from _form(form, 0, without=set(Recipe.model_fields))


def _form(form: type[Strict], level: int, without: set[str] = frozenset()) -> Iterator[str]:
    """Yield the summary and the keys of a class, then those of the classes that they hold."""
    if level:
        yield f"{level * '#'} {_title(form)}\n"
    yield f"{_markdown(_summary(form))}\n"
    said = described(form)
    rows = [
        f"| `{key}` | {_value_of(form, key)} | {_markdown(said.get(key, ''))} |"
        for key in form.model_fields
        if key not in without and not _is_tag(form, key)
    ]
    if rows:
        yield "\n".join(["| key | value | meaning |", "|---|---|---|", *rows]) + "\n"
    for field in form.model_fields.values():
        for inner in _forms(field.annotation):
            yield from _form(inner, level + 1 if level else 3)


def _value_of(form: type[Strict], key: str) -> str:
    """Return what values a key of a class may have."""
    if form is Recipe and key in OF_RECIPES:
        return ", ".join(f"`{name}`" for name in OF_RECIPES[key])
    field = form.model_fields[key]
    return _values(field.annotation, field.metadata)


def _is_tag(form: type[Strict], key: str) -> bool:
    """Return whether a key has one value, which tells a class from others."""
    annotation = form.model_fields[key].annotation
    return get_origin(annotation) is Literal and len(get_args(annotation)) == 1


def _title(form: type[Strict]) -> str:
    """Return what tells a form from others: the key of one value, or its name."""
    for key, field in form.model_fields.items():
        if _is_tag(form, key):
            return f"`{key}: {get_args(field.annotation)[0]}`"
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", form.__name__).capitalize()


def _forms(annotation: object) -> Iterator[type[Strict]]:
    """Yield the classes of keys that a value may have."""
    if isinstance(annotation, type) and issubclass(annotation, Strict):
        yield annotation
    for part in get_args(annotation):
        yield from _forms(part)


def _summary(form: type[Strict]) -> str:
    text = inspect.cleandoc(form.__doc__)
    return text.split("Attributes:")[0].strip()


def described(form: type[Strict]) -> dict[str, str]:
    """Return what the docstrings of a class, and of those that it is made of, say of its keys."""
    found: dict[str, str] = {}
    for each in reversed(form.__mro__):
        _, _, entries = inspect.cleandoc(vars(each).get("__doc__") or "").partition("Attributes:\n")
        for entry in re.split(r"\n(?=    \w)", f"\n{entries}"):
            key, _, text = entry.strip().partition(": ")
            if key.isidentifier():
                found[key] = " ".join(text.split())
    return found


def _values(annotation: object, metadata: object = ()) -> str:
    """Return in words what values a key may have."""
    if get_origin(annotation) is Annotated:
        inner, *more = get_args(annotation)
        return _values(inner, [*more, *metadata])
    bounds = [*_bounds(metadata)]
    if get_origin(annotation) is Literal:
        return ", ".join(f"`{value}`" for value in get_args(annotation))
    if get_origin(annotation) in (Union, UnionType):
        forms = [*_forms(annotation)]
        others = [each for each in get_args(annotation) if not [*_forms(each)]]
        return " or ".join([*map(_values, others), *(["keys: see below"] if forms else [])])
    if get_origin(annotation) is list:
        return f"a list: {_values(*get_args(annotation))}"
    if get_origin(annotation) is dict:
        key, value = map(_values, get_args(annotation))
        return f"a mapping from {key} to {value}"
    if [*_forms(annotation)]:
        return "keys: see below"
    kind = _KINDS.get(annotation, "any value")
    return ", ".join(bounds if kind == "text" and bounds else [kind, *bounds])


_KINDS = {int: "whole number", float: "number", str: "text", bool: "`true`, `false`"}


def _bounds(metadata: object) -> Iterator[str]:
    words = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}
    for part in (part for each in metadata for part in getattr(each, "metadata", [each])):
        if pattern := getattr(part, "pattern", None):
            yield "a language code" if LANGUAGE_CODE in pattern else "a name"
        for key, word in words.items():
            if isinstance(part, annotated_types.BaseMetadata) and hasattr(part, key):
                yield f"{word} {getattr(part, key):,}"


def _markdown(text: str) -> str:
    """Return text of a docstring in Markdown, on one line."""
    text = re.sub(r":\w+:`~?(?:[\w.]+\.)?(\w+)`", r"`\1`", text).replace("``", "`")
    return " ".join(text.split()).replace("|", "\\|")


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
