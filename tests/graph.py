"""The rooms of the library and the stages of the graph."""

from pathlib import Path

from ruamel.yaml import YAML

ROOT = Path(__file__).resolve().parent.parent
ROOMS = [
    {"settings"},
    {"compute"},
    {"contract", "running"},
    {"scheduling"},
    {"corpora", "images", "text"},
    {"checks"},
    {"models"},
    {"training"},
    {"synthesis", "evaluation"},
    {"reporting"},
    {"search", "export"},
    {"cli"},
]


def read_yaml(path):
    return YAML(typ="safe").load(path.read_text(encoding="utf-8"))


STAGES = read_yaml(ROOT / "dvc.yaml")["stages"]


def room_number(path):
    room = path.relative_to(ROOT / "pipeline_lib").parts[0].removesuffix(".py")
    numbers = [number for number, rooms in enumerate(ROOMS) if room in rooms]
    assert numbers, f"{path} is in no room: add it to ROOMS and to pipeline_lib/__init__.py"
    return numbers[0]
