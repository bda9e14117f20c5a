"""What .ci/run says of a dvc.lock that was not committed with what it produced."""

import copy

import pytest
from graph import ROOT, read_yaml
from stale_lock import stale

LOCK = read_yaml(ROOT / "dvc.lock")["stages"]
STAGE = "train@kadar_en"


def changed(change):
    written = copy.deepcopy(LOCK)
    change(written)
    return stale(LOCK, written)


def of(written, kind, path):
    return next(each for each in written[STAGE][kind] if each["path"].startswith(path))


STALE = {
    "other code": lambda w: of(w, "deps", "data/resolved/code/").update(md5="0"),
    "other settings": lambda w: of(w, "deps", "data/resolved/recipes/").update(md5="0"),
    "another command": lambda w: w[STAGE].update(cmd="true"),
    "a stage that is gone": lambda w: w.pop(STAGE),
}


@pytest.mark.parametrize("case", STALE)
def test_a_stage_of_other_code_or_settings_is_stale(case):
    assert changed(STALE[case]) == [STAGE]


def test_parameters_that_changed_make_a_stage_stale():
    name = "pairs@world_six"
    assert changed(lambda w: w[name].update(params={"params.yaml": {}})) == [name]


def test_other_bytes_of_data_do_not():
    assert changed(lambda w: of(w, "deps", "data/pairs/").update(md5="0")) == []
    assert changed(lambda w: of(w, "outs", "data/models/").update(md5="0")) == []
