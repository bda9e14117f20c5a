"""Reports as the text that stages leave in metrics/."""

import json
from collections.abc import Mapping

DECIMALS = 4


def to_json(report: Mapping[str, object]) -> str:
    """Return a report as text, with numbers rounded to :data:`DECIMALS` places."""
    return json.dumps(_rounded(report), indent=1) + "\n"


def _rounded(value: object) -> object:
    if isinstance(value, Mapping):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    return round(value, DECIMALS) if isinstance(value, float) else value
