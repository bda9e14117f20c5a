"""The reports of all tasks on one recipe, made here or by workers."""

from collections.abc import Callable
from functools import partial

from pipeline_lib.evaluation.evaluated import Evaluated
from pipeline_lib.evaluation.tasks import TASKS, Report
from pipeline_lib.scheduling.each import open_workers


def reports(run: Evaluated, label: str) -> dict[str, Report]:
    """Return the report of every task; workers make one each where the environment asks for Ray.

    Args:
        run: What is reported.
        label: Of the progress bar.
    """
    load = partial(_reporting, run)
    with open_workers(load, len(TASKS), unit="tasks", label=label, one_at_a_time=True) as each:
        made = each([*TASKS]) if each else map(load(), TASKS)
        return dict(zip(TASKS, made, strict=True))


def _reporting(run: Evaluated) -> Callable[[str], Report]:
    return lambda task: TASKS[task](run)
