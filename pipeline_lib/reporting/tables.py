"""One table of a report in three forms: HTML, Markdown and LaTeX."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from pipeline_lib.reporting.markup import block, element
from pipeline_lib.reporting.summary import table_line


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


def html_table(table: Table) -> Element:
    """Return the table in a box of its own, which scrolls where the page is narrow."""
    head = [_cell("th", table, None, column, cell) for column, cell in enumerate(table.header)]
    rows = [
        element("tr", {}, [_cell("td", table, row, column, c) for column, c in enumerate(cells)])
        for row, cells in enumerate(table.rows)
    ]
    parts = [element("thead", {}, [element("tr", {}, head)]), element("tbody", {}, rows)]
    box = block("scroll", element("table", {}, parts))
    # A box that scrolls must be within reach of the keyboard.
    box.attrib |= {"tabindex": "0", "role": "region", "aria-label": table.title}
    return box


def markdown_table(table: Table) -> str:
    """Return the table as Markdown; what stands out is bold."""
    numbers = len(table.header) - table.labels
    lines = [table.header, ["---"] * table.labels + ["---:"] * numbers]
    lines += _marked(table, lambda cell: cell.replace("|", "\\|"), "**{}**")
    return "\n".join(table_line(list(line)) for line in lines) + "\n"


def latex_table(table: Table) -> str:
    """Return the table as LaTeX, for the package booktabs; what stands out is bold."""
    columns = "l" * table.labels + "r" * (len(table.header) - table.labels)
    rows = _marked(table, _latex, r"\textbf{{{}}}")
    lines = [f"% {table.title}", rf"\begin{{tabular}}{{{columns}}}", r"\toprule"]
    lines += [_latex_line(map(_latex, table.header)), r"\midrule", *map(_latex_line, rows)]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n"


FILES: dict[str, Callable[[Table], str]] = {"md": markdown_table, "tex": latex_table}
"""What a table is exported as, by file ending."""

_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "→": r"$\rightarrow$", "±": r"$\pm$", "–": "--", "−": "$-$", "β": r"$\beta$",
    "≤": r"$\leq$", "≥": r"$\geq$", "\N{NO-BREAK SPACE}": "~",
}  # fmt: skip


def _cell(tag: str, table: Table, row: int | None, column: int, text: str) -> Element:
    kind = "text" if column < table.labels else "number"
    return element(tag, {"class": kind + " best" * ((row, column) in table.best)}, [text])


def _marked(table: Table, escape: Callable[[str], str], strong: str) -> Iterator[list[str]]:
    for row, cells in enumerate(table.rows):
        yield [
            (strong if (row, column) in table.best else "{}").format(escape(cell))
            for column, cell in enumerate(cells)
        ]


def _latex(text: str) -> str:
    return "".join(_LATEX.get(letter, letter) for letter in text)


def _latex_line(cells: Iterable[str]) -> str:
    return " & ".join(cells) + r" \\"
