"""How far ``dvc repro`` has come, and the last outputs of a stage that fails.

DVC says which stage runs, not how many there are. So the first stage of a run asks DVC for its
plan: all stages that the run looks at, in order, of which it skips those that are up to date. Each
stage then prints its place in it, and what is left at most: what this one and all after it took
when they last ran here.

DVC deletes the outputs of a stage before it runs. So they are kept as hard links, which cost no
space, and are put back if the stage fails: its metrics stay, and once the cause is mended nothing
runs that DVC had recorded. What no stage writes any more goes with the next run: its link would be
the last one, and hold the space.

All stands in ``.dvc/tmp/polyview`` (notes.py).
"""

import contextlib
import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from pipeline_lib.running import notes
from pipeline_lib.running.edits import Watch

_PLAN, _SECONDS = notes.HOME / "plan.json", notes.HOME / "seconds.json"
_KEPT = notes.HOME / "kept"

Plan = Mapping[str, Sequence[str]]
"""Of each stage of a run, in order, the paths of its outputs."""

Needs = Mapping[str, Sequence[str]]
"""Of each stage of a run, the paths that it reads."""


class Following:
    """One stage of a run of DVC, from its line of progress to what remains of it.

    Args:
        stage: Its name in dvc.lock.
        run: What tells this run from all others.
        arguments: Of the command ``dvc``.

    Attributes:
        ready: Later stages of which all inputs are there: see :func:`ready_stages`.
        watch: What it reads that may be edited; nothing where DVC tells nothing of it.
    """

    def __init__(self, stage: str, run: str, arguments: Sequence[str]) -> None:
        """Print where in the run the stage stands."""
        self.stage, self.start = stage, time.monotonic()
        known = _known_plan(run, arguments)
        plan = known.get("stages", {})
        self.outputs = plan.get(stage)
        self.ready = ready_stages(stage, plan, known["needs"]) if known.get("in_order") else []
        reads, keys = (known.get(name, {}).get(stage, []) for name in ("needs", "keys"))
        self.watch = Watch(reads, keys, known.get("outputs", []))
        print(progress_line(stage, plan, notes.read(_SECONDS)), end="", file=sys.stderr, flush=True)

    def end(self, code: int, ahead: float) -> None:
        """Keep the stage's time and outputs; put back the last outputs if it failed.

        Args:
            code: Its exit code.
            ahead: Seconds that were spent on it before it began (ahead.py).
        """
        if self.outputs is None:
            return
        with contextlib.suppress(OSError):  # there may be no room, or no hard links
            if code:
                _put_back(self.outputs)
                return
            seconds = round(time.monotonic() - self.start + ahead, 1)
            notes.write(_SECONDS, {**notes.read(_SECONDS), self.stage: seconds})
            _keep(self.outputs)


def progress_line(stage: str, plan: Plan, seconds: Mapping[str, float]) -> str:
    """Return the stage's place in the plan and what is left; nothing if it is not in it.

    Args:
        stage: Name of the stage.
        plan: All stages in order.
        seconds: That stages took when they last ran.
    """
    order = [*plan]
    if stage not in order:
        return ""
    left = order[order.index(stage) :]
    timed = [seconds[name] for name in left if name in seconds]
    words = f"stage {len(order) - len(left) + 1} of {len(order)}"
    if timed:
        words += f", at most {_duration(sum(timed))} left"
    if timed and len(timed) < len(left):
        words += f", and {len(left) - len(timed)} that never ran here"
    return f"{words}\n"


def ready_stages(stage: str, plan: Plan, needs: Needs) -> list[str]:
    """Return the later stages that read nothing which the run has yet to write, in order.

    Args:
        stage: The one that runs now.
        plan: All stages in order.
        needs: What each reads, as far as it is known.
    """
    order = [*plan]
    if stage not in order:
        return []
    left = order[order.index(stage) :]
    unwritten = {output for name in left for output in plan[name]}
    known = [name for name in left[1:] if name in needs]
    return [name for name in known if not _touches(unwritten, needs[name])]


def _touches(unwritten: set[str], paths: Sequence[str]) -> bool:
    """Return whether one of the paths is unwritten, or lies in a folder that is, or holds one."""
    return any(
        each == path or each.startswith(f"{path}/") or path.startswith(f"{each}/")
        for path in paths
        for each in unwritten
    )


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def _known_plan(run: str, arguments: Sequence[str]) -> dict:
    """Return the plan of this run, made by its first stage; nothing where DVC tells none."""
    if not notes.is_possible():
        return {}
    known = notes.read(_PLAN)
    if known.get("run") != run:
        _make_plan(run, arguments)
        known = notes.read(_PLAN)
        if known.get("run") != run:
            return {}
        with contextlib.suppress(OSError):
            _forget_all_but(known["outputs"], _KEPT)
        for outputs in known["stages"].values():
            with contextlib.suppress(OSError):  # one that is just written
                _keep(outputs)
    return known


def _make_plan(run: str, arguments: Sequence[str]) -> None:
    """Write the plan in a child: what DVC imports shall be in no process that runs a stage."""
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        return
    with contextlib.suppress(BaseException), open(os.devnull, "w") as sys.stderr:
        notes.write(_PLAN, {"run": run, **_asked_of_dvc(arguments)})
    os._exit(0)


def _asked_of_dvc(arguments: Sequence[str]) -> dict[str, object]:
    """Return what is known of a run.

    Returns:
        ``stages``: a plan. ``needs``: what each of them reads, and ``keys``, of params.yaml.
        ``in_order``: whether none of them comes before one that it reads of. ``outputs``: those of
        all stages that there are.
    """
    from dvc.cli import parse_args
    from dvc.dependency import ParamsDependency
    from dvc.dvcfile import PROJECT_FILE
    from dvc.repo import Repo
    from dvc.repo.reproduce import collect_stages, get_active_graph, plan_repro

    asked = {"glob": False, **vars(parse_args([*arguments]))}  # dvc exp run has no --glob
    with Repo() as repo:
        chosen = collect_stages(repo, asked["targets"] or [PROJECT_FILE], glob=asked["glob"])
        graph = get_active_graph(repo.index.graph)
        options = {key: asked[key] for key in ("pipeline", "downstream")}
        steps = chosen if asked["single_item"] else plan_repro(graph, chosen, **options)
        return {
            "stages": {step.addressing: [out.def_path for out in step.outs] for step in steps},
            "needs": {step.addressing: [dep.def_path for dep in step.deps] for step in steps},
            "keys": {
                step.addressing: [
                    key
                    for dep in step.deps
                    if isinstance(dep, ParamsDependency)
                    for key in dep.params
                ]
                for step in steps
            },
            # Of fewer, networkx draws the order in each process anew: what is written before what?
            "in_order": 2 * len(steps) >= len(graph),
            "outputs": [out.def_path for stage in graph for out in stage.outs],
        }


def due_stages(stages: Sequence[str]) -> list[str]:
    """Return those that DVC would run, of stages whose inputs are all there; none if it fails."""
    answer, ours = os.pipe()
    child = os.fork()
    if not child:
        with contextlib.suppress(BaseException), open(os.devnull, "w") as sys.stderr:
            os.write(ours, json.dumps(_found_due(stages)).encode())
        os._exit(0)
    os.close(ours)
    with open(answer, encoding="utf-8") as words:
        found = words.read()
    os.waitpid(child, 0)
    return json.loads(found or "[]")


def _found_due(stages: Sequence[str]) -> list[str]:
    from dvc.repo import Repo
    from dvc.stage import Stage

    def is_due(stage: Stage) -> bool:
        # Not stage.changed(), which wants the lock that the run of DVC needs.
        changed = any(each.status() for each in (*stage.deps, *stage.outs))
        return changed or stage.changed_stage()

    with Repo() as repo:
        return [name for name in stages if any(map(is_due, repo.stage.collect(name)))]


def _keep(outputs: Sequence[str]) -> None:
    for output in filter(os.path.exists, outputs):
        _replace(Path(output), _KEPT / output, os.link)


def _forget_all_but(outputs: Sequence[str], folder: Path) -> None:
    """Remove what is kept in a folder, but for these outputs and what leads to them."""
    for path in folder.iterdir():
        name = path.relative_to(_KEPT).as_posix()
        if name in outputs:
            continue
        if any(each.startswith(f"{name}/") for each in outputs):
            _forget_all_but(outputs, path)
        elif path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


def _put_back(outputs: Sequence[str]) -> None:
    for output in outputs:
        if not os.path.exists(output) and (_KEPT / output).exists():
            # Copies: DVC's cache may hold the same files.
            _replace(_KEPT / output, Path(output), shutil.copy2)


def _replace(source: Path, target: Path, copy: Callable[[str, str], object]) -> None:
    """Copy a file or folder; half of it would pass for the whole, so it gets its name last."""
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f".{target.name}.partial-copy")
    _remove(part)
    try:
        if source.is_dir():
            shutil.copytree(source, part, symlinks=True, copy_function=copy)
        else:
            copy(str(source), str(part))
    except OSError:  # the disk is full, or another one that cannot be linked to
        _remove(part)
        raise
    _remove(target)
    part.rename(target)


def _remove(path: Path) -> None:
    shutil.rmtree(path, ignore_errors=True)  # it does nothing to a file
    path.unlink(missing_ok=True)
