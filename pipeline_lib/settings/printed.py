"""A recipe as it is read: a line per value, with the place that sets it."""

import io

from ruamel.yaml import YAML

from pipeline_lib.settings.study import Settings


def recipe_lines(settings: Settings, name: str) -> list[str]:
    """Return recipe ``name`` as lines of YAML, each with where its value comes from.

    Raises:
        SettingsError: There is no such recipe.
    """
    lines = [(_yaml(key, value), origin) for key, (value, origin) in settings.origins(name).items()]
    width = max(len(line) for line, _ in lines)
    return [f"{line:{width}}  # {origin}" for line, origin in lines]


def _yaml(key: str, value: object) -> str:
    yaml, text = YAML(), io.StringIO()
    yaml.default_flow_style, yaml.width = True, 10_000
    yaml.dump({key: value}, text)
    return text.getvalue().strip()[1:-1]
