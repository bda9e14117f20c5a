"""benchmarks.gpu, rehearsed on the CPU with tiny sizes."""

import json
import re
import subprocess
import sys
import threading
import time
import tomllib
from importlib.metadata import packages_distributions
from types import SimpleNamespace

import pytest
import tiny
import torch
from graph import ROOT
from shell import python
from torch.utils.flop_counter import FlopCounterMode

from benchmarks import gpu, gpu_speeds
from benchmarks.flops import of_update
from benchmarks.gpu_report import Report, share, table
from benchmarks.gpu_rows import PRODUCT, SMALL, Measurement, Row
from benchmarks.gpu_search import pseudopairs
from benchmarks.gpu_speeds import CNN, COMMON, TEST_PACKAGES, TRAINING, measurements
from benchmarks.rates import ROUNDS, rates
from benchmarks.training import Training
from pipeline_lib.text.vocabulary import Vocabulary
from pipeline_lib.training.preparation import new_learner

CPU = torch.device("cpu")
PLANNED = measurements(SMALL, ["f32"])
LOW = measurements(SMALL, ["bf16"])


@pytest.mark.parametrize("measurement", PLANNED, ids=lambda each: each.name)
def test_each_measurement_gives_a_rate(measurement):
    row = measurement.run(CPU, SMALL, 0.05)
    assert all(0 < rate < float("inf") for rate in row.rates)
    assert row.on in ("cpu", "host")
    assert (row.flops > 0) == (row.what != "decoding, ten crops")
    assert (row.seconds is not None) == (measurement in PLANNED[-3:])


def measured_low(name):
    (measurement,) = (each for each in LOW if each.name == name)
    assert measurement.run(CPU, SMALL, 0.05).precision == "bf16"


def test_products_of_low_precision_are_measured_as_such(monkeypatch):
    multiply, seen = torch.mm, set()
    monkeypatch.setattr(torch, "mm", lambda a, b: seen.add((a.dtype, b.dtype)) or multiply(a, b))
    measured_low(f"{PRODUCT}, bf16")
    assert seen == {(torch.bfloat16, torch.bfloat16)}


def test_training_of_low_precision_is_measured_as_such(monkeypatch):
    synthetic, made = Training.synthetic, []
    monkeypatch.setattr(
        Training, "synthetic", lambda *given: made.append(synthetic(*given)) or made[-1]
    )
    measured_low("training MULE, bf16")
    assert [each.model.architecture.precision for each in made] == ["bf16"]


def test_all_tests_marked_gpu_are_run():
    command = ["git", "grep", "-lE", r"^ *@?pytest\.mark\.gpu", "--", "tests"]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert gpu.test_files() == sorted(found.stdout.split())
    assert len(gpu.test_files()) > 1


def test_bf16_and_f32_are_the_same_measurements():
    names = [re.sub("bf16|f32", "", each.name) for each in measurements(SMALL, ["bf16", "f32"])]
    assert {*names} == {each.name.replace("f32", "") for each in PLANNED}
    assert len(names) == 2 * len(PLANNED) - 5  # the host's product, decoding, and three searches


# Rates


def test_a_rate_is_items_per_second(monkeypatch):
    calls, clock = [], [0.0]
    monkeypatch.setattr("benchmarks.rates.time", SimpleNamespace(perf_counter=lambda: clock[0]))

    def work():
        calls.append(None)
        clock[0] += 0.0021
        return 3

    found = rates(CPU, work, 0.2)
    assert len(found) <= ROUNDS
    assert all(200 < rate < 1500 for rate in found)
    assert found == pytest.approx([3 / 0.0021] * len(found))
    assert len(calls) > 2 * ROUNDS


def test_what_takes_longer_than_its_time_is_called_twice():
    calls = []

    def work():
        calls.append(time.sleep(0.05))
        return 1

    assert len(rates(CPU, work, 0.01)) == 1
    assert len(calls) == 2


# Operations


@pytest.mark.parametrize("recurrent", ["gru", "lstm"])
def test_operations_of_an_update_are_those_that_pytorch_counts(recurrent):
    """Without repeated words, that only the CPU's layer makes use of, and with few pairs."""
    sentences, steps = 4, 30
    sizes = {"word_dim": 24, "hidden_dim": 40, "embed_dim": 32, "image_hidden_dims": [48]}
    recipe = tiny.recipe(recurrent=recurrent, projection="shared", languages=["en"], **sizes)
    words = [f"w{number}" for number in range(sentences * steps)]
    vocabulary = Vocabulary.build(
        {"en": [words]}, pooled=True, min_count=1, markers="none", oov="unk", max_tokens=len(words)
    )
    model = new_learner(recipe, vocabulary, 64, seed=1).space
    ids = 4 + torch.arange(sentences * steps).view(sentences, steps)

    def update():
        images = model.image_vectors(torch.rand(sentences, 64))
        lengths = torch.full((sentences,), steps)
        model.scores(images, model.sentence_vectors(ids, lengths, "en")).sum().backward()

    with FlopCounterMode(display=False) as counter:
        update()
    # PyTorch's count lacks the gradient of the first states and has the scores.
    assert of_update(model, update) == pytest.approx(counter.get_total_flops(), rel=0.02)
    assert not any(layer._forward_hooks for layer in model.modules())


def test_a_share_is_of_the_same_device_and_precision():
    peak = Row(PRODUCT, "cuda", "bf16", "products/s", [1.0, 8.0, 10.0], flops=100)
    other = Row(PRODUCT, "cuda", "f32", "products/s", [1.0], flops=100)
    rows = [peak, other, Row("x", "cuda", "bf16", "images/s", [1.0, 2.0, 30.0], flops=200)]
    assert share(rows[2], rows) == pytest.approx(2 * 200 / (8 * 100))
    assert share(Row("x", "host", "f32", "images/s", [1.0], flops=1), rows) is None
    assert share(Row("x", "cuda", "f32", "images/s", [1.0]), rows) is None
    assert "50.0%" in table(rows).splitlines()[3]


def test_pseudopairs_stop_when_time_is_up():
    some, all_of_them = (pseudopairs(CPU, SMALL, seconds) for seconds in (0, 60))
    assert (len(some.rates), some.note) == (1, "128 were searched")
    assert (len(all_of_them.rates), all_of_them.note) == (3, "")
    assert some.items == all_of_them.items == SMALL.borrowing
    assert some.seconds == pytest.approx(SMALL.borrowing / some.rate)


# Packages

WITHOUT = """
import sys
for name in {blocked!r}:
    sys.modules[name] = None
{then}
"""


def run_with(packages, then):
    """Run code where none of this project's packages can be imported but these and torch."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    ours = {re.split("[=<>]", each)[0] for each in project["dependencies"]}
    refused = ours - {gpu.PIP.get(name, name).replace(".", "-") for name in (*packages, "torch")}
    modules = {
        module
        for module, distributions in packages_distributions().items()
        if refused >= {re.sub("[_.]", "-", name.lower()) for name in distributions}
    }
    assert {"dvc", "efficientnet_lite_pytorch", "gensim", "openvino"} <= modules
    python(WITHOUT.format(blocked=sorted(modules), then=then))


@pytest.mark.parametrize("packages", [COMMON, CNN, TRAINING], ids=["common", "cnn", "training"])
def test_a_measurement_needs_the_packages_that_it_names_and_no_other(packages):
    of_each_kind = {
        getattr(each.run, "func", each.run): number
        for number, each in reversed([*enumerate(PLANNED)])
        if each.packages == packages
    }
    stand_in = """
from pipeline_lib.images.runtimes import RUNTIMES, Runtime
def build(encoder, rows, side):
    return Runtime(lambda pixels: encoder(torch.from_numpy(pixels)).numpy(), "cpu", "f32")
RUNTIMES["cpu", "f32"] = build
"""  # of a GPU's runtime, which needs no OpenVINO
    then = f"""
from benchmarks.gpu_rows import SMALL
from benchmarks.gpu_speeds import measurements, torch
{stand_in if "torchvision" in packages else ""}
for number in {[*of_each_kind.values()]}:
    measurements(SMALL, ["f32"])[number].run(torch.device("cpu"), SMALL, 0.01)
"""
    run_with(packages, then)


def test_the_tests_need_the_packages_that_are_named_and_no_other():
    then = f"""
import pytest
files = {gpu.test_files()!r}
sys.exit(pytest.main(["-m", "gpu", "--collect-only", "-q", "-p", "no:cacheprovider", *files]))
"""
    run_with(TEST_PACKAGES, then)


def test_a_missing_package_is_named_with_the_command_that_installs_it(monkeypatch):
    names = ["PIL", "no_such_package", "no_such_package.part", "torch"]
    monkeypatch.setitem(sys.modules, "PIL", None)
    absent = gpu.missing(names)
    assert absent == names[:3]
    assert gpu.pip(absent[:2]) == "python -m pip install pillow no_such_package"


# The command


def test_without_cuda_it_says_so(monkeypatch, capsys):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert gpu.main([]) == 2
    assert "--device cpu --small" in capsys.readouterr().err


def test_a_large_run_on_a_cpu_is_refused(capsys):
    with pytest.raises(SystemExit) as caught:
        gpu.main(["--device", "cpu"])
    assert caught.value.code == 2
    assert "--small" in capsys.readouterr().err


def broken(device, sizes, seconds):
    raise RuntimeError("out of memory\nand more lines")


def test_what_cannot_be_measured_is_listed_and_the_rest_is_measured(monkeypatch, tmp_path, capsys):
    planned = [
        PLANNED[0],
        Measurement("broken", (), 1, broken),
        Measurement("unknown", ("no_such_package",), 1, PLANNED[0].run),
        PLANNED[1],
    ]
    monkeypatch.setattr(gpu_speeds, "measurements", lambda sizes, precisions: planned)
    monkeypatch.setattr(gpu, "run_tests", lambda seconds: {"exit": 0, "summary": "7 passed"})
    out = tmp_path / "gpu.json"
    assert gpu.main(["--device", "cpu", "--small", "--out", str(out)]) == 1
    found = json.loads(out.read_text("utf-8"))
    assert [row["on"] for row in found["rows"]] == ["cpu", "host"]
    assert found["rows"][0]["share_of_peak"] == 1
    assert found["not_measured"] == [
        {"name": "broken", "why": "RuntimeError: out of memory"},
        {"name": "unknown", "why": "without no_such_package"},
    ]
    assert found["complete"]
    said = capsys.readouterr()
    assert "python -m pip install no_such_package" in said.err
    assert "7 passed" in said.out
    assert "not measured: broken" in said.out
    timers = [each for each in threading.enumerate() if isinstance(each, threading.Timer)]
    assert all(timer.finished.is_set() for timer in timers)  # else it would end the tests


def test_nothing_begins_when_time_is_up(monkeypatch, tmp_path):
    monkeypatch.setattr(gpu_speeds, "measurements", lambda sizes, precisions: PLANNED[:2])
    monkeypatch.setattr(gpu, "run_tests", lambda seconds: {})
    report = Report(None, {}, time.monotonic() - gpu.SECONDS + gpu.LAST_SECONDS)
    gpu.measure_all(report, CPU, SMALL)
    assert not report.rows
    assert {each["why"] for each in report.not_measured} == {"540 s are over"}


def test_a_hung_run_ends_in_time_with_what_it_has(tmp_path):
    code = f"""
import time
from pathlib import Path
from benchmarks import gpu
report = gpu.Report(Path({str(tmp_path / "gpu.json")!r}), {{}}, time.monotonic())
gpu.stop_in(0.2, report)
time.sleep(3600)
"""
    assert python(code, timeout=300, fails=True).returncode == 1
    found = json.loads((tmp_path / "gpu.json").read_text("utf-8"))
    assert found["not_measured"][0]["name"] == "the rest"
    assert not found["complete"]


@pytest.mark.parametrize(
    ("test", "seconds", "status", "summary"),
    [
        ("assert True", 600, 0, "1 passed"),
        ("assert False", 600, 1, "1 failed"),
        ("import time; time.sleep(60)", 2, None, "stopped after 2 s"),
    ],
)
def test_the_tests_marked_gpu_are_run(monkeypatch, tmp_path, test, seconds, status, summary):
    (tmp_path / "tests").mkdir()
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = gpu\naddopts = --of-a-plugin\n")
    head = "import pytest\n\n@pytest.mark.gpu\ndef test_it():\n    "
    (tmp_path / "tests" / "test_marked.py").write_text(f"{head}{test}\n")
    (tmp_path / "tests" / "test_other.py").write_text("def test_it():\n    assert False\n")
    monkeypatch.setattr(gpu, "ROOT", tmp_path)
    found = gpu.run_tests(seconds)
    assert found["exit"] == status
    assert summary in found["summary"]
    assert ("test_it" in found["output"]) == (status == 1)
