"""Every command that README and docs show is run: here, on a stand-in for the graph, or by .ci/run.

The stand-in has the real parameters of two studies, the real metric and plots, and one stage that
makes up a sum of recalls from a recipe's settings, so that what DVC writes, compares and prints is
real and only the training is not.
"""

import importlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from dvc.utils.serialize import modify_yaml
from ruamel.yaml import YAML
from shown_parameters import DOCUMENTS

from benchmarks.faults import RECOVERY

ROOT = Path(__file__).resolve().parent.parent
STUDIES = (".", "studies/flickr8k")
PROGRAMS = ("uv ", "dvc ", "python ", "pip ", "git ", "cd ")

REPRO = "uv run dvc repro"
PARAMS_DIFF = "uv run dvc params diff"
METRICS_DIFF = "uv run dvc metrics diff"
PLOTS = "uv run dvc plots show"
SAVE = "uv run dvc exp save --name start"
OF_A_RECIPE = "uv run dvc exp run --name epochs -S recipes.kadar_en.max_epochs=12"
BACK = "uv run dvc exp apply start"
NEW_TO_A_RECIPE = "uv run dvc exp run --name margin -S +recipes.kadar_en.margin=0.1"
SHOW = "uv run dvc exp show --only-changed --drop '.*/|.*yaml|Created'"
TAKE = "uv run dvc exp apply margin"
OF_A_PAPER = "uv run dvc exp run -S papers.kadar2019.margin=0.1"
A_LIST = "uv run dvc exp run -S 'recipes.kadar_en.seeds=[1,2,3]'"
OF_AN_EVALUATION = "uv run dvc exp run -S evaluations.retrieval.bootstrap_samples=500"
A_STUDY = "cd studies/flickr8k && uv run dvc repro"
GRAPH = "python tests/graph.py"
DAG = "dvc dag"
TABLES = "python -m pipeline_lib.reporting.pages"

BY_CI = {
    "pip install uv && uv run dvc repro": ["pip install --quiet uv", "uv run dvc repro"],
    "uv run pytest": ["uv run pytest"],
    "uv run dvc repro evaluate@mine": ["uv run dvc repro evaluate@mine"],
}
"""What takes minutes, and the commands of .ci/run that do it."""

MEASURES = [
    "python -m benchmarks.extraction",
    "python -m benchmarks.retrieval",
    "python -m benchmarks.training",
    "uv run --group benchmark python -m benchmarks.pseudopairs",
    "python -m benchmarks.translation",
    "python -m benchmarks.faults",
]
"""Minutes on idle cores: here they only start and name their options."""

ON_A_GPU = "python -m benchmarks.gpu"

RECOVER = (
    "grep -q \"^schema: '2.0'\" dvc.lock || cp -p .resume/dvc.lock dvc.lock; rm -f .dvc/tmp/rwlock"
)

INSTALLS = ["uv sync --group meteor", "uv sync --group ctranslate2"]

STAND_IN = """
import json, zlib
from pathlib import Path
from ruamel.yaml import YAML
params = YAML(typ="safe").load(Path("params.yaml").read_text(encoding="utf-8"))
rows = {name: params["papers"][row["paper"]] | row for name, row in params["recipes"].items()}
made_up = {name: zlib.crc32(repr(row).encode()) % 6000 / 10 for name, row in rows.items()}
for folder in ("data", "results"):
    Path(folder).mkdir(exist_ok=True)
Path("data/models").write_text(json.dumps(rows))
Path("metrics/results/summary.json").write_text(json.dumps(made_up, indent=1))
lines = ["recipe,sum_of_recalls", *(f"{name},{value}" for name, value in made_up.items())]
Path("metrics/results/summary.csv").write_text("\\n".join(lines) + "\\n")
"""
READS = ["papers", "departures", "recipes", "evaluations.retrieval"]
WRITES = [
    "data/models",
    {"metrics/results/summary.csv": {"cache": False}},
    {"metrics/results/summary.json": {"cache": False}},
]


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """Return a git repository with the stand-in for two studies; world is reproduced."""
    folder = tmp_path_factory.mktemp("project")
    graph = YAML(typ="safe").load((ROOT / "dvc.yaml").read_text(encoding="utf-8"))
    for study in STUDIES:
        home = folder / study
        (home / ".dvc").mkdir(parents=True)
        shutil.copy(ROOT / study / ".dvc/config", home / ".dvc/config")
        shutil.copy(ROOT / study / "params.yaml", home / "params.yaml")
        stage = {"cmd": "python stand_in.py", "params": READS, "outs": WRITES}
        shown = {part: graph[part] for part in ("metrics", "plots")}
        (home / "dvc.yaml").write_text(json.dumps({"stages": {"train": stage}, **shown}))
        (home / "stand_in.py").write_text(STAND_IN)
    shutil.copy(ROOT / ".gitignore", folder)
    run("git init --quiet --initial-branch=main && git add --all", folder)
    run(f"{REPRO} --quiet && git add --all && git commit --quiet -m reproduced", folder)
    return folder


@pytest.fixture
def world(project):
    """Return the stand-in of world with the parameters and results that were committed."""
    run("git checkout --quiet .", project)
    return project


def run(command, folder):
    """Run a command as a user types it, with the packages of this process; return its output."""
    scripts = Path(sys.executable).parent
    names = [f"GIT_{role}_{part}" for role in ("AUTHOR", "COMMITTER") for part in ("NAME", "EMAIL")]
    environment = {**os.environ, **dict.fromkeys(names, "test"), "COLUMNS": "120"}
    environment["PATH"] = f"{scripts}{os.pathsep}{environment['PATH']}"
    done = subprocess.run(
        ["bash", "-c", command.replace("uv run ", "")],
        cwd=folder,
        env=environment,
        capture_output=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def values(folder):
    return YAML(typ="safe").load((folder / "params.yaml").read_text(encoding="utf-8"))


def changed_lines(folder):
    return run("git diff --numstat HEAD -- params.yaml", folder).split()[:2]


def test_results_are_compared_with_those_of_the_last_commit(world):
    assert run(METRICS_DIFF, world) == run(PARAMS_DIFF, world) == ""
    with modify_yaml(world / "params.yaml") as content:
        content["recipes"]["kadar_en"]["max_epochs"] = 99
    assert "Running stage 'train'" in run(REPRO, world)
    assert "Running stage" not in run(REPRO, world)
    assert re.search(r"recipes.kadar_en.max_epochs +\d+ +99\n", run(PARAMS_DIFF, world))
    difference = run(METRICS_DIFF, world)
    assert re.search(
        r"metrics/results/summary.json +kadar_en +[\d.]+ +[\d.]+ +-?[\d.]+\n", difference
    )
    assert "mule" not in difference
    page = run(PLOTS, world).strip().removeprefix("file://")
    assert "kadar_en_de_translated_c2c" in Path(page).read_text(encoding="utf-8")
    assert "dvc_plots" not in run("git status --short", world)


def test_experiments_are_kept_taken_back_and_shown_in_120_columns(world):
    run("dvc checkout --quiet && dvc exp remove --quiet --all", world)
    epochs = str(values(world)["recipes"]["kadar_en"]["max_epochs"])
    run(SAVE, world)
    run(OF_A_RECIPE, world)
    assert values(world)["recipes"]["kadar_en"]["max_epochs"] == 12
    assert changed_lines(world) == ["1", "1"]
    run(BACK, world)
    assert run("git status --short", world) == ""
    assert "up to date" in run("dvc status", world)
    run(NEW_TO_A_RECIPE, world)
    assert values(world)["recipes"]["kadar_en"]["margin"] == 0.1
    assert changed_lines(world) == ["1", "0"]
    run(BACK, world)
    shown = run(SHOW, world)
    assert max(map(len, shown.splitlines())) <= 120
    assert "…" not in shown
    header, *rows = [line.split() for line in shown.splitlines() if line.strip(" ─")]
    names = ["kadar_en", "recipes.kadar_en.max_epochs", "recipes.kadar_en.margin"]
    assert header == ["Experiment", *names]
    found = {row[-4].strip("[]"): row[-3:] for row in rows}
    assert set(found) == {"workspace", "main", "epochs", "margin", "start"}
    assert found["workspace"] == found["main"] == found["start"]
    assert [row[1:] for row in (found["start"], found["epochs"], found["margin"])] == [
        [epochs, "-"],
        ["12", "-"],
        [epochs, "0.1"],
    ]
    run(TAKE, world)
    score = json.loads((world / "metrics/results/summary.json").read_text())["kadar_en"]
    assert float(found["margin"][0]) == score != float(found["start"][0])
    assert "margin: 0.1" in run("git diff -- params.yaml", world)


def test_keys_of_papers_and_evaluations_and_lists_are_overridden(world):
    before = values(world)
    run(OF_A_PAPER, world)
    assert changed_lines(world) == ["1", "1"]
    run(OF_AN_EVALUATION, world)
    assert changed_lines(world) == ["2", "2"]
    run(A_LIST, world)
    assert changed_lines(world) == ["4", "2"]
    before["papers"]["kadar2019"]["margin"] = 0.1
    before["evaluations"]["retrieval"]["bootstrap_samples"] = 500
    before["recipes"]["kadar_en"]["seeds"] = [1, 2, 3]
    assert values(world) == before


def test_a_study_is_reproduced_and_overridden_in_its_folder(project):
    assert "Running stage 'train'" in run(A_STUDY, project)
    folder = project / "studies/flickr8k"
    run(OF_A_PAPER, folder)
    assert values(folder)["papers"]["kadar2019"]["margin"] == 0.1
    assert changed_lines(folder) == ["1", "1"]


def test_the_graph_is_drawn(tmp_path):
    for name in ("dvc.yaml", "params.yaml"):
        shutil.copy(ROOT / name, tmp_path)
    run("git init --quiet && mkdir .dvc", tmp_path)
    assert "evaluate@kadar_en" in run(DAG, tmp_path)


def test_lists_of_modules_and_tables_of_results_are_written_as_they_stand(tmp_path):
    """On a copy: the commands write into the folder in which they run."""
    kept = "'*.py' '*dvc.yaml' '*.csv' metrics studies README.md"
    names = run(f"git ls-files -- {kept}", ROOT)
    before = {}
    for name in names.splitlines():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
        before[name] = (tmp_path / name).read_bytes()
    run(f"{GRAPH} && {TABLES}", tmp_path)
    assert [name for name, text in before.items() if (tmp_path / name).read_bytes() != text] == []


@pytest.mark.parametrize("command", MEASURES)
def test_benchmarks_start(command):
    main = importlib.import_module(command.split()[-1]).main
    assert "Usage:" in CliRunner().invoke(main, ["--help"], catch_exceptions=False).output


def test_the_benchmark_of_gpus_starts():
    command = [sys.executable, *ON_A_GPU.split()[1:], "--help"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert "--out" in run.stdout


def test_the_recovery_after_a_kill_is_that_of_the_campaign():
    """benchmarks.faults runs it after each kill that tore dvc.lock."""
    assert RECOVERY == RECOVER


def test_groups_of_packages_are_declared():
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for command in INSTALLS:
        assert f"\n{command.split()[-1]} = [" in text


BY_TEST = {
    test_results_are_compared_with_those_of_the_last_commit: [
        REPRO, PARAMS_DIFF, METRICS_DIFF, PLOTS,
    ],
    test_experiments_are_kept_taken_back_and_shown_in_120_columns: [
        SAVE, OF_A_RECIPE, BACK, NEW_TO_A_RECIPE, SHOW, TAKE,
    ],
    test_keys_of_papers_and_evaluations_and_lists_are_overridden: [
        OF_A_PAPER, A_LIST, OF_AN_EVALUATION,
    ],
    test_a_study_is_reproduced_and_overridden_in_its_folder: [A_STUDY],
    test_the_graph_is_drawn: [DAG],
    test_lists_of_modules_and_tables_of_results_are_written_as_they_stand: [GRAPH, TABLES],
    test_benchmarks_start: MEASURES,
    test_the_benchmark_of_gpus_starts: [ON_A_GPU],
    test_the_recovery_after_a_kill_is_that_of_the_campaign: [RECOVER],
    test_groups_of_packages_are_declared: INSTALLS,
}  # fmt: skip
"""Which test runs a command that README or docs show."""


def commands(text):
    """Return the commands that a text shows: lines of shell blocks, and code in its prose."""
    blocks = re.findall(r"^```(?:bash|sh|console)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    lines = [re.sub(r"\s+# .*$", "", line) for block in blocks for line in block.splitlines()]
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    spans = [" ".join(span.split()) for span in re.findall(r"`([^`]+)`", prose)]
    return [line for line in lines if line] + [s for s in spans if s.startswith(PROGRAMS)]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_command_shown_is_run(document):
    shown = set(commands(document.read_text(encoding="utf-8")))
    assert shown, "no command found"
    run_here = {command for run_by in BY_TEST.values() for command in run_by}
    assert sorted(shown - run_here - set(BY_CI)) == [], "run them in a test here or in .ci/run"


def test_commands_are_found_in_blocks_and_in_prose():
    text = "Run `uv run\ndvc repro` and `params.yaml`:\n\n```bash\na -b 'c|d'   # why\n\n```\n\n"
    assert commands(text + "```yaml\na: `git x`\n```\n") == ["a -b 'c|d'", "uv run dvc repro"]


@pytest.mark.parametrize("command", BY_CI)
def test_what_takes_minutes_is_run_by_ci(command):
    script = (ROOT / ".ci/run").read_text(encoding="utf-8")
    for part in BY_CI[command]:
        assert re.search(rf"^(?!#).*{re.escape(part)}\b", script, re.MULTILINE), part


def test_no_command_is_run_that_nothing_shows():
    shown = {command for path in DOCUMENTS for command in commands(path.read_text("utf-8"))}
    run_here = {command for run_by in BY_TEST.values() for command in run_by}
    assert sorted((run_here | set(BY_CI)) - shown) == []
