"""Draw the pictures of the documentation: ``python docs/picture.py``.

docs/report.svg, also in README, has the charts of the first two languages and the first query of
each kind as they stand in world's ``data/report/index.html``. docs/plots.svg is the first two plots
of ``dvc_plots/index.html``. Run it after ``dvc repro`` and ``dvc plots show``.
"""

import json
import re
import textwrap
from html import escape, unescape
from pathlib import Path

import vl_convert

REPORT, PLOTS = Path("data/report/index.html"), Path("dvc_plots/index.html")
WIDTH, HEIGHT, MARGIN, COLUMN = 860, 730, 30, 400
STYLE = """
svg { font-family: system-ui, "Segoe UI", Roboto, Arial, sans-serif; }
.paper { fill: #fbfaf7; stroke: #e2dfd8; } .title { font: 600 25px Georgia, serif; fill: #1f2023; }
.note { font-size: 12px; fill: #63656b; } .said { font: 15px Georgia, serif; fill: #1f2023; }
.verdict { font-size: 12px; font-weight: 600; fill: #0a6b62; } .wrong { fill: #a4432f; }
.chart text { font-size: 11px; fill: #63656b; } .chart text.name { fill: #1f2023; }
.chart text.best { fill: #0a6b62; font-weight: 600; } .grid { stroke: #e2dfd8; }
.interval { stroke: #63656b; stroke-width: 2; opacity: .65; } .mark { fill: #63656b; }
.interval.best { stroke: #0a6b62; opacity: 1; } .mark.best { fill: #0a6b62; }
"""


def text(x: int, y: int, words: str, kind: str) -> str:
    """Return one line of text."""
    return f'<text x="{x}" y="{y}" class="{kind}">{escape(words)}</text>'


def chart(html: str, x: int, y: int) -> str:
    """Return a chart of the page with its title above."""
    title, view, inside = re.search(
        r'<svg viewBox="([^"]*)"[^>]*aria-label="([^"]*)"[^>]*>(.*?)</svg>', html, re.DOTALL
    ).group(2, 1, 3)
    height = float(view.split()[3]) * (COLUMN - MARGIN) / 320
    return text(x, y, unescape(title), "note") + (
        f'<svg class="chart" x="{x}" y="{y + 10}" width="{COLUMN - MARGIN}" height="{height:.0f}" '
        f'viewBox="{view}">{inside}</svg>'
    )


def query(html: str, x: int, y: int) -> str:
    """Return a caption of the page, with the two pictures that were found for it."""
    said = unescape(re.search(r"<blockquote[^>]*>(.*?)</blockquote>", html, re.DOTALL).group(1))
    verdict = re.search(r'class="verdict (\w+)">([^<]*)<', html)
    shots = re.findall(r'<img src="([^"]*)".*?<figcaption>([^<]*)<', html, re.DOTALL)
    kind = "verdict wrong" if verdict.group(1) == "wrong" else "verdict"
    lines = textwrap.wrap(said, 44)
    parts = [text(x, y, verdict.group(2).upper(), kind)]
    parts += [text(x, y + 22 + 20 * i, line, "said") for i, line in enumerate(lines)]
    for place, (source, caption) in enumerate(shots[:2]):
        left, top = x + 180 * place, y + 62
        size = f'x="{left}" y="{top}" width="165" height="124" preserveAspectRatio="xMinYMid"'
        parts.append(f'<image {size} href="{source}"/>')
        parts.append(text(left, top + 142, unescape(caption), "note"))
    return "".join(parts)


def picture(page: str) -> str:
    """Return the picture of a report's page as SVG."""
    title = unescape(re.search(r"<h1>(.*?)</h1>", page, re.DOTALL).group(1))
    lead = unescape(re.sub("<[^>]*>", "", re.search(r'class="lead">(.*?)</p>', page).group(1)))
    leads = enumerate(textwrap.wrap(lead, 125))
    charts = page[page.index('<section id="scores"') :].split("<figure>")[1:3]
    queries = page[page.index('<section id="gallery"') :].split('<div class="query">')[1:3]
    right = MARGIN + COLUMN
    parts = [
        f'<rect class="paper" x=".5" y=".5" width="{WIDTH - 1}" height="{HEIGHT - 1}" rx="8"/>',
        text(MARGIN, 48, title, "title"),
        *(text(MARGIN, 72 + 17 * i, line, "note") for i, line in leads),
        *(chart(html, x, 125) for html, x in zip(charts, (MARGIN, right), strict=True)),
        *(query(html, x, 505) for html, x in zip(queries, (MARGIN, right), strict=True)),
    ]
    head = f'viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="Part of a report"'
    inside = "\n".join([f"<style>{STYLE}</style>", *parts])
    return f'<svg xmlns="http://www.w3.org/2000/svg" {head}>\n{inside}\n</svg>\n'


def plots(page: str) -> str:
    """Return the first two plots of DVC's page as SVG, side by side."""
    specifications = [json.loads(each) for each in re.findall(r"var spec = (\{.*\});\n", page)]
    beside = {"hconcat": specifications[:2], "resolve": {"scale": {"color": "independent"}}}
    return vl_convert.vegalite_to_svg(beside)


if __name__ == "__main__":
    for draw, source, target in ((picture, REPORT, "report"), (plots, PLOTS, "plots")):
        drawn = draw(source.read_text(encoding="utf-8"))
        Path(f"docs/{target}.svg").write_text(drawn, encoding="utf-8")
