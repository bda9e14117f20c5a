"""Stages depend on what their modules do: on each module, and on nothing that does nothing."""

import ast
import shutil

import pytest
from click.testing import CliRunner
from graph import ROOT, STAGES
from shell import python

from pipeline_lib.running.fingerprints import fingerprints, stage_code
from stages.resolve import main as resolve

MODULE = '''"""What it is for."""

from ours.other import LIMIT


def doubled(x, *, limit=LIMIT):
    """Return it doubled."""
    # Never more than the limit.
    return min(2 * x, limit)
'''
SAME = {
    "as it is": (),
    "a comment": ("# Never more than the limit.", "# Other words."),
    "no comment": ("    # Never more than the limit.\n", ""),
    "a docstring": ("Return it doubled.", "Return twice that."),
    "no docstring": ('    """Return it doubled."""\n', ""),
    "a module's docstring": ("What it is for.", "Something else."),
    "layout": ("min(2 * x, limit)", "min(\n        2*x, limit,\n    )"),
}
OTHER = {
    "a number": ("2 * x", "3 * x"),
    "an operation": ("2 * x", "2 + x"),
    "a name": ("min(", "max("),
    "a default": ("limit=LIMIT", "limit=None"),
    "a default that is gone": ("limit=LIMIT", "limit"),
    "a statement": ("    return", "    x += 1\n    return"),
    "a type of number": ("2 * x", "2.0 * x"),
    "a text that is a value": ("min(2 * x, limit)", "'2 * x'"),
    "an order": ("min(2 * x, limit)", "min(limit, 2 * x)"),
}


@pytest.fixture
def fingerprint(tmp_path):
    (tmp_path / "ours" / "settings").mkdir(parents=True)
    (tmp_path / "ours" / "other.py").write_text("LIMIT = 9\n", encoding="utf-8")

    def of(name, module):
        path = tmp_path / "ours" / f"{name.replace(' ', '_')}.py"
        path.write_text(module, encoding="utf-8")
        lines = fingerprints([path], tmp_path).splitlines()
        return {name: digest for digest, name in (line.split("  ") for line in lines)}

    return of


def test_texts_of_no_letter_that_python_3_12_finds_in_a_format_do_nothing(fingerprint, monkeypatch):
    module = 'def shown(x, form):\n    return f"{x:{form}}"\n'
    plain = fingerprint("plain", module)
    parse = ast.parse

    def as_later(text, path):
        tree = parse(text, path)
        for node in ast.walk(tree):
            if isinstance(node, ast.FormattedValue) and node.format_spec:
                node.format_spec.values.append(ast.Constant(""))
        return tree

    monkeypatch.setattr(ast, "parse", as_later)
    later = fingerprint("later", module)
    assert [*plain.values()] == [*later.values()]


@pytest.mark.parametrize("change", [*SAME, *OTHER])
def test_a_digest_changes_with_what_a_module_does(change, fingerprint):
    before = fingerprint("before", MODULE)
    edit = {**SAME, **OTHER}[change]
    assert not edit or edit[0] in MODULE
    after = fingerprint("after", MODULE.replace(*edit) if edit else MODULE)
    assert before["ours/other.py"] == after["ours/other.py"]
    assert (before["ours/before.py"] == after["ours/after.py"]) == (change in SAME)


FORM = """
class Form(Strict):
    learns: ClassVar[bool] = True
    loss: Literal["hinge"]

    def problems(self):
        return self.loss
"""
FIELD = (
    '    loss: Literal["hinge"]\n',
    '    loss: Literal["hinge", "cosine"]\n    sharpness: float\n',
)
EDITS = {
    "a field": (FIELD, True),
    "a field with a value": ((FIELD[0], f"{FIELD[0]}    sharpness: float = 2.0\n"), False),
    "a constant": (("= True", "= False"), False),
    "a check": (("return self.loss", "return not self.loss"), False),
}


@pytest.mark.parametrize("edit", EDITS)
@pytest.mark.parametrize("room", ["settings/", ""])
def test_a_field_of_settings_does_nothing_until_it_has_a_value(edit, room, fingerprint):
    change, does_nothing = EDITS[edit]
    before = fingerprint(f"{room}before", FORM)[f"ours/{room}before.py"]
    after = fingerprint(f"{room}after", FORM.replace(*change))[f"ours/{room}after.py"]
    # Elsewhere fields may be told apart by their order.
    assert (before == after) == (does_nothing and room != "")


def test_imports_are_followed_wherever_they_stand(fingerprint):
    fingerprint("inner", "import ours.other\n")
    found = fingerprint("outer", "def late():\n    from ours import inner\n    return inner\n")
    assert [*found] == ["ours/inner.py", "ours/other.py", "ours/outer.py"]


def test_a_relative_import_is_refused(fingerprint):
    with pytest.raises(ValueError, match=r"relative\.py:2: expected an absolute import"):
        fingerprint("relative", "x = 1\nfrom .other import LIMIT\n")


def test_modules_that_import_each_other_end(fingerprint):
    fingerprint("one", "import ours.two\n")
    assert len(fingerprint("two", "import ours.one\n")) == 2


def resolved(study):
    """Run the stage in a study's folder; return what it wrote."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(study)
        CliRunner().invoke(resolve, catch_exceptions=False)
    return study / "data/resolved"


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    for name in ("dvc.yaml", "params.yaml", "papers.yaml"):
        shutil.copy(ROOT / name, folder)
    resolved(folder)
    return folder


@pytest.fixture(scope="module")
def modules(study):
    """Return the modules that each stage is fingerprinted with."""
    return {
        path.stem: {line.split("  ")[1] for line in path.read_text(encoding="utf-8").splitlines()}
        for path in (study / "data/resolved/code").iterdir()
    }


def test_a_model_depends_on_how_new_captions_and_photos_are_read(study, tmp_path):
    """Though neither its training captions nor its features change: it keeps these settings."""
    assert "data/resolved/preprocessing/${key}.json" in STAGES["train"]["do"]["deps"]
    shutil.copytree(study, tmp_path, dirs_exist_ok=True)
    params = tmp_path / "params.yaml"
    text = params.read_text(encoding="utf-8")
    english = "en: {tokenizer: moses, lowercase: true"
    assert text.count(english) == 1
    params.write_text(text.replace(english, english.replace("true", "false")), encoding="utf-8")
    changed = resolved(tmp_path)
    for recipe, reads_english in (("kadar_en", True), ("kadar_de_translated", False)):
        before, after = (
            (folder / f"preprocessing/{recipe}.json").read_text(encoding="utf-8")
            for folder in (study / "data/resolved", changed)
        )
        assert (before != after) == reads_english


def test_every_stage_but_this_one_is_fingerprinted(modules):
    assert modules.keys() == STAGES.keys() - {"resolve"}


@pytest.mark.parametrize("name", ["train", "evaluate", "rerank", "world"])
def test_a_stage_is_fingerprinted_with_all_that_python_imports_for_it(name, modules):
    program = (
        f"import sys, stages.{name}\n"
        "print(*(m.__file__ for n, m in sys.modules.items() if n.startswith('pipeline_lib.')))"
    )
    imported = {
        path.removeprefix(f"{ROOT}/")
        for path in python(program).stdout.split()
        if not path.endswith("__init__.py")
    }
    # study.py imports the form of every section of params.yaml, and loading.py the checks of its
    # names, of whatever stage they are.
    forms = {str(path.relative_to(ROOT)) for path in ROOT.glob("pipeline_lib/settings/**/*.py")}
    assert "pipeline_lib/running/publishing.py" in imported
    # How a stage is started changes nothing that it does.
    around = {
        f"pipeline_lib/running/{name}.py"
        for name in ("warm", "ahead", "edits", "notes", "progress")
    }
    assert imported - forms - around <= modules[name]


@pytest.mark.parametrize(
    ("name", "has", "lacks"),
    [
        ("world", {"corpora"}, {"images", "synthesis", "rerankings"}),
        ("features", {"images"}, {"corpora", "synthesis", "rerankings"}),
        ("train", {"images", "recipes", "text"}, {"synthesis", "rerankings", "pseudopairs"}),
        ("rerank", {"rerankings", "evaluations"}, {"synthesis", "pseudopairs"}),
    ],
)
def test_a_stage_is_fingerprinted_with_the_settings_that_it_has(name, has, lacks, modules):
    found = {
        path.split("/")[-1].removesuffix(".py") for path in modules[name] if "settings/" in path
    }
    assert has <= found
    assert not lacks & found
    assert "study" not in found


def test_packages_hold_only_their_docstrings():
    # Their code would run with every import and be in no fingerprint.
    packages = [*ROOT.glob("pipeline_lib/**/__init__.py"), ROOT / "stages/__init__.py"]
    assert len(packages) > 5
    for path in packages:
        source = path.read_text(encoding="utf-8").strip()
        assert not source or (source.startswith('"""') and source.count('"""') == 2), path


def test_a_check_that_changes_makes_no_table_anew():
    """It can only refuse: the stage that calls it has the code of its table alone."""
    assert "pipeline_lib/corpora/table.py" in stage_code("captions")
    assert "pipeline_lib/checks/" not in stage_code("captions")
