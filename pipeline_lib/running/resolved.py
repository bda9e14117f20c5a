"""Whether ``data/resolved`` still says what the code does, and what the settings are."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from pipeline_lib.contract.problems import ContractError
from pipeline_lib.running.edits import RESOLVED, Times, changed, remember, sources

_AGAIN = "Nothing is recorded of it. Run dvc repro again"


def check_is_current(texts: Mapping[str, str], asked: Sequence[str], read: Times) -> None:
    """Refuse if files of data/resolved would be others by now; if none would, remember that.

    Args:
        texts: What each file of data/resolved would be, by its path within it.
        asked: Paths of those files that count.
        read: The times of the sources before they were read.

    Raises:
        ContractError: Says what has another meaning now.
    """
    written = {name: Path(RESOLVED, name) for name in texts}
    edited = [name for name, path in written.items() if _text(path) != texts[name]]
    if not edited:
        remember(read)
    problems = [
        f"  - {RESOLVED}{name}: {_difference(_text(written[name]), texts[name])}"
        for name in edited
        if f"{RESOLVED}{name}" in asked
    ]
    if problems:
        listed = "\n".join(problems)
        raise ContractError(
            f"code or parameters were edited since this run of DVC began:\n{listed}\n{_AGAIN}. "
            "If that says the same, run dvc repro -f -s resolve before."
        )


def check_unedited(read: Times) -> None:
    """Refuse if code or parameters were edited while they were read.

    Raises:
        ContractError: Names the files.
    """
    if files := changed(read, sources()):
        names = ", ".join(Path(file).name for file in files[:3])
        raise ContractError(f"{names}: edited while it was read. {_AGAIN}.")


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def _difference(then: str, now: str) -> str:
    """Return what is new in a text; of code, which modules do something else."""
    old, new = (text.splitlines() for text in (then, now))
    lines = [line for line in new if line not in {*old}] or [
        f"without {line.strip()}" for line in old if line not in {*new}
    ]
    return ", ".join(line.split("  ")[-1].strip().rstrip(",") for line in lines[:3]) or "its order"
