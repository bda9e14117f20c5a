"""One table of cells as they are read, and how it is written as Markdown and LaTeX."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import pandas as pd

NOTHING = "–"
"""What stands where there is no number."""


@dataclass(frozen=True)
class Table:
    """Cells as they are read.

    Attributes:
        name: Of its files.
        title: What it shows, in a sentence.
        header: Names of its columns.
        rows: As many cells each.
        labels: So many columns on the left are text; the others are numbers, set flush right.
        best: Cells that stand out, (row, column).
    """

    name: str
    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    labels: int
    best: frozenset[tuple[int, int]] = frozenset()


def number(value: float | None, form: str = ",.1f") -> str:
    """Return a number in a format, or a dash if there is none."""
    return NOTHING if pd.isna(value) else f"{value:{form}}"


def mean_cell(mean: float, deviation: float, form: str = ".1f") -> str:
    """Return a mean over seeds, with its deviation if that is a number."""
    return number(mean, form) + ("" if pd.isna(deviation) else f" ± {deviation:{form}}")


def markdown_table(table: Table) -> str:
    """Return the table as Markdown under its title; what stands out is bold."""
    numbers = len(table.header) - table.labels
    lines = [[*map(_markdown, table.header)], ["---"] * table.labels + ["---:"] * numbers]
    lines += _marked(table, _markdown, "**{}**")
    rows = "".join(f"| {' | '.join(line)} |\n" for line in lines)
    return f"**{_in_one_line(table.title)}**\n\n{rows}"


def latex_table(table: Table) -> str:
    """Return the table as LaTeX, for the package booktabs; what stands out is bold."""
    columns = "l" * table.labels + "r" * (len(table.header) - table.labels)
    rows = _marked(table, _latex, r"\textbf{{{}}}")
    lines = [f"% {_in_one_line(table.title)}", rf"\begin{{tabular}}{{{columns}}}", r"\toprule"]
    lines += [_latex_line(map(_latex, table.header)), r"\midrule", *map(_latex_line, rows)]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n"


FILES: dict[str, Callable[[Table], str]] = {"md": markdown_table, "tex": latex_table}
"""What a table is exported as, by file ending."""

_LATEX = str.maketrans({
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "→": r"$\rightarrow$", "±": r"$\pm$", "–": "--", "−": "$-$", "β": r"$\beta$",
    "≤": r"$\leq$", "≥": r"$\geq$", "<": "$<$", ">": "$>$", "\N{NO-BREAK SPACE}": "~",
})  # fmt: skip


def _in_one_line(title: str) -> str:
    """Return a title, which may be a question with paragraphs of its own, without line breaks."""
    return " ".join(title.split())


def _markdown(cell: str) -> str:
    return cell.replace("|", "\\|")


def _marked(table: Table, escape: Callable[[str], str], strong: str) -> Iterator[list[str]]:
    for row, cells in enumerate(table.rows):
        yield [
            (strong if (row, column) in table.best else "{}").format(escape(cell))
            for column, cell in enumerate(cells)
        ]


def _latex(text: str) -> str:
    return text.translate(_LATEX)


def _latex_line(cells: Iterable[str]) -> str:
    return " & ".join(cells) + r" \\"
