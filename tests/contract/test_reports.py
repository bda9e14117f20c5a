"""Reports that are damaged are named, with what to do."""

import json

import numpy as np
import pytest

from pipeline_lib.contract.facts import read_facts
from pipeline_lib.contract.problems import ContractError
from pipeline_lib.contract.published import read_published
from pipeline_lib.contract.reports import read_report, read_rows, write_report
from pipeline_lib.evaluation.retrieval.hits import read_hits
from pipeline_lib.synthesis.engines import _images_seen

READERS = {
    "a report": read_report,
    "rows": read_rows,
    "hits": read_hits,
    "published figures": read_published,
    "images seen": _images_seen,
}


@pytest.mark.parametrize("content", [b"", b"\xff\xfe{", b'"a\n"b"c,"', b"a,b\n1,2,3\n1,2,3,4\n"])
@pytest.mark.parametrize("kind", READERS)
def test_what_is_damaged_is_named(tmp_path, kind, content):
    path = tmp_path / "x"
    path.write_bytes(content)
    with pytest.raises(ContractError, match=str(path)):
        READERS[kind](path)


def test_a_report_of_another_form_is_refused(tmp_path):
    (tmp_path / "x").write_text("[1]")
    with pytest.raises(ContractError, match="expected a report in JSON"):
        read_report(tmp_path / "x")


def test_a_report_is_read_as_it_was_written(tmp_path):
    write_report({"a": {"b": 1 / 3}}, tmp_path / "x")
    assert read_report(tmp_path / "x") == {"a": {"b": 0.3333}}


def test_min_nan_is_a_language_and_an_empty_field_is_missing(tmp_path):
    (tmp_path / "x").write_text("language,score\nnan,\nen,1.5\n")
    rows = read_rows(tmp_path / "x")
    assert rows["language"].tolist() == ["nan", "en"]
    assert rows["score"].isna().tolist() == [True, False]


@pytest.mark.parametrize(
    "line", [b"\xff", b"[1]", b'{"image": 1}', json.dumps({"image": "a", "facts": 1}).encode()]
)
def test_facts_that_are_damaged_are_named(tmp_path, line):
    (tmp_path / "x").write_bytes(line + b"\n")
    with pytest.raises(ContractError, match=str(tmp_path / "x")):
        read_facts(tmp_path / "x", "d")


@pytest.mark.parametrize(
    ("p", "written"), [(0.031264, 0.03126), (0.000149, 0.000149), (1 / 100_001, 1e-05), (1.0, 1.0)]
)
def test_no_p_is_rounded_to_0_which_a_correction_would_keep(tmp_path, p, written):
    write_report({"gain": {"p": p, "difference": 1e-7}, "none": {"p": None}}, tmp_path / "x.json")
    found = {"gain": {"p": written, "difference": 0.0}, "none": {"p": None}}
    assert read_report(tmp_path / "x.json") == found


def test_numbers_of_numpy_are_numbers(tmp_path):
    counted = {"n": np.int64(3), "p": np.float64(1 / 3), "some": [np.float32(0.5), np.bool_(True)]}
    write_report(counted, tmp_path / "x")
    assert read_report(tmp_path / "x") == {"n": 3, "p": 0.3333, "some": [0.5, True]}
