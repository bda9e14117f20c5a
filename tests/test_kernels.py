"""Ranks and neighbours are the same bytes with the kernels of any CPU and on any threads."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from graph import ROOT
from near_ties import FOUND, near_ties

BLAS = {
    "Prescott": "sse3",
    "Nehalem": "sse4_2",
    "Sandybridge": "avx",
    "Haswell": "avx2",
    "Zen": "avx2",
    "SkylakeX": "avx512_f",
}
"""OpenBLAS' name of its kernels, and what a CPU must have to run them."""

AVX512 = "X86_V4 AVX512_ICL AVX512_SPR"
NUMPY = {"avx512_f": "", "avx2": AVX512}
"""What numpy is told to leave unused in its own kernels beside those; in others AVX2, too."""

TORCH = {
    "sse4": {
        "MKL_CBWR": "COMPATIBLE",
        "ATEN_CPU_CAPABILITY": "default",
        "ONEDNN_MAX_CPU_ISA": "SSE41",
        "OMP_NUM_THREADS": "2",
    },
    "avx2": {
        "MKL_ENABLE_INSTRUCTIONS": "AVX2",
        "ATEN_CPU_CAPABILITY": "avx2",
        "ONEDNN_MAX_CPU_ISA": "AVX2",
        "OMP_NUM_THREADS": "1",
    },
}
"""What MKL, torch and oneDNN are told to use, whatever else the CPU has."""


@pytest.fixture(scope="module")
def inputs():
    index = np.random.default_rng(3).permutation(np.arange(450) % 150)
    return {"images": near_ties(150, 300, 1), "captions": near_ties(450, 300, 2), "index": index}


@pytest.fixture(scope="module")
def here(inputs):
    return {what: find(**inputs) for what, find in FOUND.items()}


def found_by(what, inputs, folder, environment):
    """Start a process that looks among the same vectors with other kernels."""
    np.savez(folder / "in.npz", **inputs)
    script = Path(__file__).parent / "near_ties.py"
    command = [sys.executable, script, what, folder / "in.npz", folder / "out.npz"]
    subprocess.run(command, env=os.environ | environment, check=True)
    return dict(np.load(folder / "out.npz"))


def assert_same_bytes(found, expected):
    assert found.keys() == expected.keys()
    differing = [name for name in found if found[name].tobytes() != expected[name].tobytes()]
    assert not differing


@pytest.mark.parametrize("kernels", BLAS)
def test_ranks_are_those_of_every_blas_kernel(kernels, inputs, here, tmp_path):
    if not torch.cpu.get_capabilities()[BLAS[kernels]]:
        pytest.skip(f"this CPU cannot run OpenBLAS' kernels for {kernels}: no {BLAS[kernels]}")
    unused = NUMPY.get(BLAS[kernels], f"X86_V3 {AVX512}")
    environment = {"OPENBLAS_CORETYPE": kernels, "NPY_DISABLE_CPU_FEATURES": unused}
    found = found_by("arrays", inputs, tmp_path, environment)
    assert_same_bytes(found, here["arrays"])


def test_ranks_are_those_of_another_number_of_threads(inputs, here, tmp_path):
    threads = 2 if os.environ.get("OPENBLAS_NUM_THREADS") == "1" else 1
    found = found_by("arrays", inputs, tmp_path, {"OPENBLAS_NUM_THREADS": str(threads)})
    assert_same_bytes(found, here["arrays"])


@pytest.mark.parametrize("kernels", TORCH)
def test_pseudopairs_are_those_of_every_kernel(kernels, inputs, here, tmp_path):
    if kernels == "avx2" and not torch.cpu.get_capabilities()["avx2"]:
        pytest.skip("this CPU cannot run kernels for AVX2")
    assert_same_bytes(found_by("tensors", inputs, tmp_path, TORCH[kernels]), here["tensors"])


def test_float64_vectors_are_ranked_as_float32_ones(inputs, here):
    wide = inputs | {side: inputs[side].astype(np.float64) for side in ("images", "captions")}
    for what, find in FOUND.items():
        found, expected = find(**wide), here[what]
        kept = [name for name in found if "order" not in name and name != "unit"]
        assert_same_bytes({name: found[name] for name in kept}, {n: expected[n] for n in kept})


RATES = """
import tiny
from pipeline_lib.compute.arithmetic.functions import power
from pipeline_lib.training.optimization import SCHEDULES
from pipeline_lib.training.translation import warmup_factor

for epochs, updates in ((21, 5), (22, 5), (38, 5), (41, 5)):
    recipe = tiny.polyview(max_epochs=epochs, warmup_epochs=1.0)
    for update in range(epochs * updates):
        print(SCHEDULES["cosine"](recipe, update / updates, 0).hex())
for update in range(0, 20_000, 7):
    print(warmup_factor(update, 100).hex(), power(0.999, update).hex(), power(0.9, update).hex())
"""


def test_rates_of_learning_are_the_same_bits_with_any_c_library():
    """The C library chooses its cosines and powers by the CPU; (21, 5) is where they differ."""
    withheld = {"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX512F,-AVX2,-FMA"}
    path = {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), str(ROOT)])}
    here, there = (
        subprocess.run(
            [sys.executable, "-c", RATES], env=os.environ | path | more, check=True,
            capture_output=True, text=True,
        ).stdout.split()
        for more in ({}, withheld)
    )  # fmt: skip
    assert len(here) > 9_000
    assert here == there
