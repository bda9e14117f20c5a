"""Work in processes ends as it ends in one, and a failure is not lost."""

import gc
import os
import platform
import signal
import sys
import time
from subprocess import check_output

import pytest
import torch
from shell import until

from pipeline_lib.compute.forks import on_all_cores


def drawn(seed):
    torch.manual_seed(seed)
    return (torch.randn(3, 3) @ torch.randn(3, 3)).tolist()


@pytest.mark.parametrize("items", [[], [5], [3, 1, 2], range(100)])
def test_several_at_once_end_as_one_after_the_other(items):
    alone = [drawn(seed) for seed in items]
    assert [*on_all_cores(lambda seed: drawn(seed), items, 2)] == alone


def test_each_runs_on_one_core_in_a_process_of_its_own():
    found = {*on_all_cores(lambda _: (os.getpid(), torch.get_num_threads()), range(64), 2)}
    assert os.getpid() not in {process for process, _ in found}
    assert {threads for _, threads in found} == {1}


@pytest.mark.parametrize(
    ("end", "error"), [("raise", ValueError), ("kill", RuntimeError)], ids=["raise", "kill"]
)
def test_one_that_fails_fails_all(end, error):
    def work(item):
        if item == 2 and end == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if item == 2:
            raise ValueError("a mistake")

    with pytest.raises(error, match="a mistake" if end == "raise" else "was killed"):
        [*on_all_cores(work, [1, 2], 2)]


def test_nothing_goes_on_when_one_has_failed(tmp_path):
    """Other seeds began, and were trained to their end, before the error of the first was said."""

    def work(item):
        (tmp_path / f"{item}").touch()
        if item == 1:
            until((tmp_path / "0").exists)
            raise ValueError("a mistake")
        time.sleep(900)

    with pytest.raises(ValueError, match="a mistake"):
        [*on_all_cores(work, range(9), 2)]
    assert {path.name for path in tmp_path.iterdir()} <= {"0", "1", "2"}


def test_who_wants_no_more_results_waits_for_none():
    found = on_all_cores(lambda item: item and time.sleep(900), range(9), 2)
    assert next(found) == 0
    found.close()


def test_what_the_parent_left_behind_is_not_destroyed_in_a_fork():
    """A network of OpenVINO's waits for its threads when it is destroyed, and a fork has none."""

    class Network:
        def __init__(self):
            self.itself, self.process = self, os.getpid()

        def __del__(self):
            destroyed.append(os.getpid())

    def work(_):
        gc.collect()
        return destroyed

    destroyed = []
    gc.collect()
    gc.disable()
    try:
        Network()
        assert [*on_all_cores(work, [1, 2], 2)] == [[], []]
    finally:
        gc.enable()
    gc.collect()
    assert destroyed == [os.getpid()]


_KEPT = """
import resource
import torch
from pipeline_lib.compute.forks import keep_freed_memory

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize()

if {keep}:
    keep_freed_memory()
before = resident()
torch.ones(25_000_000)
print(resident() - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc's malloc is asked")
def test_freed_memory_is_kept_where_that_is_asked_for():
    """Else each update of a large recurrent layer has the kernel clear its memory anew."""
    environment = {key: value for key, value in os.environ.items() if key != "LD_PRELOAD"}
    without, kept = (
        int(check_output([sys.executable, "-c", _KEPT.format(keep=keep)], env=environment))
        for keep in (False, True)
    )
    assert without < 50e6 < kept
