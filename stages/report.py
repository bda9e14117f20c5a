"""Write the report of a study: one HTML page, and its tables as Markdown and LaTeX."""

from pathlib import Path

import click

from pipeline_lib.publishing import publish
from pipeline_lib.reporting.report import report_page, report_tables
from pipeline_lib.reporting.results import read_results, read_shown
from pipeline_lib.reporting.tables import FILES
from pipeline_lib.settings.study import PARAMS, load_settings


@click.command(help=__doc__)
def main() -> None:
    """Write data/report/index.html and metrics/tables."""
    results = read_results(load_settings(), PARAMS, Path("dvc.yaml"))
    page = report_page(results, read_shown(results))
    with publish(Path("data/report")) as folder:
        folder.mkdir()
        (folder / "index.html").write_text(page, encoding="utf-8")
    with publish(Path("metrics/tables")) as folder:
        folder.mkdir()
        for table in report_tables(results):
            for ending, form in FILES.items():
                (folder / f"{table.name}.{ending}").write_text(form(table), encoding="utf-8")


if __name__ == "__main__":
    main()
