"""Write the results of a study: frames as CSV, tables as Markdown and LaTeX, and one HTML page."""

import json
from pathlib import Path

import click

from pipeline_lib.contract.reports import DECIMALS, rounded_p
from pipeline_lib.reporting.page.gallery import galleries
from pipeline_lib.reporting.page.page import report_page
from pipeline_lib.reporting.results import read_results
from pipeline_lib.reporting.summary import headline
from pipeline_lib.reporting.table import FILES
from pipeline_lib.running.edge import EdgeCommand
from pipeline_lib.running.publishing import publish
from pipeline_lib.settings.loading import load_settings


@click.command(cls=EdgeCommand, help=__doc__)
def main() -> None:
    """Write metrics/results/*.csv, summary.json and tables/, and data/report/index.html."""
    results = read_results(load_settings())
    page = report_page(results, galleries(results))
    with publish(Path("data/report")) as folder:
        folder.mkdir()
        (folder / "index.html").write_text(page, encoding="utf-8")
    with publish(Path("metrics/results")) as folder:
        (folder / "tables").mkdir(parents=True)
        text = json.dumps(headline(results.summary), indent=1) + "\n"
        (folder / "summary.json").write_text(text, encoding="utf-8")
        for name, frame in results.frames.items():
            tests = {key: frame[key].map(rounded_p) for key in ("p", "holm") if key in frame}
            written = frame.round(DECIMALS).assign(**tests)
            written.to_csv(folder / f"{name}.csv", index=False)
        for table in results.tables.values():
            for ending, form in FILES.items():
                (folder / f"tables/{table.name}.{ending}").write_text(form(table), encoding="utf-8")


if __name__ == "__main__":
    main()
