"""What the logs of killed runs of ``dvc repro`` show: which stages ran, and how far they were.

DVC names each stage that it comes to; the stages' progress bars count updates, images and
sentences. The bars have to show every step (``TQDM_MININTERVAL=0``).
"""

import re
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field

_STAGE = re.compile(r"^(Running stage|Stage) '([^']+)'", re.MULTILINE)
_BAR = re.compile(r"([^\r\n]+?): +\d+%\|[^|\r\n]*\| (\d+)/\d+ \[")


def stages_in(log: str) -> Iterator[tuple[str, bool, str]]:
    """Yield each stage that DVC came to, whether it ran it, and what was printed meanwhile."""
    found = list(_STAGE.finditer(log))
    ends = [match.start() for match in found[1:]] + [len(log)]
    for match, end in zip(found, ends, strict=False):  # none was found: one end
        yield match[2], match[1] == "Running stage", log[match.end() : end]


def bars_in(printed: str) -> dict[str, tuple[int, int]]:
    """Return the first and the last count of each progress bar, by what the bar names."""
    bars: dict[str, tuple[int, int]] = {}
    for label, count in _BAR.findall(printed):
        name = label.split(", ")[0]
        first, _ = bars.get(name, (int(count), 0))
        bars[name] = first, int(count)
    return bars


@dataclass
class Evidence:
    """What the runs of one project add up to, each killed or not.

    Attributes:
        intervals: Steps of a stage between two points from which it can go on.
        finished: Stages that DVC has recorded: it went on to another one, or dvc.lock says so.
        ran_again: Stages that DVC ran although it had recorded them.
        reached: Last count of each bar of each stage.
        lost: Steps that a kill cost, one number for each bar that started once more.
        lost_beyond: Those beyond one interval.
    """

    intervals: Mapping[str, int]
    finished: set[str] = field(default_factory=set)
    ran_again: list[str] = field(default_factory=list)
    reached: dict[tuple[str, str], int] = field(default_factory=dict)
    lost: list[int] = field(default_factory=list)
    lost_beyond: int = 0

    def add(self, log: str, recorded: Set[str]) -> None:
        """Take in the log of a run, and the stages that dvc.lock has recorded in it."""
        stages = list(stages_in(log))
        for stage, ran, printed in stages:
            if ran and stage in self.finished:
                self.ran_again.append(stage)
            for name, (first, last) in bars_in(printed).items():
                self._start_bar(stage, name, first)
                self.reached[stage, name] = last
        self.finished |= {stage for stage, *_ in stages[:-1]} | recorded

    def _start_bar(self, stage: str, name: str, first: int) -> None:
        if (stage, name) in self.reached:
            lost = max(self.reached[stage, name] - first, 0)
            self.lost.append(lost)
            self.lost_beyond += max(lost - self.intervals.get(stage, 0), 0)
