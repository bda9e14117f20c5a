"""One stage, without the study around it."""

from types import SimpleNamespace

from click.testing import CliRunner


def run_stage(stage, name, monkeypatch, **sections):
    """Run a stage's command, with settings that have these sections and no others."""
    monkeypatch.setattr(stage, "load_settings", lambda: SimpleNamespace(**sections))
    result = CliRunner().invoke(stage.main, [name], catch_exceptions=False)
    assert result.exit_code == 0, result.output
