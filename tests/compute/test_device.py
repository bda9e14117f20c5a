"""bf16 is bf16 where the hardware multiplies it, and f32 elsewhere."""

from pathlib import Path

import pytest
import torch
from shell import python

from pipeline_lib.compute.device import best_device, cores_for, one_core_each, precision_on

ASK = (
    "import torch; from pipeline_lib.compute.device import precision_on;"
    "print(precision_on('bf16', torch.device('cpu')))"
)


@pytest.mark.parametrize(
    "withheld", [{"ATEN_CPU_CAPABILITY": "avx2"}, {"ONEDNN_MAX_CPU_ISA": "AVX2"}], ids=str
)
def test_bf16_is_f32_where_its_instructions_are_absent(withheld):
    assert python(ASK, **withheld).stdout.strip() == "f32"


def test_bf16_is_bf16_where_the_cpu_has_it(monkeypatch):
    flags = Path("/proc/cpuinfo").read_text().split()
    expected = "bf16" if {"avx512_bf16", "amx_bf16"} & set(flags) else "f32"
    monkeypatch.delenv("ATEN_CPU_CAPABILITY", raising=False)
    assert python(ASK, ONEDNN_MAX_CPU_ISA="DEFAULT").stdout.strip() == expected


def test_other_precisions_are_what_was_asked():
    assert [precision_on(each, torch.device("cpu")) for each in ("f32", "f64")] == ["f32", "f64"]


def test_the_reference_runs_on_the_cpu(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert best_device("f64").type == "cpu"
    assert best_device("bf16").type == "cuda"


def test_small_operations_have_one_core_and_large_ones_all():
    before = torch.get_num_threads()
    with cores_for(10):
        assert torch.get_num_threads() == 1
    with one_core_each(), cores_for(2**30):
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == before


def test_a_container_gets_as_many_threads_as_its_share_of_the_cores():
    """joblib reads the share from the container's cgroup; here its own variable stands for it."""
    code = (
        "import torch; torch.set_num_threads(4); import pipeline_lib.compute.device;"
        "from pipeline_lib.compute.forks import cores; print(cores(), torch.get_num_threads())"
    )
    assert python(code, LOKY_MAX_CPU_COUNT="1").stdout.split() == ["1", "1"]
    found, threads = map(int, python(code).stdout.split())
    assert threads == min(4, found)
