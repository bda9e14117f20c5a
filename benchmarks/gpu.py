"""The tests marked gpu, and how fast a CUDA device works: ``python -m benchmarks.gpu``.

One command for a GPU that is lent for minutes. It ends within 9 minutes whatever the GPU: each
measurement has its own time, and what could not be measured is listed with the reason. The file
that ``--out`` names is written anew after each, so that a kill loses none. Measured are

- products of large matrices in bf16 and f32 (no TF32): the peak, of which each figure of the same
  precision is given as a share, in floating-point operations;
- ten-crop ResNet-50 and -152, from pixels in the host's memory to features there; decoding and
  cutting photos apart, on all cores;
- training of each family at its paper's sizes, on captions of Flickr8k's lengths
  (benchmarks.training): alternating (VSE, Kádár), joint (MLMME), two_branch (MULE) and mixed (AME,
  with both similarities), in bf16 and f32;
- retrieval of 5,000 images x 25,000 captions: exact ranks, which are computed on the host, and the
  ten best of both sides on the device;
- pseudopairs, 566,000 captions that each search 145,000.

A rate is the median of five rounds, after a fifth of the time to warm up. Weights, pixels,
captions and vectors are drawn; nothing is downloaded.

It needs this repository without DVC, data or an installation (benchmarks, pipeline_lib, tests,
params.yaml, pyproject.toml), and beside torch

- joblib, numpy, pydantic, tqdm for products, retrieval and pseudopairs;
- torchvision, safetensors, pillow, too, for the CNNs and decoding;
- click, h5py, pandas, ruamel.yaml, safetensors, too, for training;
- all of these, pytest and sentencepiece for the tests; those of parts that lack a package are
  skipped.

What is missing is said first, with the pip command; the rest is measured. The command exits with
2 where there is no CUDA device, and with 1 if a test failed or a measurement could not be made.
``--device cpu --small`` rehearses all of it anywhere.
"""

import argparse
import importlib.util
import os
import platform
import re
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.gpu_report import Report, say
from benchmarks.gpu_rows import FULL, SMALL, Measurement, Sizes

if TYPE_CHECKING:  # what is missing, maybe torch, is said before it is imported
    import torch

ROOT = Path(__file__).resolve().parent.parent
SECONDS = 540
"""Of all."""

TEST_SECONDS = 150
LEAST_SECONDS = 2
"""A measurement with less is not begun."""

LAST_SECONDS = 10
"""Are left for what a measurement takes to begin and to end."""

MARK = re.compile(r"^\s*@?pytest\.mark\.gpu\b", re.MULTILINE)

PIP = {"PIL": "pillow"}
"""Packages whose name differs from that of the module."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all of it and return the exit status."""
    began, options = time.monotonic(), parsed(arguments)
    if absent := missing(["torch", "numpy"]):
        say(f"nothing can be measured without {', '.join(absent)}: {pip(absent)}")
        return 2
    import torch

    if options.device == "cuda" and not torch.cuda.is_available():
        say("expected a CUDA device, found none. To rehearse on the CPU: --device cpu --small")
        return 2
    device = torch.device(options.device)
    report = Report(options.out, about(device), began)
    report.save()  # where that is impossible, now and not at the end
    timer = stop_in(SECONDS - report.seconds, report)
    try:
        measure_all(report, device, SMALL if options.small else FULL)
    finally:
        timer.cancel()
    report.complete = True
    return report.finish()


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.gpu",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--out", type=Path, help="JSON file to write")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--small", action="store_true", help="tiny sizes: a rehearsal")
    options = parser.parse_args(arguments)
    if options.device == "cpu" and not options.small:
        parser.error("--device cpu is a rehearsal: add --small")
    return options


def measure_all(report: Report, device: "torch.device", sizes: Sizes) -> None:
    """Run the tests, then measure one thing after another while there is time."""
    from benchmarks.gpu_speeds import TEST_PACKAGES, measurements

    use_exact_float32()
    planned = measurements(sizes, precisions(device))
    needed = {name for each in planned for name in each.packages}
    say_missing(sorted(needed.union(TEST_PACKAGES)))
    if device.type == "cuda" and "bf16" not in precisions(device):
        report.leave_out("all in bf16", "the device has no instructions for it")
    report.tests = run_tests(TEST_SECONDS)
    report.save()
    for each in planned:
        absent, left = missing(each.packages), SECONDS - LAST_SECONDS - report.seconds
        if absent:
            report.leave_out(each.name, f"without {', '.join(absent)}")
        elif left < LEAST_SECONDS:
            report.leave_out(each.name, f"{SECONDS} s are over")
        else:
            measure(report, each, device, sizes, min(left, each.seconds * sizes.time))


def measure(
    report: Report, each: Measurement, device: "torch.device", sizes: Sizes, seconds: float
) -> None:
    """Measure one thing; whatever goes wrong with it is the reason why it has no figure."""
    import torch

    torch.manual_seed(0)
    if device.type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)
    try:
        row = each.run(device, sizes, seconds)
    except Exception as error:
        traceback.print_exc()
        first = str(error).partition("\n")[0]
        report.leave_out(each.name, f"{type(error).__name__}: {first}")
        return
    allocated = torch.cuda.max_memory_allocated(device) if device.type == "cuda" else 0
    report.add(row, round(allocated / 1e6, 1))


def run_tests(seconds: float) -> dict[str, object]:
    """Run the tests marked gpu in a process of their own, and return how they ended."""
    # Without the options of pyproject.toml: they ask for plugins.
    options = ["-o", "addopts=", "-p", "no:cacheprovider", "--continue-on-collection-errors"]
    command = ["-m", "pytest", *options, "-m", "gpu", "-q", *test_files()]
    if absent := missing(["pytest"]):
        return {"exit": None, "summary": f"not run, without {', '.join(absent)}"}
    begin = time.monotonic()
    try:
        done = subprocess.run(
            [sys.executable, *command], cwd=ROOT, text=True, timeout=seconds,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
    except subprocess.TimeoutExpired as stopped:
        output, status = (stopped.stdout or b"").decode("utf-8", "replace"), None
        summary = f"stopped after {seconds:.0f} s"
    else:
        output, status = done.stdout, done.returncode
        summary = output.strip().rpartition("\n")[2]
    say(output)
    return {
        "command": " ".join(["python", *command]), "exit": status, "summary": summary,
        "seconds": round(time.monotonic() - begin, 1), "output": output if status != 0 else "",
    }  # fmt: skip


def test_files() -> list[str]:
    """Return the files that hold tests marked gpu: the others' packages may be missing."""
    files = (ROOT / "tests").rglob("test_*.py")
    return sorted(str(p.relative_to(ROOT)) for p in files if MARK.search(p.read_text("utf-8")))


def stop_in(seconds: float, report: Report) -> threading.Timer:
    """Let a timer end the process with what it has, even in the middle of a kernel."""

    def stop() -> None:
        try:
            report.leave_out("the rest", f"stopped: {SECONDS} s are over")
            report.finish()
        finally:
            os._exit(1)

    timer = threading.Timer(seconds, stop)
    timer.daemon = True
    timer.start()
    return timer


def about(device: "torch.device") -> dict[str, object]:
    """Return what the figures depend on."""
    import torch

    from pipeline_lib.compute.forks import cores

    found: dict[str, object] = {
        "device": "cpu", "cores": cores(), "torch": torch.__version__,
        "python": platform.python_version(),
    }  # fmt: skip
    if device.type == "cuda":
        properties = torch.cuda.get_device_properties(device)
        found |= {
            "device": properties.name, "memory_gb": round(properties.total_memory / 1e9, 1),
            "capability": f"{properties.major}.{properties.minor}", "cuda": torch.version.cuda,
            "cudnn": torch.backends.cudnn.version(),
        }  # fmt: skip
    return found


def precisions(device: "torch.device") -> list[str]:
    """Return what the device multiplies in hardware; a rehearsal takes float32 alone."""
    import torch

    native = device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)
    return ["bf16", "f32"] if native else ["f32"]


def use_exact_float32() -> None:
    """Round no factor of a float32 product to 10 bits (TF32), as f32 is the reference."""
    import torch

    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False


def say_missing(packages: Iterable[str]) -> None:
    """Name the packages that are not installed, and how to install them."""
    if absent := missing(packages):
        say(f"missing: {', '.join(absent)}. {pip(absent)}")


def missing(packages: Iterable[str]) -> list[str]:
    """Return the packages that cannot be imported, by the name of the module."""
    return [name for name in packages if not _installed(name)]


def pip(packages: Iterable[str]) -> str:
    """Return the command that installs packages."""
    return "python -m pip install " + " ".join(PIP.get(name, name) for name in packages)


def _installed(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ImportError:  # of the package that it is in
        return False


if __name__ == "__main__":
    sys.exit(main())
