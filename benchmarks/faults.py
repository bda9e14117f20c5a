"""Kill ``dvc repro`` many times, as a whole and at random moments, and count what is lost.

``python -m benchmarks.faults`` clones this checkout into a temporary folder, shrinks its study to
60 images and two recipes, and runs it once undisturbed. Then it runs it again and again from
nothing, each time killed (SIGKILL to DVC and all its processes) until it ends: inside each long
stage, between stages, while dvc.lock is written, and anywhere. After a kill it does what
docs/start.md says, "After a kill". The logs are the evidence (benchmarks.evidence). It exits with 1
if a stage that DVC had recorded ran again, if more than one interval of updates was lost, or if a
round did not end with the bytes of the undisturbed run.
"""

import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from shutil import rmtree

import click
from ruamel.yaml import YAML, YAMLError

from benchmarks.bad_inputs import table as bad_inputs_table
from benchmarks.bad_inputs import try_all
from benchmarks.evidence import Evidence, bars_in, stages_in
from pipeline_lib.running.publishing import file_sha256
from pipeline_lib.synthesis.translate import CHUNK

RECOVERY = (
    "grep -q \"^schema: '2.0'\" dvc.lock || cp -p .resume/dvc.lock dvc.lock; rm -f .dvc/tmp/rwlock"
)
"""docs/start.md, "After a kill": what to do where DVC cannot read its own files."""

UNREADABLE = re.compile(r"dvc\.lock|RWLock-file")
CHECKOUT = Path(__file__).resolve().parent.parent
RESULTS = "metrics", "data/models", "data/translators", "data/features"
RECIPES = "kadar_en", "mlmme_machine"
"""The second one reads translations, for which there is a translator."""

UPDATES_BETWEEN_VALIDATIONS = 10
LONG = ("features", "train_translator", "translate", "train")


def small_world(params: dict) -> dict:
    """Return the study's parameters with few images and recipes, and frequent validations."""
    rows = {name: params["recipes"][name] for name in RECIPES}
    every = {"validate_every_updates": UPDATES_BETWEEN_VALIDATIONS}
    sizes = {"images": {"train": 40, "val": 10, "test": 10}, "graded_pairs": 12}
    sizes["parallel"] = {"train": 400, "val": 20, "test": 20}
    first = {section: dict([next(iter(params[section].items()))]) for section in _FIRST_ONLY}
    pairs = {row["pairs"] for row in rows.values()}
    evaluations = {**params["evaluations"]}
    evaluations["word_translation"] = {**evaluations["word_translation"], "lexicon": "none"}
    return {
        **params,
        **first,
        **{section: {} for section in _WITHOUT},
        "worlds": {"world": {**params["worlds"]["world"], **sizes}},
        "datasets": {name: params["datasets"][name] for name in ("world", "world_parallel")},
        "pairs": {name: params["pairs"][name] for name in sorted(pairs)},
        "extractors": {name: {**row, "batch_size": 4} for name, row in first["extractors"].items()},
        "translators": {
            name: {**row, **every, "max_updates": 50, "subwords": 200}
            for name, row in first["translators"].items()
        },
        "evaluations": evaluations,
        "comparisons": {},
        "claims": {},
        "recipes": {
            "kadar_en": {**rows["kadar_en"], **every, "max_epochs": 8, "seeds": [1, 2]},
            "mlmme_machine": {**rows["mlmme_machine"], **every, "max_epochs": 12},
        },
    }


_FIRST_ONLY = "extractors", "translators", "translations"
_WITHOUT = "pseudopairs", "word_vectors", "lexicons", "rerankings", "translated_queries"


def intervals(params: dict) -> dict[str, int]:
    """Return the steps of each long stage between two points from which it goes on."""
    return {
        **{f"features@{name}": row["batch_size"] for name, row in params["extractors"].items()},
        **{f"translate@{name}": CHUNK for name in params["translations"]},
        **{
            f"train_translator@{name}": UPDATES_BETWEEN_VALIDATIONS
            for name in params["translators"]
        },
        **{f"train@{name}": UPDATES_BETWEEN_VALIDATIONS for name in params["recipes"]},
    }


class Project:
    """A clone of the checkout with the small study, its own DVC cache and nothing done yet."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.log = folder, folder / "faults.log"
        self.lock = folder / "dvc.lock"
        _run(["git", "clone", "--quiet", str(CHECKOUT), str(folder)], CHECKOUT)
        rmtree(folder / "metrics")
        path = folder / "params.yaml"
        self.params = small_world(YAML(typ="safe").load(path))
        YAML().dump(self.params, path)

    def start(self) -> subprocess.Popen:
        """Start ``dvc repro`` in a process group of its own; all that it prints goes to the log."""
        binaries = Path(sys.executable).parent
        environment = os.environ | {
            "PATH": f"{binaries}:{os.environ['PATH']}",
            "DVC_SITE_CACHE_DIR": f"{self.folder}/.dvc/site",
            "TQDM_MININTERVAL": "0",
        }
        with open(self.log, "wb") as log:
            return subprocess.Popen(
                [binaries / "dvc", "repro"],
                cwd=self.folder, env=environment, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip

    def printed(self) -> str:
        """Return what the last run has printed so far."""
        return self.log.read_text(encoding="utf-8", errors="replace")

    def locked(self) -> dict[str, dict] | None:
        """Return the entries of dvc.lock, or None if it is cut off."""
        try:
            content = YAML(typ="safe").load(self.lock) or {}
        except YAMLError:
            return None
        return content["stages"] if "schema" in content else None

    def results(self) -> dict[str, str]:
        """Return the digest of each file of metrics, weights and features."""
        files = (f for part in RESULTS for f in (self.folder / part).rglob("*") if f.is_file())
        return {str(file.relative_to(self.folder)): file_sha256(file) for file in files}


class View:
    """What can be seen of a run from outside: the stage it runs, how many ended, its lock."""

    def __init__(self, project: Project, process: subprocess.Popen) -> None:
        self.project, self.process = project, process
        self.stage, self.stage_began, self.steps, self.running = "", 0.0, 0, False
        self.ends: list[float] = []
        self.writes: list[float] = []
        self.began = self.now = time.monotonic()
        self._written, self._read = project.lock.stat().st_mtime_ns, 0

    def look(self) -> None:
        """Look again."""
        self.now = time.monotonic()
        size = self.project.log.stat().st_size
        if size != self._read:
            self._read = size
            self._look_at_log()
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        running = bool(children.exists() and children.read_text())
        if self.running and not running:
            self.ends.append(self.now)
        self.running = running
        written = self.project.lock.stat().st_mtime_ns
        if written != self._written:
            self._written = written
            self.writes.append(self.now)

    def _look_at_log(self) -> None:
        for stage, ran, printed in [*stages_in(self.project.printed())][-1:]:
            if ran and stage != self.stage:
                self.stage, self.stage_began = stage, self.now
            self.steps = sum(last - first for first, last in bars_in(printed).values())


Moment = Callable[[View], bool]
"""Whether the moment to kill has come."""


def draw_moment(chance: random.Random, kind: str, seconds: dict[str, float]) -> Moment:
    """Draw a moment of a kind; ``seconds`` says how long each stage takes."""
    number, share = chance.randint(1, 2), chance.random()
    return partial(MOMENTS[kind], number=number, share=share, seconds=seconds)


def _inside(view: View, number: int, share: float, seconds: dict[str, float]) -> bool:
    if view.stage.partition("@")[0] not in LONG:
        return False
    # Within two intervals of work; a stage that has no more left may be killed at any time.
    far = view.steps > share * 2 * intervals(view.project.params)[view.stage]
    return far or view.now > view.stage_began + share * seconds[view.stage]


def _after(times: list[float], view: View, number: int, delay: float) -> bool:
    return len(times) >= number and view.now > times[number - 1] + delay


MOMENTS: dict[str, Callable[..., bool]] = {
    "inside": _inside,
    "between": lambda view, number, share, seconds: _after(view.ends, view, number, 0.5 * share),
    "writing": lambda view, number, share, seconds: _after(view.writes, view, number, 0.15 * share),
    "anywhere": lambda view, number, share, seconds: view.now > view.began + 20 * share,
}


@dataclass
class Tally:
    """What the campaign counts over all of its rounds.

    Attributes:
        kills: How many, by what they interrupted.
        recoveries: Runs that could not read DVC's files and needed :data:`RECOVERY`.
        evidence: Of each round.
        unrecorded: Kills after a stage had ended, before DVC had recorded it.
        different: Rounds that ended with other bytes, or that DVC would not leave as they are.
    """

    kills: Counter[str] = field(default_factory=Counter)
    recoveries: int = 0
    unrecorded: int = 0
    evidence: list[Evidence] = field(default_factory=list)
    different: int = 0


class Round:
    """One project from nothing to its end, killed on the way."""

    def __init__(self, project: Project, tally: Tally) -> None:
        self.project, self.tally, self.place, self.recovered = project, tally, "", False
        self.evidence = Evidence(intervals(project.params))
        tally.evidence.append(self.evidence)

    def attempt(self, moment: Moment) -> bool:
        """Run ``dvc repro`` until the moment comes; return whether it ended by itself."""
        before = self.project.locked() or {}
        view, killed = _run_until(moment, self.project)
        after = self.project.locked()
        recorded = {stage for stage, entry in (after or {}).items() if before.get(stage) != entry}
        log = self.project.printed()
        self.evidence.add(log, recorded if before else set())
        if killed:
            self.place, self.recovered = _place(view, after is not None), False
            self.tally.kills[self.place] += 1
            ended = view.ends[-1:] > [view.stage_began]
            self.tally.unrecorded += ended and view.stage not in self.evidence.finished
        elif view.process.returncode:
            self._recover(log)
        return not killed and view.process.returncode == 0

    def _recover(self, log: str) -> None:
        if self.recovered or not UNREADABLE.search(log):
            raise click.ClickException(f"dvc repro failed, unkilled:\n{log[-2000:]}")
        _run(["bash", "-c", RECOVERY], self.project.folder)
        self.tally.recoveries, self.recovered = self.tally.recoveries + 1, True


def _run_until(moment: Moment, project: Project) -> tuple[View, bool]:
    """Run DVC until it ends or the moment comes; return what was seen and whether it was killed."""
    process = project.start()
    view = View(project, process)
    while process.poll() is None and not moment(view):
        time.sleep(0.001)
        view.look()
    killed = process.poll() is None
    if killed:
        _kill_group(process)
    return view, killed


def _place(view: View, lock_is_whole: bool) -> str:
    if not lock_is_whole:
        return "while dvc.lock was written (it was cut off)"
    if not view.running:
        return "between stages"
    return f"inside {view.stage if view.stage.partition('@')[0] in LONG else 'a short stage'}"


def _kill_group(process: subprocess.Popen) -> None:
    """Kill DVC and all that it started."""
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    time.sleep(0.2)  # for its children to end; nobody can wait for them


def _run(command: list[str], folder: Path) -> None:
    subprocess.run(command, cwd=folder, check=True)


def undisturbed(project: Project) -> dict[str, float]:
    """Run a project without a kill; return how many seconds each stage took."""
    process = project.start()
    view, began = View(project, process), {}
    while process.poll() is None:
        view.look()
        began.setdefault(view.stage, view.now)
        time.sleep(0.01)
    if process.returncode:
        raise click.ClickException(f"the undisturbed run failed:\n{project.printed()[-2000:]}")
    ends = [*list(began.values())[1:], view.now]
    return {stage: end - start for (stage, start), end in zip(began.items(), ends, strict=True)}


def campaign(folder: Path, kills: int, seed: int) -> Tally:
    """Kill a project until it ends, and another one, until there were enough kills."""
    tally, chance = Tally(), random.Random(seed)
    reference = Project(folder / "reference")
    seconds = undisturbed(reference)
    click.echo(f"undisturbed: {len(seconds)} stages in {sum(seconds.values()):.0f} s")
    while tally.kills.total() < kills:
        project = Project(folder / "killed")
        _run_round(Round(project, tally), kills, chance, seconds)
        if project.results() != reference.results() or not _is_at_rest(project):
            tally.different += 1
        rmtree(project.folder)
    return tally


def _run_round(each: Round, kills: int, chance: random.Random, seconds: dict[str, float]) -> None:
    tally, ended = each.tally, False
    kinds = ["inside", "between", "inside", "writing", "inside", "anywhere"]
    while not ended:
        done = tally.kills.total()
        moment = draw_moment(chance, kinds[done % len(kinds)], seconds)
        ended = each.attempt(moment if done < kills else lambda view: False)
        if tally.kills.total() > done:
            click.echo(f"round {len(tally.evidence)}, kill {done + 1}: {each.place}")


def _is_at_rest(project: Project) -> bool:
    project.start().wait()
    return not any(ran for _, ran, _ in stages_in(project.printed()))


def table(tally: Tally) -> tuple[str, bool]:
    """Return the campaign's table, and whether every promise was kept."""
    lost = [steps for each in tally.evidence for steps in each.lost]
    again = [stage for each in tally.evidence for stage in each.ran_again]
    beyond = sum(each.lost_beyond for each in tally.evidence)
    rows = [
        ("kills", tally.kills.total()),
        *((f"  {place}", count) for place, count in sorted(tally.kills.items())),
        ("  of them after a stage had ended, before DVC recorded it", tally.unrecorded),
        ("runs that needed the recovery", tally.recoveries),
        ("bars that went on after a kill", len(lost)),
        ("most steps that one of them had lost", max(lost, default=0)),
        ("finished stages that ran again (0)", " ".join([str(len(again)), *again])),
        ("steps lost beyond one interval (0)", beyond),
        ("rounds from nothing to the end", len(tally.evidence)),
        ("rounds with other bytes than the undisturbed run (0)", tally.different),
    ]
    text = "\n".join(f"{name:<60}{value}" for name, value in rows)
    return text, not (again or beyond or tally.different)


def _bad_inputs(minutes: float, groups: tuple[str, ...]) -> int:
    from benchmarks.bad_cases import all_cases

    found = try_all(case for case in all_cases(minutes) if case.group.startswith(groups or ("",)))
    click.echo(f"{bad_inputs_table(found)}\n\nmost memory: {found.memory / 2**30:.2f} GiB")
    click.echo("\n".join(found.wrong))
    return 1 if found.wrong else 0


@click.command(help=__doc__)
@click.option("--kills", default=100, help="How many; then the last round runs to its end.")
@click.option("--seed", default=1, help="Of the moments.")
@click.option("--inputs", is_flag=True, help="Bad inputs instead of kills (benchmarks.bad_inputs).")
@click.option("--minutes", default=0.05, help="Of mutated files of each form, with --inputs.")
@click.option("--group", "groups", multiple=True, help="Only these rows, with --inputs.")
def main(kills: int, seed: int, inputs: bool, minutes: float, groups: tuple[str, ...]) -> None:
    """Run the campaign and print what it cost."""
    began = time.monotonic()
    if inputs:
        sys.exit(_bad_inputs(minutes, groups))
    with tempfile.TemporaryDirectory() as folder:
        text, kept = table(campaign(Path(folder), kills, seed))
    click.echo(f"{text}\n{'minutes':<60}{(time.monotonic() - began) / 60:.1f}")
    sys.exit(0 if kept else 1)


if __name__ == "__main__":
    main()
