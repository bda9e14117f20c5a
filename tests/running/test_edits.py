"""What is edited while DVC runs is never recorded as what the outputs were made of."""

import json
import os
import subprocess
from pathlib import Path

import pytest
import tiny_study
from click.testing import CliRunner
from dvc_project import project_of_stages

from pipeline_lib.contract.problems import ContractError
from pipeline_lib.running import edits
from pipeline_lib.running.edits import Watch, sources, times
from stages import resolve

RESOLVE = """
import sys
from pathlib import Path
from pipeline_lib.running.edits import remember, sources
found, file = sources(), Path("data/resolved/code/made.txt")
text = str(Path("params.yaml").read_text().count("code"))
if sys.argv[1:]:
    assert sys.argv[1:] == ["--compare", str(file)]
    sys.exit(f"edited: {text}" if file.read_text() != text else 0)
file.parent.mkdir(parents=True)
file.write_text(text)
remember(found)
"""
EDITOR = """
from pathlib import Path
Path("user.txt").exists() and exec(Path("user.txt").read_text())
Path("edited").write_text("")
"""
MADE = """
from pathlib import Path
made = Path("read/a.txt").read_text() + Path("params.yaml").read_text()
Path("user while it runs.txt").exists() and exec(Path("user while it runs.txt").read_text())
Path("made").write_text(made)
"""
GRAPH = """
stages:
  resolve:
    cmd: python -m stages.resolve
    deps: [params.yaml]
    outs: [data/resolved]
  editor:
    cmd: python -m stages.editor
    deps: [data/resolved/code/made.txt]
    outs: [edited]
  made:
    cmd: python -m stages.made
    deps: [edited, read, data/resolved/code/made.txt]
    params: [sizes.mine]
    outs: [made]
"""
PARAMS = "sizes:\n  mine: 1\n  other: 1\n"
BETWEEN, WITHIN = "user.txt", "user while it runs.txt"


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Return what runs DVC on three stages, during which a user does something, if it is given."""
    monkeypatch.chdir(tmp_path)
    repro = project_of_stages(tmp_path, GRAPH, resolve=RESOLVE, editor=EDITOR, made=MADE)
    Path("read").mkdir()
    Path("read/a.txt").write_text("a")
    Path("params.yaml").write_text(PARAMS)

    def run(when=None, action=""):
        for name in (BETWEEN, WITHIN):
            Path(name).write_text(action if name == when else "")
        return repro()

    return run


def _params(old, new):
    return f"Path('params.yaml').write_text({PARAMS.replace(old, new)!r})"


def _is_recorded():
    return "  made:\n" in Path("dvc.lock").read_text()


@pytest.mark.parametrize(
    ("action", "named"),
    [
        ("Path('read/a.txt').write_text('b')", "read/a.txt"),
        ("Path('read/new.txt').write_text('b')", "read/new.txt"),
        ("Path('read/a.txt').unlink()", "read/a.txt"),
        (_params("mine: 1", "mine: 2"), "params.yaml: sizes.mine"),
        (_params("sizes", "sizes: ["), "params.yaml"),
    ],
    ids=["file", "new file", "file gone", "parameter", "half of an edit"],
)
def test_what_a_stage_read_and_was_edited_meanwhile_is_not_recorded(project, action, named):
    run = project(WITHIN, action)
    assert run.returncode != 0
    assert f"error: edited while this stage ran: {named}. " in run.stderr
    assert not _is_recorded()
    Path("params.yaml").write_text(PARAMS)
    Path("read/a.txt").write_text("b")
    assert project().returncode == 0
    assert Path("made").read_text() == f"b{PARAMS}"


@pytest.mark.parametrize(
    "action",
    [
        _params("other: 1", "other: 2"),
        "import os; os.utime('params.yaml')",
        "Path('elsewhere.txt').write_text('')",
        "Path('read/__pycache__').mkdir()",
    ],
    ids=["another parameter", "no change", "another file", "cache"],
)
def test_other_edits_are_no_matter(project, action):
    run = project(WITHIN, action)
    assert run.returncode == 0, run.stderr
    assert _is_recorded()


def test_a_stage_does_not_begin_once_what_it_would_read_has_another_meaning(project):
    run = project(BETWEEN, _params("other", "code"))
    assert run.returncode != 0
    assert "edited: 1" in run.stderr
    assert not Path("made").exists()
    assert project().returncode == 0
    assert _is_recorded()


def test_an_edit_that_means_nothing_to_a_stage_lets_it_begin(project):
    assert project(BETWEEN, _params("other: 1", "other: 2")).returncode == 0


def test_an_edit_while_a_stage_reads_its_code_is_one_before_it(project):
    run = project(WITHIN, _params("other", "code"))
    assert run.returncode != 0
    assert "edited: 1" in run.stderr
    assert not _is_recorded()


def test_later_edits_of_code_do_not_end_a_stage_that_has_read_it(project, monkeypatch):
    Path("data/resolved/code").mkdir(parents=True)
    Path("data/resolved/code/made.txt").write_text("")
    monkeypatch.setattr(edits, "READING", 0.0)
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("nothing to ask"))
    watch = Watch(["data/resolved/code/made.txt"], [], ["data/resolved"])
    Path("params.yaml").write_text("code")
    assert not watch.is_edited()


def test_time_of_a_file_that_is_moved_over_another_is_new(tmp_path):
    old, new = tmp_path / "old", tmp_path / "new"
    for path in (old, new):
        path.write_text("same")
        os.utime(path, (1, 1))
    before = times([str(tmp_path)])
    old.replace(new)
    assert times([str(tmp_path)])[str(new)] != before[str(new)]


@pytest.fixture
def study(tmp_path, monkeypatch):
    """Stand in a study whose data/resolved is of now."""
    tiny_study.begin(tmp_path, kadar_en=tiny_study.recipe_of_world("kadar_en"))
    (tmp_path / "dvc.yaml").write_text((tiny_study.ROOT / "dvc.yaml").read_text())
    (tmp_path / ".dvc").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(resolve, "check_before_work", lambda settings: None)
    _resolve()
    return tmp_path


def _resolve(*files):
    asked = [word for file in files for word in ("--compare", f"data/resolved/{file}")]
    CliRunner().invoke(resolve.main, asked, catch_exceptions=False)


def _refused(*files):
    with pytest.raises(ContractError) as refused:
        _resolve(*files)
    return str(refused.value)


def _remembered():
    return json.loads(edits._SOURCES.read_text())


def test_resolve_says_what_has_another_meaning_and_to_whom(study):
    params = Path("params.yaml")
    params.write_text(json.dumps(json.loads(params.read_text()), indent=1))
    assert _remembered() != sources()
    _resolve("recipes/kadar_en.json", "code/train.txt")
    assert _remembered() == sources(), "no text is another one"
    content = json.loads(params.read_text())
    content["recipes"]["kadar_en"]["max_epochs"] = 77
    params.write_text(json.dumps(content))
    said = _refused("recipes/kadar_en.json", "code/train.txt")
    assert 'data/resolved/recipes/kadar_en.json: "max_epochs": 77\n' in said
    assert "code/train.txt" not in said
    assert "Run dvc repro again." in said
    _resolve("code/captions.txt")  # that stage reads no recipe
    assert _remembered() != sources(), "who reads the recipe has yet to ask"
    _resolve()
    _resolve("recipes/kadar_en.json")


def test_resolve_names_the_module_that_does_something_else(study):
    code = Path("data/resolved/code/train.txt")
    digest, _, name = code.read_text().splitlines()[5].partition("  ")
    code.write_text(code.read_text().replace(digest, "0" * len(digest)))
    assert f"data/resolved/code/train.txt: {name}\n" in _refused("code/train.txt")
    code.unlink()
    assert "code/train.txt" in _refused("code/train.txt")


def test_resolve_refuses_what_was_edited_while_it_was_read(study, monkeypatch):
    params = Path("params.yaml")
    monkeypatch.setattr(
        resolve, "check_before_work", lambda settings: params.write_text(params.read_text() + "\n")
    )
    assert "params.yaml: edited while it was read." in _refused()
