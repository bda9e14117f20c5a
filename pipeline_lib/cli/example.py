"""What ``--help`` of each command ends with: an example, and what the exit codes mean."""

from pipeline_lib.running.edge import FAULT, MISTAKE


def example(line: str, done: str = "done") -> str:
    """Return the end of a command's help; ``done`` is what exit code 0 means."""
    codes = f"0 {done}, {MISTAKE} a mistake that you can fix, {FAULT} a bug in Polyview"
    return f"\b\nExample:\n  {line}\n\nExit codes: {codes}."
