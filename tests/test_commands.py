"""Every command that README and docs show is run: here, on a stand-in for the graph, or by .ci/run.

The stand-in has the real papers, the real parameters of two studies, the real metric and plots, and
one stage that makes up a sum of recalls from a recipe's settings, so that what DVC writes, compares
and prints is real and only the training is not.
"""

import ast
import json
import re
import shutil
import sys
from contextlib import chdir
from pathlib import Path
from runpy import run_module

import numpy as np
import pytest
import tiny_study
from dvc.utils.serialize import modify_yaml
from graph import ROOT, read_yaml
from ruamel.yaml import YAML
from shell import run

from benchmarks.faults import RECOVERY

DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
PROGRAMS = ("uv ", "dvc ", "python ", "pip ", "git ", "cd ", "polyview ")

STAND_IN = """
import json, zlib
from pathlib import Path
from ruamel.yaml import YAML
def read(path):
    return YAML(typ="safe").load(Path(path).read_text(encoding="utf-8"))
papers = read(Path(read("params.yaml")["root"]) / "papers.yaml")
rows = {name: papers[row["paper"]] | row for name, row in read("params.yaml")["recipes"].items()}
made_up = {name: zlib.crc32(repr(row).encode()) % 6000 / 10 for name, row in rows.items()}
for folder in ("data", "metrics/results"):
    Path(folder).mkdir(parents=True, exist_ok=True)
Path("data/models").write_text(json.dumps(rows))
Path("metrics/results/summary.json").write_text(json.dumps(made_up, indent=1))
lines = [f"{name},en,{value},{value - 9},{value + 9}" for name, value in made_up.items()]
header = "recipe,language,sum_of_recalls,sum_of_recalls_low,sum_of_recalls_high"
Path("metrics/results/summary.csv").write_text("\\n".join([header, *lines]) + "\\n")
lines = ["recipe,epoch,sum_of_recalls", *(f"{name},1,{value}" for name, value in made_up.items())]
Path("metrics/results/curves.csv").write_text("\\n".join(lines) + "\\n")
"""


def commands(text):
    """Return the commands that a text shows: lines of shell blocks, and code in its prose."""
    blocks = re.findall(r"^```(?:bash|sh|console)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    lines = [re.sub(r"\s+# .*$", "", line) for block in blocks for line in block.splitlines()]
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    spans = [" ".join(span.split()) for span in re.findall(r"`([^`]+)`", prose)]
    return [line for line in lines if line] + [s for s in spans if s.startswith(PROGRAMS)]


def run_in_this_file():
    """Return the commands that the tests here run, as they are written."""
    calls = [n for n in ast.walk(ast.parse(Path(__file__).read_text())) if isinstance(n, ast.Call)]
    first = [call.args[0] for call in calls if getattr(call.func, "id", "") == "run"]
    return {argument.value for argument in first if isinstance(argument, ast.Constant)}


SHOWN = {command for path in DOCUMENTS for command in commands(path.read_text(encoding="utf-8"))}
BENCHMARKS = sorted(command for command in SHOWN if "-m benchmarks." in command)
GROUPS = sorted(command for command in SHOWN if command.startswith("uv sync --group"))


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """Return a git repository with the stand-in for two studies, the data of world at hand."""
    folder = tmp_path_factory.mktemp("project")
    graph = read_yaml(ROOT / "dvc.yaml")
    for study in (".", "studies/flickr8k"):
        home = folder / study
        (home / ".dvc").mkdir(parents=True, exist_ok=True)
        for name in ("params.yaml", ".dvc/config", ".dvc/.gitignore", ".dvcignore"):
            shutil.copy(ROOT / study / name, home / name)
        shutil.copytree(ROOT / study / ".dvc/plots", home / ".dvc/plots")
        stage = {
            "cmd": "python stand_in.py",
            "deps": ["${root}/papers.yaml", "${root}/stages", "params.yaml"],
            "outs": [
                "data/models",
                *(
                    {f"metrics/results/{name}": {"cache": False}}
                    for name in ("summary.csv", "summary.json", "curves.csv")
                ),
            ],
        }
        shown = {part: graph[part] for part in ("params", "metrics", "plots")}
        (home / "dvc.yaml").write_text(json.dumps({"stages": {"train": stage}, **shown}))
        (home / "stand_in.py").write_text(STAND_IN)
    for name in (".gitignore", "papers.yaml"):
        shutil.copy(ROOT / name, folder / name)
    (folder / "stages").mkdir()
    (folder / "stages/code.py").write_text("number = 1\n")
    checkout = folder / "studies/flickr8k/checkout"
    checkout.mkdir()
    for name in ("papers.yaml", "stages"):
        (checkout / name).symlink_to(f"../../../{name}")
    run("git init --quiet --initial-branch=main && git add --all", folder)
    run("dvc repro --quiet && git add --all && git commit --quiet -m reproduced", folder)
    return folder


@pytest.fixture
def world(project):
    """Return the stand-in of world as it was committed, without the experiments of other tests."""
    run("git restore . && dvc exp remove --all-commits", project)
    return project


def values(folder, name="params.yaml"):
    return read_yaml(folder / name)


def changed_lines(folder):
    return [
        line.split()[:2] for line in run("git diff --numstat HEAD -- '*.yaml'", folder).splitlines()
    ]


def test_a_model_is_trained_by_several_processes(tmp_path, monkeypatch):
    """By a real stage under DVC, which takes it for no other than that of one process."""
    tiny_study.make(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    name = tiny_study.NAME
    outs = [{f"data/{kind}/{name}": {"persist": True}} for kind in ("models", "training")]
    stage = {"cmd": "python -m stages.train ${item}", "deps": ["params.yaml"], "outs": outs}
    graph = {"stages": {"train": {"foreach": [name], "do": stage}}}
    (tmp_path / "dvc.yaml").write_text(json.dumps(graph))
    run("git init --quiet && dvc init --quiet", tmp_path)
    said = run("POLYVIEW_TRAIN_PROCESSES=2 uv run dvc repro 2>&1", tmp_path)
    assert f"{name} seed 1 on cpu in f32, 2 ranks" in said
    assert "Running stage" not in run("uv run dvc repro", tmp_path)
    run("python -m torch.distributed.run --nproc-per-node 2 -m stages.train kadar_en", tmp_path)
    assert "up to date" in run("dvc status", tmp_path)


def test_results_are_compared_with_those_of_the_last_commit(world):
    assert run("uv run dvc metrics diff", world) == run("uv run dvc params diff", world) == ""
    with modify_yaml(world / "params.yaml") as content:
        content["recipes"]["kadar_en"]["max_epochs"] = 99
    assert "Running stage 'train'" in run("uv run dvc repro", world)
    assert "Running stage" not in run("uv run dvc repro", world)
    changed = run("uv run dvc params diff", world)
    assert re.search(r"recipes.kadar_en.max_epochs +\d+ +99\n", changed)
    difference = run("uv run dvc metrics diff", world)
    row = r"metrics/results/summary.json +kadar_en +[\d.]+ +[\d.]+ +-?[\d.]+\n"
    assert re.search(row, difference)
    assert "mule" not in difference
    page = run("uv run dvc plots show", world).strip().removeprefix("file://")
    assert "kadar_en_de_translated_c2c" in Path(page).read_text(encoding="utf-8")
    assert "index.html" in run("dvc plots diff", world)
    assert "dvc_plots" not in run("git status --short", world)


def test_experiments_are_kept_taken_back_and_shown_in_120_columns(world):
    epochs = str(values(world)["recipes"]["ame"]["max_epochs"])
    run("uv run dvc exp run --name epochs -S 'recipes.ame.max_epochs=2'", world)
    assert values(world)["recipes"]["ame"]["max_epochs"] == 2
    assert changed_lines(world) == [["1", "1"]]
    run("git restore . && uv run dvc checkout", world)
    assert run("git status --short", world) == ""
    assert "up to date" in run("dvc status", world)
    run("uv run dvc exp run --name margin -S '+recipes.ame.margin=0.1'", world)
    assert values(world)["recipes"]["ame"]["margin"] == 0.1
    assert changed_lines(world) == [["1", "0"]]
    run("git restore . && uv run dvc checkout", world)
    shown = run("uv run dvc exp show --only-changed --drop '.*/|.*yaml|Created'", world)
    assert max(map(len, shown.splitlines())) <= 120
    assert "…" not in shown
    header, *rows = [line.split() for line in shown.splitlines() if line.strip(" ─")]
    names = ["ame", "recipes.ame.max_epochs", "recipes.ame.margin"]
    assert header == ["Experiment", *names]
    found = {row[-4].strip("[]"): row[-3:] for row in rows}
    assert set(found) == {"workspace", "main", "epochs", "margin"}
    assert found["workspace"] == found["main"]
    assert [row[1:] for row in (found["main"], found["epochs"], found["margin"])] == [
        [epochs, "-"],
        ["2", "-"],
        [epochs, "0.1"],
    ]
    run("uv run dvc exp apply margin", world)
    score = json.loads((world / "metrics/results/summary.json").read_text())["ame"]
    assert float(found["margin"][0]) == score != float(found["main"][0])
    assert "margin: 0.1" in run("git diff -- params.yaml", world)
    assert "up to date" in run("dvc status", world)


def test_keys_of_recipes_papers_and_evaluations_and_lists_are_overridden(world):
    expected = values(world)
    papers = values(world, "papers.yaml")
    run("uv run dvc exp run -S 'recipes.kadar_en.max_epochs=3'", world)
    run("uv run dvc exp run -S 'papers.yaml:kadar2019.margin=0.1'", world)
    run("uv run dvc exp run -S 'recipes.ame.seeds=[1,2,3]'", world)
    run("uv run dvc exp run -S evaluations.retrieval.bootstrap_samples=500", world)
    assert changed_lines(world) == [["1", "1"], ["4", "2"]]
    expected["evaluations"]["retrieval"]["bootstrap_samples"] = 500
    expected["recipes"]["kadar_en"]["max_epochs"] = 3
    expected["recipes"]["ame"]["seeds"] = [1, 2, 3]
    papers["kadar2019"]["margin"] = 0.1
    assert values(world) == expected
    assert values(world, "papers.yaml") == papers


def test_a_study_is_reproduced_and_overridden_in_its_folder(world):
    assert "Running stage 'train'" in run("cd studies/flickr8k && uv run dvc repro", world)
    folder = world / "studies/flickr8k"
    assert "up to date" in run("dvc status", folder)
    (world / "stages/code.py").write_text("number = 2\n")
    assert "checkout/stages" in run("dvc status", folder)
    run("git restore stages", world)
    run("git add --all && git commit --quiet -m study", world)
    run("uv run dvc exp run -S +recipes.kadar_en.margin=0.1", folder)
    assert "kadar_en.margin" in run("uv run dvc params diff", folder)


def test_the_graph_is_drawn(tmp_path):
    for name in ("dvc.yaml", "params.yaml", "papers.yaml"):
        shutil.copy(ROOT / name, tmp_path)
    run("git init --quiet && mkdir .dvc", tmp_path)
    assert "evaluate@kadar_en" in run("dvc dag", tmp_path)


def test_a_recipe_is_printed():
    assert "max_epochs" in run("uv run polyview recipe kadar_en", ROOT)


def test_a_study_is_checked():
    assert "nothing was found" in run("uv run polyview check", ROOT)


def test_pins_and_licences_are_written_as_they_stand(tmp_path):
    names = (".ci/dependencies.py", "pyproject.toml", "docs/licences.md")
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    run("uv run python .ci/dependencies.py", tmp_path)
    for name in names:
        assert (tmp_path / name).read_bytes() == (ROOT / name).read_bytes()


@pytest.fixture
def trained(colours, tmp_path):
    """Return a folder with a trained model where world's is, photos, and captions."""
    shutil.copytree(colours / "model", tmp_path / "data/models/mule/seed-1")
    shutil.copytree(colours / "photos", tmp_path / "photos")
    (tmp_path / "captions.tsv").write_text("language\ttext\nen\ta red photo\n")
    return tmp_path


def test_photos_are_searched_and_served(trained, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(trained / "cache"))
    found = run(
        'uv run polyview search data/models/mule/seed-1 photos/ "ein Hund am Strand"', trained
    )
    assert len(found.splitlines()) == 4
    assert "serve data/models" in run("polyview serve --help", trained)


def test_a_model_is_exported(trained):
    pytest.importorskip("onnxscript", reason="the group export is not installed")
    pytest.importorskip("sentence_transformers", reason="the group export is not installed")
    run("uv run polyview export data/models/mule/seed-1 mule-onnx --to onnx", trained)
    run(
        "uv run polyview export data/models/mule/seed-1 mule-st --to sentence-transformers",
        trained,
    )
    assert (trained / "mule-onnx/image.onnx").is_file()
    assert (trained / "mule-st/modules.json").is_file()


def test_vectors_of_a_table_are_written(trained):
    run("uv run polyview embed data/models/mule/seed-1 captions.tsv vectors.parquet", trained)
    assert (trained / "vectors.parquet").is_file()


def test_the_page_of_parameters_is_as_the_code_describes_them(tmp_path):
    (tmp_path / "docs").mkdir()
    shutil.copy(ROOT / "docs/parameters.py", tmp_path / "docs")
    run("uv run python docs/parameters.py", tmp_path)
    found = (tmp_path / "docs/parameters.md").read_text(encoding="utf-8")
    shown = (ROOT / "docs/parameters.md").read_text(encoding="utf-8")
    assert found == shown, "run uv run python docs/parameters.py"
    keys = [line.split(" | ") for line in found.splitlines() if line.startswith("| `")]
    assert len(keys) > 200
    assert not [key for key, *_, meaning in keys if not meaning.strip(" |")]


def test_features_take_the_place_of_photos_as_the_docs_say(tmp_path):
    """The file is written by the code that docs/data.md shows."""
    home = tmp_path / "checkout"
    (home / "studies").mkdir(parents=True)
    for name in ("dvc.yaml", "params.yaml", "papers.yaml"):
        shutil.copy(ROOT / name, home)
    shutil.copytree(ROOT / ".dvc/plots", home / ".dvc/plots")
    names = [f"{number}.jpg" for number in range(60)]
    rows = [f"{name}\t{code}\t{code} {name}" for name in names for code in ("en", "de")]
    table = "\n".join(["image\tlanguage\ttext", *rows, ""])
    (home / "captions.tsv").write_text(table, encoding="utf-8")
    text = (ROOT / "docs/data.md").read_text(encoding="utf-8")
    [code] = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    vectors = np.random.default_rng(0).random((60, 8))
    with chdir(home):
        exec(code, {"vectors": vectors, "names": names})
    run("uv run polyview new mine --captions captions.tsv --features clip.h5", home)
    [shown] = read_yaml(home / "studies/mine/params.yaml")["extractors"].values()
    [block] = re.findall(r"^```\n(extractors:.*?)^```$", text, re.MULTILINE | re.DOTALL)
    [documented] = YAML(typ="safe").load(block)["extractors"].values()
    assert shown.keys() == documented.keys()


def test_commands_are_completed(tmp_path):
    run('eval "$(_POLYVIEW_COMPLETE=bash_source polyview)"', tmp_path)
    asked = "COMP_WORDS='polyview se' COMP_CWORD=1 _POLYVIEW_COMPLETE=bash_complete polyview"
    assert run(asked, tmp_path).split() == ["plain,search", "plain,serve"]


def test_tables_of_results_are_written_as_they_stand(tmp_path):
    """On a copy: the command writes into the folder in which it runs."""
    names = run("git ls-files -- '*.py' '*.csv' '*.md' metrics studies", ROOT).splitlines()
    before = {name: (ROOT / name).read_bytes() for name in names if (ROOT / name).is_file()}
    for name, content in before.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    run("python -m pipeline_lib.reporting.pages", tmp_path)
    assert [name for name in before if (tmp_path / name).read_bytes() != before[name]] == []


def test_hooks_are_installed(tmp_path):
    shutil.copy(ROOT / ".pre-commit-config.yaml", tmp_path)
    run("git init --quiet", tmp_path)
    run("uv run pre-commit install", tmp_path)
    assert (tmp_path / ".git/hooks/pre-commit").is_file()


@pytest.mark.parametrize("command", BENCHMARKS)
def test_benchmarks_start(command, monkeypatch, capsys):
    """They take minutes on idle cores or a GPU: here they only name their options."""
    module, *options = command.partition("-m ")[2].split()
    monkeypatch.setattr(sys, "argv", [module, *options, "--help"])
    monkeypatch.delitem(sys.modules, module, raising=False)
    with pytest.raises(SystemExit, match=r"^0$"):
        run_module(module, run_name="__main__")
    assert "--help" in capsys.readouterr().out


@pytest.mark.parametrize("command", GROUPS)
def test_groups_of_packages_are_declared(command):
    assert f"\n{command.split()[-1]} = [" in (ROOT / "pyproject.toml").read_text(encoding="utf-8")


def is_run(command):
    """Say whether a command, or one that begins with it, is run here or in .ci/run."""
    script = (ROOT / ".ci/run").read_text(encoding="utf-8").replace("uv run ", "")
    by_ci = [line for line in script.splitlines() if not line.lstrip().startswith("#")]
    bare = command.replace("uv run ", "")
    here = (own.replace("uv run ", "") for own in run_in_this_file())
    return (
        command in {*BENCHMARKS, *GROUPS, RECOVERY}
        or any(own == bare or own.startswith(f"{bare} ") for own in here)
        or all(
            any(re.search(rf"{re.escape(part)}(?![\w@.-])", line) for line in by_ci)
            for part in bare.split(" && ")
        )
    )


@pytest.mark.parametrize("command", sorted(SHOWN))
def test_every_command_shown_is_run(command):
    assert is_run(command), "run it in a test here or in .ci/run"


def test_commands_are_found_in_blocks_and_in_prose():
    text = "Run `uv run\ndvc repro` and `params.yaml`:\n\n```bash\na -b 'c|d'   # why\n\n```\n\n"
    assert commands(text + "```yaml\na: `git x`\n```\n") == ["a -b 'c|d'", "uv run dvc repro"]
    assert not is_run("dvc destroy")
    assert not is_run("uv run dvc repro train@nothing")


def test_readme_is_a_door_whose_links_lead_somewhere():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 200
    paths = {link.partition("#")[0] for link in re.findall(r"\]\(([^):]+)\)", text)}
    assert len(paths) > 10
    assert [path for path in sorted(paths) if not (ROOT / path).is_file()] == []
