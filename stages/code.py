"""Fingerprint the code of every stage, so that each stage depends on what its modules do."""

from pathlib import Path

import click
from ruamel.yaml import YAML

from pipeline_lib.fingerprints import stage_code
from pipeline_lib.publishing import publish
from pipeline_lib.settings.study import PARAMS, Settings, modules_of


@click.command(help=__doc__)
def main() -> None:
    """Write data/code: STAGE.txt for every other stage of the study's dvc.yaml."""
    # DVC lets no stage depend on dvc.yaml, and none needs to: a block that changes runs its stage,
    # and a module that changes runs this one.
    blocks = YAML(typ="safe").load(Path("dvc.yaml").read_text(encoding="utf-8"))["stages"]
    with publish(Path("data/code")) as folder:
        folder.mkdir()
        for name in blocks.keys() - {"code"}:
            described = modules_of(_sections(blocks[name].get("do", blocks[name])))
            (folder / f"{name}.txt").write_text(stage_code(name, described), encoding="utf-8")


def _sections(block: dict) -> set[str]:
    """Return the sections of params.yaml that a stage depends on: some, or the whole file."""
    if PARAMS.name in block["deps"]:
        return {*Settings.model_fields}
    return {param.split(".")[0] for param in block.get("params", [])}


if __name__ == "__main__":
    main()
