"""Fixtures shared by all tests."""

import contextlib
import os
import random
import sys
from collections.abc import Iterator, Set
from pathlib import Path

import pytest
import torch

from pipeline_lib.contract.problems import warn
from pipeline_lib.images import runtimes

# Models in tests are too small for two threads: waiting for each other costs more than it gains.
torch.set_num_threads(1)

# The first backward pass decides whether autograd has threads. After torch.export, which pretends a
# CUDA device, it would, and a later test could not train in processes that are forked.
torch.zeros(1, requires_grad=True).backward()

# DVC sends no report of what tests run: a project that they make has DVC's own settings.
os.environ["DVC_NO_ANALYTICS"] = "1"

# Tests look at errors themselves; those of what a user sees take this away.
os.environ["POLYVIEW_TRACEBACK"] = "1"

# Draws are the same in every run, so that a change is judged by what it changes; long runs vary
# with the seed of pytest-randomly.
SAME_DRAWS = "POLYVIEW_LONG" not in os.environ

with contextlib.suppress(ImportError):  # tests marked gpu run where it is not installed, too
    from hypothesis import HealthCheck, settings

    # A slow machine is no error: by default an example may take 200 ms.
    settings.register_profile(
        "any machine",
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
        derandomize=SAME_DRAWS,
    )
    settings.load_profile("any machine")

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / ".ci"))  # its helpers are tested, too


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuse cases in a set: each process has another order of them, and workers share tests."""
    marks = ((item, mark) for item in items for mark in item.iter_markers("parametrize"))
    unordered = [item.nodeid for item, mark in marks if isinstance(mark.args[1], Set)]
    if unordered:
        raise pytest.UsageError(f"expected cases in order, found a set: {unordered}. Sort them")


@pytest.fixture(scope="session")
def real_data() -> Path:
    """Return the folder of third-party data, or skip the test where there is none."""
    folder = Path(os.environ.get("POLYVIEW_REAL_DATA", ROOT.parent / "shared" / "data"))
    if not (folder / "README.md").is_file():
        pytest.skip(f"no third-party data at {folder}: set POLYVIEW_REAL_DATA to their folder")
    return folder


@pytest.fixture(autouse=True, scope="session")
def _networks_stay_loaded() -> Iterator[None]:
    """A network is shared while it is in use; here it stays, as each takes seconds to load."""
    build, kept = runtimes.build_runtime, []

    def built(*arguments: object) -> runtimes.Runtime:
        kept.append(build(*arguments))
        return kept[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runtimes, "build_runtime", built)
        yield


@pytest.fixture(autouse=True)
def _draws() -> None:
    """Models and inputs of a test do not depend on the tests before it, nor on the run."""
    torch.manual_seed(0 if SAME_DRAWS else random.getrandbits(32))


@pytest.fixture(autouse=True)
def _warnings_anew() -> None:
    """Warnings come once in a process: in each test, here."""
    warn.cache_clear()


@pytest.fixture
def as_a_user(monkeypatch) -> None:
    """Mistakes end with a message, not with a traceback."""
    monkeypatch.delenv("POLYVIEW_TRACEBACK")


@pytest.fixture(scope="session")
def colours(tmp_path_factory) -> Path:
    """Return a folder with ``model``, which knows colours in English and German, and ``photos``."""
    import tiny_photos  # needs packages that the tests marked gpu do without

    folder = tmp_path_factory.mktemp("colours")
    tiny_photos.save_model(folder)
    return folder
