"""What is wrong with params.yaml, in words: its place, what was expected, and what was found."""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from pathlib import Path
from types import UnionType
from typing import Annotated, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.constructor import DuplicateKeyError
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from pipeline_lib.settings.strict import LANGUAGE_CODE, SettingsError, suggest

_LONGEST = 80
"""Characters of a value that are shown."""

_EXPECTED = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "string_type": "text",
    "list_type": "a list",
    "dict_type": "keys with values (a mapping)",
    "model_type": "keys with values (a mapping)",
    "model_attributes_type": "keys with values (a mapping)",
    "invalid_key": "keys that are text",
    "finite_number": "a finite number",
    "greater_than": "a number above {gt}",
    "greater_than_equal": "a number of at least {ge}",
    "less_than": "a number below {lt}",
    "less_than_equal": "a number of at most {le}",
    "too_short": "{min_length} or more entries",
    "too_long": "at most {max_length} entries",
    "literal_error": "{expected}",
    "union_tag_not_found": "the key {discriminator}",
    "union_tag_invalid": "{discriminator} to be one of {expected_tags}",
}
"""Of pydantic's types of errors."""

_PATTERNS = {
    f"^{LANGUAGE_CODE}$": "a language code such as de",
    r"^[A-Za-z0-9][A-Za-z0-9_]*$": "a name of letters, digits and _",
}


_KEY = "[key]"
"""Where pydantic says that a key itself is wrong."""


def read_yaml(path: Path) -> dict[str, object]:
    """Read a file of keys and values.

    Raises:
        SettingsError: Says what in it is no YAML, and where.
    """
    content = path.read_bytes()
    try:
        found = YAML(typ="safe").load(content.decode("utf-8"))
    except UnicodeDecodeError as error:
        line, byte = content[: error.start].count(b"\n") + 1, content[error.start]
        raise SettingsError(
            f"{path.name}:{line}: expected UTF-8, found byte {byte:#04x}. Save the file as UTF-8"
        ) from error
    except DuplicateKeyError as error:
        raise SettingsError(
            f"{path.name}:{error.problem_mark.line + 1}: {error.problem.split(' with ')[0]}: "
            "expected each key once. Remove one of them"
        ) from error
    except (YAMLError, RecursionError, ValueError) as error:
        raise SettingsError(f"{path.name}{_why(error)}. Mend its syntax") from error
    if not isinstance(found, dict):
        shown = "an empty file" if found is None else f"{type(found).__name__} {_shown(found)}"
        raise SettingsError(
            f"{path.name}: expected keys with values, such as `root: .`, found {shown}. "
            "git checkout brings back the last version"
        )
    return found


def _why(error: Exception) -> str:
    if isinstance(error, MarkedYAMLError) and error.problem_mark:
        mark = error.problem_mark
        return f":{mark.line + 1}: expected YAML, in column {mark.column + 1} {error.problem}"
    if isinstance(error, RecursionError):
        return ": expected YAML of a few levels, found thousands of them"
    return f": expected YAML, found: {' '.join(str(error).split())}"


def lines_of(path: Path, problems: Iterable[str]) -> Iterator[str]:
    """Put the line of the key or entry that each problem begins with before it, if there is one.

    A problem that several entries share, such as a departure for all recipes, is said once.
    """
    problems = list(dict.fromkeys(problems))
    tree = _with_lines(path) if problems else None
    for problem in problems:
        line, node = None, tree
        for key in problem.split(":")[0].split("."):
            key = int(key) if isinstance(node, list) and key.isdecimal() else key
            # What a merge key (`<<`) brings along has no line of its own.
            if not isinstance(node, Mapping | list) or key not in (node.lc.data or ()):
                break
            line, node = node.lc.data[key][0] + 1, node[key]
        yield problem if line is None else f"line {line}: {problem}"


def _with_lines(path: Path) -> object:
    """Read a file with the lines of its keys; None if its other reader takes more than this one."""
    try:
        return YAML().load(path.read_text(encoding="utf-8"))
    except (YAMLError, RecursionError, ValueError):  # such as a tab within a word
        return None


def readable(
    error: ValidationError,
    form: type[BaseModel],
    where: str,
    elsewhere: Callable[[str], str] = lambda key: "",
    hidden: Container[str] = (),
) -> Iterator[str]:
    """Turn pydantic's findings into one sentence per key, with the closest legal name.

    Args:
        error: What pydantic found.
        form: That the values were to have.
        where: Place of these values; may be empty.
        elsewhere: From an unknown or missing key to a sentence on what has it, empty if nothing.
        hidden: Keys of the form that the file may not have.
    """
    wrong: dict[tuple[str, bool], list[dict]] = {}
    for item in error.errors():
        loc = item["loc"]
        is_key = loc[-1:] == (_KEY,)
        keys, model = _walk(form, loc[:-1] if is_key else loc)
        place = ".".join([*([where] if where else []), *keys])
        if item["type"] == "extra_forbidden":
            legal = [key for key in model.model_fields if key not in hidden] if model else []
            known = suggest(keys[-1], legal) if model else ""
            yield f"{place}: unknown key.{elsewhere(keys[-1]) or known}"
        elif item["type"] == "missing":
            said = elsewhere(keys[-1])
            yield f"{place}: missing (no number of an experiment has a default){said and '.'}{said}"
        else:
            wrong.setdefault((place, is_key), []).append(item)
    for (place, is_key), items in wrong.items():
        # A key of several forms has a finding for each of them.
        expected = " or ".join(dict.fromkeys(map(_expectation, items)))
        expected = f"as the key {expected}" if is_key else expected
        yield f"{place}: expected {expected}, found {_shown(items[0]['input'])}{_hint(items)}"


def _expectation(item: dict) -> str:
    pattern = _PATTERNS.get(item.get("ctx", {}).get("pattern", ""))
    form = _EXPECTED.get(item["type"], item["msg"])
    return pattern or form.format(**item.get("ctx", {}))


def _hint(items: list[dict]) -> str:
    legal = [
        name.strip("' ")
        for item in items
        for key in ("expected", "expected_tags")
        for name in str(item.get("ctx", {}).get(key, "")).replace(" or ", ", ").split(",")
    ]
    found = items[0].get("ctx", {}).get("tag", items[0]["input"])
    hint = suggest(found, legal) if isinstance(found, str) and any(legal) else ""
    return f".{hint}" if "Did you mean" in hint else ""


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _walk(form: type[BaseModel], loc: tuple) -> tuple[list[str], type[BaseModel] | None]:
    """Return the keys of the file that lead to a place, and the model that holds the last one."""
    keys, annotation, holder = [], form, None
    for part in loc:
        members = _members(annotation)
        named = [member for member in members if part in (_tag(member), _name(member))]
        if len(members) > 1 and (named or not isinstance(part, int)):
            annotation = named[0] if named else object  # which of several forms: no key
            continue
        keys.append(str(part))
        holder = members[0] if isinstance(members[0], type) else None
        annotation = _inside(members[0], part)
    is_model = isinstance(holder, type) and issubclass(holder, BaseModel)
    return keys, holder if is_model else None


def _members(annotation: object) -> list[object]:
    if get_origin(annotation) is Annotated:
        return _members(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        return [each for part in get_args(annotation) for each in _members(part)]
    return [annotation]


def _tag(member: object) -> object:
    """Return the value of the key that tells a form from others: its only literal."""
    fields = getattr(member, "model_fields", {}).values()
    literals = [get_args(f.annotation) for f in fields if f.is_required()]
    return next((each[0] for each in literals if len(each) == 1 and type(each[0]) is str), None)


def _name(member: object) -> object:
    return getattr(member, "__name__", None)


def _inside(annotation: object, part: object) -> object:
    fields = getattr(annotation, "model_fields", {})
    if part in fields:
        return fields[part].annotation
    arguments = get_args(annotation)
    return arguments[-1] if get_origin(annotation) in (dict, list) else object
