"""The campaign of kills counts what its logs show, so that it can fail."""

import json
import shutil

import pytest
from graph import ROOT, read_yaml

from benchmarks.evidence import Evidence, bars_in, stages_in
from benchmarks.faults import RECOVERY, Tally, intervals, small_world, table
from pipeline_lib.settings.loading import load_settings

BAR = "{}:  50%|#####     | {}/40 [00:01<00:01, 9.9update/s, best 3.0]"


def log(*stages, bars=()):
    """Return what DVC prints: stages that run, the last of them with a bar at each count."""
    printed = "".join(f"Running stage '{stage}':\n> python -m stages\n" for stage in stages)
    return printed + "".join("\r" + BAR.format("kadar seed 1 on cpu, 3 done", n) for n in bars)


def evidence(*logs, recorded=()):
    found = Evidence({"train@a": 10})
    for each in logs:
        found.add(each, set(recorded))
    return found


def test_stages_and_bars_are_read_as_dvc_and_tqdm_write_them():
    text = "Stage 'world' didn't change, skipping\n" + log("code", "train@a", bars=[0, 7])
    assert [found[:2] for found in stages_in(text)] == [
        ("world", False), ("code", True), ("train@a", True)
    ]  # fmt: skip
    assert bars_in(text) == {"kadar seed 1 on cpu": (0, 7)}
    assert list(stages_in("")) == []


@pytest.mark.parametrize(
    ("first", "recorded", "again"),
    [
        (log("train@a", "report"), (), ["train@a"]),
        (log("train@a"), (), []),
        (log("train@a"), ("train@a",), ["train@a"]),
        ("Stage 'train@a' didn't change, skipping\n" + log("report"), (), ["train@a"]),
    ],
)
def test_a_stage_that_runs_again_counts_if_dvc_had_recorded_it(first, recorded, again):
    assert evidence(first, log("train@a"), recorded=recorded).ran_again == again


@pytest.mark.parametrize(
    ("reached", "resumed", "lost", "beyond"), [(19, 10, 9, 0), (20, 20, 0, 0), (21, 10, 11, 1)]
)
def test_steps_lost_are_those_between_two_bars(reached, resumed, lost, beyond):
    found = evidence(log("train@a", bars=[0, reached]), log("train@a", bars=[resumed, 30]))
    assert (found.lost, found.lost_beyond) == ([lost], beyond)


def test_one_broken_promise_fails_the_campaign():
    assert table(Tally())[1]
    again = Tally(evidence=[evidence(log("train@a", "report"), log("train@a"))])
    lost = Tally(evidence=[evidence(log("train@a", bars=[0, 40]), log("train@a", bars=[0]))])
    for tally in (again, lost, Tally(different=1)):
        assert not table(tally)[1]
    assert "train@a" in table(again)[0]


def test_the_small_study_is_one(tmp_path):
    params = small_world(read_yaml(ROOT / "params.yaml"))
    (tmp_path / "params.yaml").write_text(json.dumps(params))  # JSON is YAML
    shutil.copy(ROOT / "papers.yaml", tmp_path)
    settings = load_settings(tmp_path / "params.yaml")
    for name in settings.recipes:
        assert settings.recipe(name).validate_every_updates == intervals(params)[f"train@{name}"]


def test_the_campaign_recovers_as_the_docs_say():
    assert f"\n{RECOVERY}\n" in (ROOT / "docs/start.md").read_text(encoding="utf-8")
