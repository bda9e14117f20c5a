"""The campaign of bad inputs tells right from wrong, and has enough of them."""

import os
import random
import resource
import signal
from collections import Counter
from functools import partial
from itertools import islice

import pytest

from benchmarks import bad_inputs
from benchmarks.bad_cases import all_cases, mutated
from benchmarks.bad_inputs import Case, for_seconds, table, try_all
from pipeline_lib.contract.problems import ContractError


def refuse(folder):
    raise ContractError("expected, found")


def fail(folder):
    raise KeyError("x")


def crash(folder):
    os.kill(os.getpid(), signal.SIGKILL)


def eat(folder):
    return len(b"x" * bad_inputs.MOST_MEMORY) and None


def run(case, may_pass=False):
    found = try_all([Case("g", "c", case, may_pass)])
    return {how for _, how in found.counts}, found


@pytest.mark.parametrize(
    ("case", "may_pass", "ended"),
    [
        (refuse, False, "clear error"),
        (lambda folder: None, True, "accepted rightly"),
        (lambda folder: None, False, "wrong"),
        (fail, True, "wrong"),
        (crash, True, "wrong"),
        (eat, True, "wrong"),
    ],
)
def test_each_way_to_end_is_told_from_others(case, may_pass, ended, monkeypatch):
    here = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    monkeypatch.setattr(bad_inputs, "MOST_MEMORY", here + 2**24)
    how, found = run(case, may_pass)
    assert how == {ended}
    assert bool(found.wrong) == (ended == "wrong")


def test_inputs_of_one_case_count_each():
    _, found = run(lambda folder: Counter({"clear error": 3, "accepted rightly": 2}), may_pass=True)
    assert "| g | 5 | 3 | 2 | 0 |\n| **all** | 5 | 3 | 2 | 0 |" in table(found)


def test_tries_go_on_for_a_time(tmp_path):
    def tries():
        while True:
            yield partial(refuse, tmp_path)

    ended = for_seconds(0.05, tries())
    signal.alarm(0)
    signal.setitimer(signal.ITIMER_PROF, 0)
    assert ended.keys() == {"clear error"}
    assert ended.total() > 10


def test_mutations_differ_and_depend_on_chance_alone():
    made = [mutated(bytes(100), random.Random(n)) for n in range(50)]
    assert made == [mutated(bytes(100), random.Random(n)) for n in range(50)]
    assert len(set(made)) > 25


def test_there_are_enough_cases_and_some_of_each_kind_end_well():
    cases = list(all_cases(0.01))
    assert len({(case.group, case.name) for case in cases}) == len(cases) > 250
    for group in {case.group for case in cases} - {"made by hypothesis"}:
        if group.startswith("mutated"):
            continue
        own = [case for case in cases if case.group == group]
        found = try_all(islice(own, 0, None, max(1, len(own) // 2)))
        assert found.wrong == []
