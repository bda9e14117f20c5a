"""What benchmarks.gpu has found so far, as a table and as JSON."""

import json
import sys
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path

from benchmarks.gpu_rows import PRODUCT, Row


@dataclass
class Report:
    """What has been found so far; it can be written at any moment.

    Attributes:
        out: File that it is written to, if any.
        about: The device and the software.
        began: When, by ``time.monotonic``.
        rows: Figures.
        memory: Peak MB on the device, of each figure.
        not_measured: What, and why.
        tests: The tests' command, exit status, seconds, summary, and their output if any failed.
        complete: Nothing is to come.
    """

    out: Path | None
    about: dict[str, object]
    began: float
    rows: list[Row] = field(default_factory=list)
    memory: list[float] = field(default_factory=list)
    not_measured: list[dict[str, str]] = field(default_factory=list)
    tests: dict[str, object] = field(default_factory=dict)
    complete: bool = False

    @property
    def seconds(self) -> float:
        """Since the beginning."""
        return time.monotonic() - self.began

    def add(self, row: Row, memory: float) -> None:
        """Take in a figure, and say it."""
        self.rows.append(row)
        self.memory.append(memory)
        say(f"{self.seconds:4.0f} s  {row.what} in {row.precision}: {row.rate:,.1f} {row.unit}")
        self.save()

    def leave_out(self, name: str, why: str) -> None:
        """Take in that something has no figure, and say it."""
        self.not_measured.append({"name": name, "why": why})
        say(f"{self.seconds:4.0f} s  {name}: not measured, {why}")
        self.save()

    def save(self) -> None:
        """Write the file, if one was asked for."""
        if self.out is None:
            return
        rows = [
            as_json(row, self.rows) | {"memory_mb": memory}
            for row, memory in zip(self.rows, self.memory, strict=True)
        ]
        content = {
            "about": self.about, "complete": self.complete, "seconds": round(self.seconds, 1),
            "tests": self.tests, "rows": rows, "not_measured": self.not_measured,
        }  # fmt: skip
        partial = self.out.with_name(f".{self.out.name}.partial")
        partial.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", "utf-8")
        partial.replace(self.out)

    def finish(self) -> int:
        """Print all, write the file, and return the exit status."""
        self.save()
        print(", ".join(f"{key} {value}" for key, value in self.about.items()))
        print(f"tests marked gpu: {self.tests.get('summary', 'not run')}\n")
        print(table(self.rows))
        for each in self.not_measured:
            print(f"not measured: {each['name']}: {each['why']}")
        print(f"{self.seconds:.0f} s", flush=True)
        return 1 if self.not_measured or self.tests.get("exit") != 0 else 0


def say(text: str) -> None:
    """Print at once, and apart from the results."""
    print(text, file=sys.stderr, flush=True)


def peaks(rows: Iterable[Row]) -> dict[tuple[str, str], float]:
    """Return the operations per second of each device and precision's matrix product."""
    return {(row.on, row.precision): row.speed for row in rows if row.what == PRODUCT}


def share(row: Row, rows: Iterable[Row]) -> float | None:
    """Return a figure's share of its device's peak; None where either was not counted."""
    peak = peaks(rows).get((row.on, row.precision))
    return row.speed / peak if peak and row.flops else None


def as_json(row: Row, rows: Iterable[Row]) -> dict[str, object]:
    """Return all of a figure, and what follows from it."""
    derived = {"rate": row.rate, "flop_per_s": row.speed, "share_of_peak": share(row, rows)}
    return asdict(row) | derived | {"seconds_for_all_items": row.seconds}


def table(rows: list[Row]) -> str:
    """Return the figures as lines: the rate, its lowest and highest round, speed and share."""
    lines = [
        f"{'':<36}{'on':<6}{'in':<7}{'rate':>11}{'lowest':>11}{'highest':>11} "
        f"{'unit':<12}{'TFLOP/s':>9}{'share':>7}{'all, s':>9}  note"
    ]
    for row in rows:
        part = share(row, rows)
        figures = (
            f"{row.speed / 1e12:9.2f}" if row.flops else " " * 9,
            f"{part:7.1%}" if part is not None else " " * 7,
            f"{row.seconds:9.2f}" if row.seconds is not None else " " * 9,
        )
        rates = "".join(f"{rate:11,.1f}" for rate in (row.rate, min(row.rates), max(row.rates)))
        lines.append(
            f"{row.what:<36}{row.on:<6}{row.precision:<7}{rates} {row.unit:<12}"
            f"{''.join(figures)}  {row.note}".rstrip()
        )
    return "\n".join(lines)
