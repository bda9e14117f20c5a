"""Write what the other stages depend on besides data: digests of their code, merged settings."""

import json
from collections.abc import Iterator
from pathlib import Path

import click
from ruamel.yaml import YAML

from pipeline_lib.checks.study import check_before_work
from pipeline_lib.models.preprocessing import preprocessing_of
from pipeline_lib.running.edge import EdgeCommand
from pipeline_lib.running.edits import RESOLVED, remember, sources
from pipeline_lib.running.fingerprints import stage_code
from pipeline_lib.running.publishing import publish
from pipeline_lib.running.resolved import check_is_current, check_unedited
from pipeline_lib.settings.loading import load_settings
from pipeline_lib.settings.recipes import Recipe
from pipeline_lib.settings.study import PARAMS, Settings, modules_of


@click.command(cls=EdgeCommand, help=__doc__)
@click.option("--compare", multiple=True, hidden=True, help="Asked by running/edits.py of a file.")
def main(compare: tuple[str, ...]) -> None:
    """Write data/resolved: code/STAGE.txt; recipes, evaluation and preprocessing by NAME."""
    read = sources()
    settings = load_settings()
    if compare:
        check_is_current(_texts(settings), compare, read)
        return
    check_before_work(settings)
    with publish(Path(RESOLVED)) as folder:
        for name, text in _texts(settings).items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
    check_unedited(read)
    remember(read)


def _texts(settings: Settings) -> dict[str, str]:
    """Return the content of each file of data/resolved."""
    return {
        **{f"code/{stage}.txt": text for stage, text in _code_of_stages().items()},
        **dict(_of_recipes(settings)),
        "tokenizers.json": _text(settings.model_dump(mode="json")["tokenizers"]),
    }


def _of_recipes(settings: Settings) -> Iterator[tuple[str, str]]:
    for name in settings.recipes:
        recipe = settings.recipe(name)
        extractor = settings.extractors[recipe.features]
        preprocessing = preprocessing_of(recipe.languages, settings.tokenizers, extractor)
        yield f"recipes/{name}.json", _text(recipe.model_dump(mode="json"))
        yield f"evaluation/{name}.json", _text(_evaluation(settings, recipe))
        yield f"preprocessing/{name}.json", _text(preprocessing.model_dump(mode="json"))


def _evaluation(settings: Settings, recipe: Recipe) -> dict[str, object]:
    """Return what the scores of a recipe depend on; tests of differences come later."""
    chosen = settings.evaluations.model_dump(mode="json", exclude={"significance"})
    return chosen | {"pools": {language: settings.pools[language] for language in recipe.languages}}


def _code_of_stages() -> dict[str, str]:
    # DVC lets no stage depend on dvc.yaml, and none needs to: a block that changes runs its stage,
    # and a module that changes runs this one.
    blocks = YAML(typ="safe").load(Path("dvc.yaml").read_text(encoding="utf-8"))["stages"]
    return {
        name: stage_code(name, modules_of(_sections(block.get("do", block))))
        for name, block in blocks.items()
        if name != "resolve"
    }


def _sections(block: dict) -> set[str]:
    """Return the sections of params.yaml that a stage depends on: some, or the whole file."""
    if PARAMS.name in block["deps"]:
        return {*Settings.model_fields}
    resolved = {
        "data/resolved/recipes/${key}.json": {"recipes"},
        "data/resolved/preprocessing/${key}.json": {"tokenizers", "extractors"},
        "data/resolved/evaluation/${key}.json": {"evaluations", "pools"},
        "data/resolved/tokenizers.json": {"tokenizers"},
    }
    read = set().union(*(resolved.get(dep, set()) for dep in block["deps"]))
    return read | {param.split(".")[0] for param in block.get("params", [])}


def _text(values: object) -> str:
    return json.dumps(values, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    main()
