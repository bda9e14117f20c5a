"""The graph of stages, drawn from dvc.yaml and the study's parameters."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from pipeline_lib.reporting.markup import element
from pipeline_lib.reporting.svg import picture, text

_WIDTH, _BOX_HEIGHT, _ROW = 360, 34, 66
_GAP = 8


@dataclass(frozen=True)
class Stage:
    """One block of dvc.yaml.

    Attributes:
        name: Of the block.
        instances: How many of it there are in the study.
        reads: Stages above it in the file whose outputs it reads.
        reads_back: The same of stages below it: some instance of theirs comes first.
    """

    name: str
    instances: int
    reads: frozenset[str]
    reads_back: frozenset[str]


def stage_graph(blocks: Mapping[str, dict], params: Mapping[str, object]) -> list[Stage]:
    """Return the stages in the order of dvc.yaml; those without an instance are left out.

    ``code`` is left out, too: every stage reads it.

    Args:
        blocks: ``stages`` of dvc.yaml.
        params: All of params.yaml, which its ``${…}`` name.
    """
    instances = {
        name: list(_instances(block, params)) for name, block in blocks.items() if name != "code"
    }
    outs = {
        (name, path) for name, all_ in instances.items() for one in all_ for path in one["outs"]
    }
    names = list(instances)
    stages = []
    for number, (name, all_) in enumerate(instances.items()):
        sources = _sources(all_, outs)
        above, below = (
            frozenset(sources & {*part}) for part in (names[:number], names[number + 1 :])
        )
        if all_:
            stages.append(Stage(name, len(all_), above, below))
    return stages


def levels(stages: list[Stage]) -> dict[str, int]:
    """Return the row of each stage: below all that it reads, and as near as it can be to readers.

    A stage that none reads stands right below the last one that it reads.
    """
    found: dict[str, int] = {}
    for stage in stages:
        found[stage.name] = max((found[name] + 1 for name in stage.reads), default=0)
    for stage in reversed(stages):
        readers = [found[other.name] for other in stages if stage.name in other.reads]
        found[stage.name] = min(readers, default=found[stage.name] + 1) - 1
    return found


def direct(stages: list[Stage]) -> Iterator[tuple[str, str]]:
    """Yield pairs (stage, stage that reads it) that no longer way connects as well."""
    reads = {stage.name: stage.reads for stage in stages}

    def before(name: str) -> set[str]:
        return set(reads[name]).union(*(before(other) for other in reads[name]))

    for stage in stages:
        behind = set().union(*(before(name) for name in stage.reads))
        for name in sorted(stage.reads - behind):
            yield name, stage.name


def draw_graph(stages: list[Stage]) -> Element:
    """Draw the stages from top to bottom, each below all that it reads."""
    depth = levels(stages)
    rows = [
        [stage for stage in stages if depth[stage.name] == level]
        for level in range(max(depth.values()) + 1)
    ]
    places = {
        stage.name: ((column + 0.5) * _WIDTH / len(row), number * _ROW + _BOX_HEIGHT / 2 + 2)
        for number, row in enumerate(rows)
        for column, stage in enumerate(row)
    }
    widest = {stage.name: _WIDTH / len(row) - _GAP for row in rows for stage in row}
    drawn = [_edge(places[source], places[target]) for source, target in direct(stages)]
    drawn += [_edge_back(places[name], places[s.name]) for s in stages for name in s.reads_back]
    for stage in stages:
        drawn += _box(stage, *places[stage.name], min(widest[stage.name], 120))
    words = "; ".join(f"{s.name} reads {', '.join(sorted(s.reads)) or 'no stage'}" for s in stages)
    height = len(rows) * _ROW - (_ROW - _BOX_HEIGHT) + 4
    return picture(f"The graph of stages: {words}", height, drawn, _WIDTH)


def _instances(block: dict, params: Mapping[str, object]) -> Iterator[dict[str, list[str]]]:
    """Yield ``deps`` and ``outs`` of each instance of a block."""
    body = block.get("do", block)
    every = _look_up(params, block["foreach"][2:-1]) if "foreach" in block else {"": {}}
    for key, item in every.items():
        known = {**params, "key": key, "item": item}
        yield {
            kind: [_filled(entry, known) for entry in entries]
            for kind, entries in (
                ("deps", body.get("deps", [])),
                ("outs", [*body.get("outs", []), *body.get("plots", [])]),
            )
        }


def _filled(entry: str | dict, known: Mapping[str, object]) -> str:
    path = entry if isinstance(entry, str) else next(iter(entry))
    return re.sub(r"\$\{([^}]+)\}", lambda name: str(_look_up(known, name[1])), path)


def _look_up(known: Mapping[str, object], name: str) -> object:
    value: object = known
    for part in name.split("."):
        value = value[part]
    return value


def _sources(instances: list[dict[str, list[str]]], outs: set[tuple[str, str]]) -> set[str]:
    deps = {dep for one in instances for dep in one["deps"]}
    return {name for name, out in outs if any(_meet(dep, out) for dep in deps)}


def _meet(a: str, b: str) -> bool:
    return f"{a}/".startswith(f"{b}/") or f"{b}/".startswith(f"{a}/")


def _edge(source: tuple[float, float], target: tuple[float, float]) -> Element:
    (x1, y1), (x2, y2) = source, target
    y1, y2 = y1 + _BOX_HEIGHT / 2, y2 - _BOX_HEIGHT / 2
    half = (_ROW - _BOX_HEIGHT) * 0.6
    way = f"M{x1:.1f},{y1:.1f} C{x1:.1f},{y1 + half:.1f} {x2:.1f},{y2 - half:.1f} {x2:.1f},{y2:.1f}"
    return element("path", {"d": way, "class": "edge"})


def _edge_back(source: tuple[float, float], target: tuple[float, float]) -> Element:
    (x1, y1), (x2, y2) = source, target
    side = max(x1, x2) + 110
    way = f"M{x1:.1f},{y1:.1f} C{side:.1f},{y1:.1f} {side:.1f},{y2:.1f} {x2:.1f},{y2:.1f}"
    return element("path", {"d": way, "class": "edge back"})


def _box(stage: Stage, x: float, y: float, width: float) -> list[Element]:
    corner = {"x": x - width / 2, "y": y - _BOX_HEIGHT / 2, "width": float(width)}
    shape = {"height": _BOX_HEIGHT, "rx": 6, "class": "box"}
    times = f"× {stage.instances}" if stage.instances > 1 else ""
    return [
        element("rect", {**corner, **shape}),
        text(x, y if times else y + 4, stage.name, anchor="middle", kind="name"),
        *([text(x, y + 12, times, anchor="middle")] if times else []),
    ]
