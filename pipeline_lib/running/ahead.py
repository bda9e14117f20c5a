"""Trainings that begin before their turn, on a core that the stage of now leaves idle.

DVC runs one stage after the other, and a small model keeps one core busy. So under ``dvc repro`` a
process of the lowest priority trains recipes that have yet to come and whose inputs are there. It
takes the last one first: the stages come from the other end. What it has done lies in ``.resume``,
where the recipe's own stage finds it, goes on from there, and alone publishes. That needs bytes
which do not depend on who computes them: ``stages.train --ahead`` trains nothing but small models
in the exact arithmetic (training/seeds.py). What DVC would skip is left alone.
"""

import contextlib
import json
import os
import select
import signal
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

Request = dict
"""What runs a stage: see warm.py."""

_STAGE = "train"

_NOT_FOR_IT = {"DVC_STAGE", "POLYVIEW_RAY"}
"""Variables of the stage of now: what works ahead leaves dvc.lock alone, and needs no workers."""


@dataclass
class Ahead:
    """Of one run of DVC, what its server (warm.py) does beside the stages.

    Attributes:
        run: Runs the module that a request names; in a process of its own.
        due: Says of stages whose inputs are all there which of them DVC would run.
        until: Descriptors of processes; a training ends with the first of them that does.
        seconds: Of a processor that stages were trained ahead.
        process: The training's, 0 if there is none; who else waited for it would take its times.
    """

    run: Callable[[Request], int]
    due: Callable[[Sequence[str]], Sequence[str]]
    until: Sequence[int]
    seconds: dict[str, float] = field(default_factory=dict)
    process: int = 0
    _ended: int | None = None
    _at_work: str = ""
    _known_due: dict[str, bool] = field(default_factory=dict)
    _answer: int | None = None
    _tried: set[str] = field(default_factory=set)
    _request: Request = field(default_factory=dict)

    @property
    def watched(self) -> list[int]:
        """Return the descriptor that can be read once the training has ended, if there is one."""
        return [] if self._ended is None else [self._ended]

    def make_way(self, request: Request) -> None:
        """Stop the training whose own stage begins: it goes on from the last validation."""
        self._tried.add(request["stage"])
        if self._at_work == request["stage"]:
            with contextlib.suppress(ProcessLookupError):  # it has just ended
                signal.pidfd_send_signal(self._ended, signal.SIGKILL)
            select.select(self.watched, [], [])
            self._let_go()

    def go_on(self, request: Request) -> None:
        """Train what is ready beside the stage that begins, unless a training is at work."""
        self._request = request
        if not self.watched:
            self._begin()

    def next(self) -> None:
        """Train the next recipe: the last one's training has ended."""
        self._let_go()
        self._begin()

    def _let_go(self) -> None:
        with contextlib.suppress(ChildProcessError):
            _, _, used = os.wait4(self.process, 0)
            self.seconds[self._at_work] = used.ru_utime + used.ru_stime
        with open(self._answer, "rb") as answer, contextlib.suppress(ValueError):  # none was given
            self._known_due |= json.loads(answer.read() or b"")
        os.close(self._ended)
        self._ended, self._at_work, self.process = None, "", 0

    def _begin(self) -> None:
        ready = [name for name in self._request["ready"] if name.partition("@")[0] == _STAGE]
        left = [name for name in reversed(ready) if self._may_be_due(name)]
        unknown = [name for name in left if name not in self._known_due]
        from joblib import cpu_count  # here: a stage's own process imports no library

        if not left or cpu_count() == 1:
            return
        self._at_work = left[0]
        self._tried.add(self._at_work)
        self._answer, answer = os.pipe()
        os.set_blocking(self._answer, False)
        self.process = os.fork()
        if not self.process:
            try:
                self._train(unknown, answer)
            finally:  # whatever happens, no second server goes on
                os._exit(0)
        os.close(answer)
        self._ended = os.pidfd_open(self.process)

    def _may_be_due(self, stage: str) -> bool:
        return stage not in self._tried and self._known_due.get(stage, True)

    def _train(self, unknown: Sequence[str], answer: int) -> None:
        """Train the stage at work if it is due, which DVC is asked of all that it may be asked of.

        To ask it takes a second: what it says of the others, the server keeps.
        """
        threading.Thread(target=_end_after, args=(self.until,), daemon=True).start()
        os.nice(19)
        with contextlib.suppress(OSError):  # where memory runs out, the stage is not the one to go
            Path("/proc/self/oom_score_adj").write_text("1000")
        os.chdir(self._request["folder"])
        if self._at_work in unknown:
            exact = [*filter(_is_exact, unknown)]
            due = self.due(exact) if exact else []
            os.write(answer, json.dumps({stage: stage in due for stage in unknown}).encode())
            if self._at_work not in due:
                return
        os.close(answer)
        from pipeline_lib.compute.forks import use_cores  # here: the server has none of our code

        use_cores(1)
        environment = self._request["environment"]
        self.run(
            self._request
            | {
                "module": f"stages.{_STAGE}",
                "arguments": [self._at_work.partition("@")[2], "--ahead"],
                "environment": {k: environment[k] for k in environment.keys() - _NOT_FOR_IT},
            }
        )


def _is_exact(stage: str) -> bool:
    """Return whether a recipe may train ahead."""
    recipe = stage.partition("@")[2]
    resolved = Path(f"data/resolved/recipes/{recipe}.json").read_text(encoding="utf-8")
    return json.loads(resolved)["precision"] == "f64"


def _end_after(processes: Sequence[int]) -> None:
    select.select(processes, [], [])
    os._exit(0)
