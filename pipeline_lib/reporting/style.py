"""How the report looks: one sheet for phones and desktops, light and dark, screen and print."""

STYLE = """
:root {
  --paper: #fbfaf7; --card: #ffffff; --ink: #1f2023; --muted: #63656b; --line: #e2dfd8;
  --accent: #0a6b62; --miss: #a4432f;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #141517; --card: #1c1e21; --ink: #e9e7e2; --muted: #a3a4a8; --line: #34363a;
    --accent: #58c7ba; --miss: #e08a73;
  }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body {
  margin: 0 auto; padding: 2rem 1.15rem 5rem; max-width: 70rem; background: var(--paper);
  color: var(--ink); font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans",
  "Noto Sans CJK JP", "Helvetica Neue", Arial, sans-serif; font-variant-numeric: tabular-nums;
}
h1, h2 { font-family: Charter, "Bitstream Charter", "Iowan Old Style", Georgia, serif; }
h1 { font-size: clamp(1.45rem, 4.5vw, 2.2rem); line-height: 1.15; margin: 0 0 .5rem;
  font-weight: 600; }
h2 { font-size: 1.45rem; line-height: 1.25; margin: 4rem 0 .5rem; font-weight: 600; }
h3 { font-size: 1rem; margin: 0 0 .35rem; font-weight: 600; }
p { margin: 0 0 1rem; max-width: 44rem; }
a { color: var(--accent); }
code { font-size: .9em; overflow-wrap: anywhere;
  font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; }
.eyebrow, .note, figcaption, .legend { color: var(--muted); font-size: .875rem; }
.eyebrow { letter-spacing: .06em; text-transform: uppercase; margin-bottom: .4rem; }
.lead { color: var(--muted); }
nav { display: flex; flex-wrap: wrap; gap: .25rem 1.1rem; font-size: .9rem; margin: 1.5rem 0 0; }
nav a { text-decoration: none; padding: .25rem 0; }
nav a:hover, nav a:focus { text-decoration: underline; }

.verdicts { list-style: none; margin: 1.2rem 0 0; padding: 0; border-top: 1px solid var(--line); }
.verdicts li { display: grid; grid-template-columns: 7rem 5.5rem 1fr; gap: 0 1.2rem;
  align-items: baseline; padding: .7rem 0; border-bottom: 1px solid var(--line); }
.verdicts .score { font-size: 1.45rem; line-height: 1.2; color: var(--accent); font-weight: 600;
  text-align: right; }
.verdicts .language { font-weight: 600; }
.verdicts p { margin: 0; max-width: none; }
.verdicts strong code { font-size: 1em; }
@media (max-width: 40rem) {
  .verdicts li { grid-template-columns: 1fr auto; }
  .verdicts .claim { grid-column: 1 / -1; line-height: 1.4; }
  .verdicts .note { font-size: .8rem; }
  .verdicts .score { font-size: 1.25rem; }
}

.scroll { overflow: auto; max-height: 36rem; margin: 0 0 .4rem; border: 1px solid var(--line);
  border-radius: .5rem; background: var(--card); width: fit-content; max-width: 100%; }
table { border-collapse: separate; border-spacing: 0; width: 100%; font-size: .875rem;
  line-height: 1.35; }
th, td { padding: .42rem .7rem; text-align: left; white-space: nowrap; }
th { color: var(--muted); font-weight: 600; border-bottom: 1px solid var(--line); }
tbody tr + tr td { border-top: 1px solid var(--line); }
thead th { position: sticky; top: 0; z-index: 1; background: var(--card); }
th:first-child, td:first-child { position: sticky; left: 0; background: var(--card); }
thead th:first-child { z-index: 2; }
@media (max-width: 40rem) {
  td:first-child { white-space: normal; overflow-wrap: break-word; max-width: 10rem; }
}
.number { text-align: right; }
td.best { color: var(--accent); font-weight: 600; }
.title { margin: 1.6rem 0 .5rem; font-weight: 600; font-size: .95rem; }
.files { margin-bottom: 2rem; font-size: .8rem; color: var(--muted); }

.panels { display: grid; gap: 1rem; margin: 1.2rem 0; align-items: start;
  grid-template-columns: repeat(auto-fill, minmax(min(100%, 20rem), 1fr)); }
figure { margin: 0; padding: .9rem 1rem; background: var(--card); border: 1px solid var(--line);
  border-radius: .5rem; min-width: 0; }
figcaption { margin-bottom: .3rem; }
figcaption strong { color: var(--ink); }
svg { display: block; width: 100%; height: auto; max-width: 26rem; overflow: visible; }
svg text { font-size: 11px; fill: var(--muted); font-family: inherit; }
svg text.name { fill: var(--ink); }
svg text.best { fill: var(--accent); font-weight: 600; }
svg .grid { stroke: var(--line); stroke-width: 1; }
svg .mark { fill: var(--muted); stroke: var(--muted); }
svg .mark.best { fill: var(--accent); stroke: var(--accent); }
svg .interval { stroke: var(--muted); stroke-width: 2; stroke-linecap: round; opacity: .65; }
svg .interval.best { stroke: var(--accent); opacity: 1; }
svg .curve { fill: none; stroke: var(--accent); stroke-width: 1.75; stroke-linejoin: round; }
svg .curve.second { stroke: var(--muted); }
svg .dashed { stroke-dasharray: 5 3; } svg .dotted { stroke-dasharray: 1.5 3; }
svg .bar { fill: var(--accent); }
svg .box { fill: var(--card); stroke: var(--line); stroke-width: 1.2; }
svg .edge { fill: none; stroke: var(--muted); stroke-width: 1.1; opacity: .6; }
svg .edge.back { stroke-dasharray: 4 3; }
.graph { width: fit-content; max-width: 100%; }
.graph svg { width: 100%; max-width: 28rem; margin: .8rem auto 0; }

.query { padding: .9rem 1rem; background: var(--card); border: 1px solid var(--line);
  border-radius: .5rem; min-width: 0; }
.gallery { display: grid; gap: 1rem; margin: .6rem 0 2rem;
  grid-template-columns: repeat(auto-fill, minmax(min(100%, 26rem), 1fr)); }
.verdict { font-size: .8rem; font-weight: 600; letter-spacing: .04em; text-transform: uppercase; }
.verdict.right { color: var(--accent); } .verdict.wrong { color: var(--miss); }
blockquote { margin: .3rem 0 .7rem;
  font: 1.05rem/1.4 Charter, "Bitstream Charter", Georgia, serif; }
.shots { display: flex; flex-wrap: wrap; gap: .6rem; align-items: flex-start; }
.shot { margin: 0; padding: 0; border: 0; background: none; width: 9.2rem; }
.shot img { display: block; width: 100%; height: auto; border-radius: .35rem;
  border: 1px solid var(--line); background: var(--line); }
.shot.right img { outline: 3px solid var(--accent); outline-offset: 1px;
  border-color: transparent; }
.shot figcaption { margin: .35rem 0 0; font-size: .78rem; line-height: 1.3; }
.shot.right figcaption { color: var(--accent); font-weight: 600; }
.answer { display: flex; gap: .9rem; align-items: flex-start; }
.answer .shot { flex: none; width: 7.5rem; }
.answer ul { list-style: none; margin: 0; padding: 0; line-height: 1.4; }
.answer li { padding-bottom: .6rem; }
.answer .place { display: block; color: var(--muted); font-size: .78rem; }
.answer li.right .place { color: var(--accent); font-weight: 600; }
@media print { body { max-width: none; } figure, .query, tr { break-inside: avoid; } }
"""
