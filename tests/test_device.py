"""bf16 is bf16 where the hardware multiplies it, and f32 elsewhere."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from pipeline_lib.device import best_device, cores_for, one_core_each, precision_on

ROOT = Path(__file__).resolve().parent.parent
ASK = (
    "import torch; from pipeline_lib.device import precision_on;"
    "print(precision_on('bf16', torch.device('cpu')))"
)


def asked(**environment):
    run = subprocess.run(
        [sys.executable, "-c", ASK],
        cwd=ROOT, env={**os.environ, **environment}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return run.stdout.strip()


@pytest.mark.parametrize(
    "withheld", [{"ATEN_CPU_CAPABILITY": "avx2"}, {"ONEDNN_MAX_CPU_ISA": "AVX2"}], ids=str
)
def test_bf16_is_f32_where_its_instructions_are_absent(withheld):
    assert asked(**withheld) == "f32"


def test_bf16_is_bf16_where_the_cpu_has_it():
    flags = Path("/proc/cpuinfo").read_text().split()
    environment = {"ATEN_CPU_CAPABILITY": "", "ONEDNN_MAX_CPU_ISA": "DEFAULT"}
    expected = "bf16" if {"avx512_bf16", "amx_bf16"} & set(flags) else "f32"
    environment = {k: v for k, v in environment.items() if v}
    kept = {k: v for k, v in os.environ.items() if k != "ATEN_CPU_CAPABILITY"}
    run = subprocess.run(
        [sys.executable, "-c", ASK],
        cwd=ROOT, env={**kept, **environment}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert run.stdout.strip() == expected


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
