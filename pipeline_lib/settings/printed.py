"""A recipe as it is read: a line per value, with the place that sets it."""

import io

from ruamel.yaml import YAML

from pipeline_lib.settings.study import Settings


def recipe_lines(settings: Settings, name: str) -> list[str]:
    """Return recipe ``name`` as lines of YAML, each with where its value comes from.

    Raises:
        SettingsError: There is no such recipe.
    """
    found = settings.origins(name)
    lines = [(_yaml(key, own[0][0]), _said(own)) for key, own in found.items()]
    width = max(len(line) for line, _ in lines)
    return [f"{line:{width}}  # {origin}" for line, origin in lines]


def study_lines(settings: Settings) -> list[str]:
    """Return a line for each recipe of a study: its paper, seeds and languages."""
    recipes = {name: settings.recipe(name) for name in settings.recipes}
    table = [(name, own.paper, own.seeds, own.languages) for name, own in recipes.items()]
    rows = [("recipe", "paper", "seeds", "languages")]
    rows += [
        (name, paper, *(" ".join(map(str, each)) for each in own)) for name, paper, *own in table
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]


def _said(values: list[tuple[object, str]]) -> str:
    """Say where a value comes from, and what the place before it has if that is another one."""
    (value, origin), *before = values
    if before and before[0][0] != value:
        other, place = before[0]
        return f"{origin}, in place of {_yaml('that', other).removeprefix('that: ')} ({place})"
    return origin


def _yaml(key: str, value: object) -> str:
    yaml, text = YAML(), io.StringIO()
    yaml.default_flow_style, yaml.width = True, 10_000
    yaml.dump({key: value}, text)
    return text.getvalue().strip()[1:-1]
