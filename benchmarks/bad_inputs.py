"""Bad inputs, one after another, each in a process of its own: what becomes of them.

A case either ends with a clear error (one that the edge of the program shows as a message, with
exit code 2) or is accepted, where that is right. All else is wrong: another exception, a crash,
more than 2 GB of memory of its own, more than a minute, an artefact left half written, or
acceptance of what nothing should accept.
"""

import os
import pickle
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from shutil import rmtree

from benchmarks.measuring import status_kib
from pipeline_lib.running.edge import MISTAKE, explained

MOST_MEMORY = 2 * 2**30
"""Bytes."""

_LATE = 2**22
"""Bytes by which the kernel's count of a process's pages may be late."""

MOST_SECONDS = 60
"""Of a processor; of waiting, ten times as many."""

REFUSED, ACCEPTED = "clear error", "accepted rightly"


@dataclass(frozen=True)
class Case:
    """One bad input.

    Attributes:
        group: Row of the table that it counts in.
        name: What is bad about it.
        run: Reads it, in an empty folder. A case of many inputs returns how each of them ended.
        may_pass: It need not be refused.
    """

    group: str
    name: str
    run: Callable[[Path], Counter[str] | None]
    may_pass: bool = False


@dataclass
class Outcomes:
    """How cases ended.

    Attributes:
        counts: Inputs by group and outcome.
        wrong: What went wrong, in words.
        memory: The most that a process held, in bytes.
    """

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    memory: int = 0


def outcome(run: Callable[[], object]) -> str:
    """Return how one input ends that is read in this process."""
    try:
        run()
    except Exception as error:
        text, code = explained(error)
        if code == MISTAKE and text.strip():
            return REFUSED
        return "".join(traceback.format_exception(error)[-6:])
    return ACCEPTED


def try_all(cases: Iterable[Case]) -> Outcomes:
    """Try each case in a process of its own."""
    found = Outcomes()
    for case in cases:
        ended, memory = _in_process(case)
        found.memory = max(found.memory, memory)
        if memory > MOST_MEMORY:
            ended = Counter({f"it took {memory / 2**30:.1f} GB": 1})
        for how, count in ended.items():
            right = how == REFUSED or (how == ACCEPTED and case.may_pass)
            found.counts[case.group, how if right else "wrong"] += count
            if not right:
                found.wrong.append(f"{case.group}: {case.name}: {how}")
    return found


def _in_process(case: Case) -> tuple[Counter[str], int]:
    reading, writing = os.pipe()
    folder = Path(tempfile.mkdtemp())
    sys.stdout.flush()
    process = os.fork()
    if process == 0:
        os.close(reading)
        _be_the_case(case, folder, writing)
    os.close(writing)
    with open(reading, "rb") as pipe:
        answer = pipe.read()
    _, status, usage = os.wait4(process, 0)
    if status or not answer:
        how = f"the process ended with signal {status & 127}; what it read stays in {folder}"
        return Counter({how: 1}), 0
    rmtree(folder)
    how, before = pickle.loads(answer)  # of our own child
    return how, usage.ru_maxrss * 1024 - before + _LATE


def _be_the_case(case: Case, folder: Path, writing: int) -> None:
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)
    os.chdir(folder)
    ended: list[object] = []
    before = 1024 * status_kib("VmRSS")  # what it was forked with is not the case's
    try:
        _limit_time()
        how = outcome(lambda: ended.append(case.run(folder)))
        several = ended and ended[0]
        os.write(writing, pickle.dumps((several or Counter({how: 1}), before)))
    finally:
        os._exit(0)


def _limit_time() -> None:
    """End this process if one input takes too long from here."""
    signal.setitimer(signal.ITIMER_PROF, MOST_SECONDS)
    signal.alarm(10 * MOST_SECONDS)


def for_seconds(seconds: float, tries: Iterator[Callable[[], object]]) -> Counter[str]:
    """Return how inputs end that are tried one after another for so long a time of a processor."""
    ended, until = Counter(), time.process_time() + seconds
    while time.process_time() < until:
        _limit_time()
        ended[outcome(next(tries))] += 1
    return ended


def table(found: Outcomes) -> str:
    """Return the table of docs/reliability.md."""
    groups = list(dict.fromkeys(group for group, _ in found.counts))
    columns = [REFUSED, ACCEPTED, "wrong"]
    rows = [(group, *(found.counts[group, column] for column in columns)) for group in groups]
    rows.append(("**all**", *(sum(row[i] for row in rows) for i in (1, 2, 3))))
    lines = ["| inputs | tried | clear error | accepted rightly | wrong |", "|---|" + 4 * "---:|"]
    lines += [f"| {name} | {sum(n):,} | {n[0]:,} | {n[1]:,} | {n[2]:,} |" for name, *n in rows]
    return "\n".join(lines)
