"""``--help`` of each command: an example that the command takes, on a line of its own."""

import shlex

import click
import pytest
from click.testing import CliRunner
from graph import ROOT
from shell import run

from pipeline_lib.cli.main import main


@pytest.mark.parametrize("name", sorted(main.commands))
def test_the_example_is_a_line_that_can_be_copied_and_that_the_command_takes(
    name, tmp_path, monkeypatch
):
    result = CliRunner().invoke(main, [name, "--help"])
    assert (result.exit_code, "\\b" in result.output) == (0, False)
    lines = [line.strip() for line in result.output.splitlines()]
    words = shlex.split(lines[lines.index("Example:") + 1])
    assert words[:2] == ["polyview", name]
    assert "Exit codes: 0 " in result.output
    monkeypatch.chdir(tmp_path)
    for folder in ("data/models/mule/seed-1", "photos"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "captions.tsv").touch()
    command = main.commands[name]
    with command.make_context(name, words[2:]) as context:
        needed = [each for each in command.params if each.required]
        assert all(context.params[each.name] for each in needed)
    with pytest.raises(click.UsageError):
        command.make_context(name, [*words[2:], "--no-such-option"])


def test_help_and_completion_load_no_library_of_seconds():
    loaded = "import sys, pipeline_lib.cli.main; print({'torch', 'gensim'} & set(sys.modules))"
    assert run(f'python -c "{loaded}"', ROOT).strip() == "set()"


def test_a_check_of_a_study_loads_no_torch():
    """It takes seconds, and a user waits for a list of typos."""
    code = "import sys; from pipeline_lib.cli.main import main; main(['check'], None, None, False)"
    said = run(f"python -c \"{code}; print({{'torch'}} & set(sys.modules))\"", ROOT)
    assert said.splitlines() == ["nothing was found that would stop this study", "set()"]
