"""Small charts as SVG, drawn at the size they are read at; colours come from the page's style."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

WIDTH = 320
"""Width of a chart in pixels: a phone's, less its margins, so that text is never scaled down."""

# What is put into these is escaped.
_SVG = Markup('<svg viewBox="0 0 {:g} {:g}" role="img" aria-label="{}">{}</svg>')
_NAMED_CURVE = Markup('<g class="line" data-curve="{0}"><title>{0}</title>{1}</g>')
_LINE = Markup('<line x1="{:.5g}" y1="{:.5g}" x2="{:.5g}" y2="{:.5g}" class="{}"/>')
_TEXT = Markup('<text x="{:.5g}" y="{:.5g}" text-anchor="{}" class="{}">{}</text>')
_BAR = Markup('<rect x="{:.5g}" y="{:.5g}" width="{:.5g}" height="13" class="bar"/>')
_DOT = Markup('<circle cx="{:.5g}" cy="{:.5g}" r="{:g}" class="mark{}">{}</circle>')
_RING = Markup('<circle cx="{:.5g}" cy="{:.5g}" r="{:g}" class="curve {}"/>')
_CURVE = Markup('<polyline points="{}" class="curve {}"/>')

_WIDE, _TALL, _WIDE_LEFT = 760, 300, 56
"""Of a chart as wide as the page, whose text the page's style enlarges on a phone."""

_ROW = 34
_LEFT = 34
_MARK = 4


@dataclass(frozen=True)
class Estimate:
    """A value with its confidence interval; ``best`` marks the one that a reader looks for."""

    name: str
    value: float
    low: float
    high: float
    best: bool


@dataclass(frozen=True)
class Curve:
    """A line with a name and a class of the page's style; NaN is passed over."""

    name: str
    kind: str
    x: Sequence[float]
    y: Sequence[float]


@dataclass(frozen=True)
class Scale:
    """A linear map from numbers to pixels."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """Return the place of a value in pixels."""
        share = (value - self.low) / ((self.high - self.low) or 1)
        return self.start + share * (self.end - self.start)


def round_ticks(low: float, high: float, about: int) -> list[float]:
    """Return about so many round numbers that enclose ``low`` and ``high``, evenly spaced.

    Steps are 1, 2, 2.5 or 5 times a power of ten.
    """
    span = (high - low) or abs(high) or 1.0
    power = 10.0 ** np.floor(np.log10(span / about))
    step = next(power * times for times in (1, 2, 2.5, 5, 10) if span / (power * times) <= about)
    first, last = np.floor(low / step), np.ceil(high / step)
    return [float(round(step * number, 10)) for number in np.arange(first, last + 1)]


def interval_chart(label: str, rows: Sequence[Estimate], low: float, high: float) -> Markup:
    """Draw one dot and its interval per row, under its name.

    Args:
        label: What the chart shows, for those who cannot see it.
        rows: From top to bottom.
        low: Least value of the axis, so that several charts can share one.
        high: Its greatest value.
    """
    ticks = round_ticks(low, high, 4)
    x = Scale(ticks[0], ticks[-1], _MARK, WIDTH - _MARK)
    bottom = _ROW * len(rows) + 6
    drawn = [line(x(tick), 0, x(tick), bottom) for tick in ticks]
    for number, row in enumerate(rows):
        drawn += _interval_row(row, x, _ROW * number + 14)
    return picture(label, bottom + 18, [*drawn, *_tick_labels(ticks, x, bottom + 14)])


def line_chart(
    label: str,
    series: Sequence[tuple[str, Sequence[float], Sequence[float]]],
    y_ticks: Sequence[float],
    height: int,
    marks: Sequence[tuple[float, float]] = (),
) -> Markup:
    """Draw curves over one axis.

    Args:
        label: What the chart shows, for those who cannot see it.
        series: Of each curve its class in the page's style, its x and its y; NaN is passed over.
        y_ticks: Numbers along the y axis; the first and the last are its ends.
        height: Of the plot in pixels, without the numbers below.
        marks: Points (x, y) that stand out.
    """
    last = max(max(xs) for _, xs, _ in series)
    x = Scale(0, last, _LEFT, WIDTH - _MARK)
    y = Scale(y_ticks[0], y_ticks[-1], height, 6)
    drawn = _y_axis(y_ticks, y, _LEFT, WIDTH - _MARK)
    drawn += [_curve(name, xs, ys, x, y) for name, xs, ys in series]
    drawn += [_dot(x(at), y(value), " best") for at, value in marks]
    ends = [(0.0, "start"), (last, "end")]
    drawn += [text(x(at), height + 15, f"{at:,.0f}", anchor=anchor) for at, anchor in ends]
    return picture(label, height + 20, drawn)


def curves_chart(
    label: str, curves: Sequence[Curve], y_ticks: Sequence[float], rings: bool = False
) -> Markup:
    """Draw many curves from 0 over one axis, as wide as the page.

    Args:
        label: What the chart shows, for those who cannot see it.
        curves: In the order of drawing.
        y_ticks: Numbers along the y axis; the first and the last are its ends.
        rings: Draw the points too, for curves of a few; one alone is no line.
    """
    x_ticks = round_ticks(0, float(max(max(curve.x) for curve in curves)), 6)
    x = Scale(0, x_ticks[-1], _WIDE_LEFT, _WIDE - 12)
    y = Scale(y_ticks[0], y_ticks[-1], _TALL, 12)
    drawn = _y_axis(y_ticks, y, _WIDE_LEFT, _WIDE - 12)
    drawn += [text(x(tick), _TALL + 20, _number(tick), anchor="middle") for tick in x_ticks]
    for each in curves:
        parts = [_curve(each.kind, each.x, each.y, x, y)]
        if rings:
            places = zip(each.x, each.y, strict=True)
            parts += [_RING.format(x(at), y(value), _MARK, each.kind) for at, value in places]
        drawn.append(_NAMED_CURVE.format(each.name, Markup("").join(parts)))
    return picture(label, _TALL + 28, drawn, _WIDE)


def estimates_chart(
    label: str, points: Sequence[tuple[float, Estimate]], y_ticks: Sequence[float]
) -> Markup:
    """Draw estimates, upright, over the number that each stands at; equal numbers side by side."""
    height = 150
    places = sorted({at for at, _ in points})
    y = Scale(y_ticks[0], y_ticks[-1], height, 6)
    slot = (WIDTH - _MARK - _LEFT) / len(places)
    most = max(sum(at == place for at, _ in points) for place in places)
    step = min(7, 0.9 * slot / most)  # so that each dot stands over its own number
    drawn = _y_axis(y_ticks, y, _LEFT, WIDTH - _MARK)
    for number, place in enumerate(places):
        here = [row for at, row in points if at == place]
        middle = _LEFT + slot * (number + 0.5)
        for rank, row in enumerate(here):
            drawn += _upright(row, middle + step * (rank - (len(here) - 1) / 2), y)
        drawn.append(text(middle, height + 15, f"{place:g}", anchor="middle"))
    return picture(label, height + 20, drawn)


def bar_chart(label: str, counts: Sequence[tuple[str, float]]) -> Markup:
    """Draw one bar per name, with its number."""
    greatest = max(value for _, value in counts) or 1
    x = Scale(0, greatest, 60, WIDTH - 50)
    drawn = []
    for number, (name, value) in enumerate(counts):
        top = 20 * number
        drawn += [
            text(54, top + 14, name, anchor="end", kind="name"),
            _BAR.format(60, top + 3, x(value) - 60),
            text(x(value) + 5, top + 14, f"{value:,.0f}"),
        ]
    return picture(label, 20 * len(counts) + 2, drawn)


def picture(label: str, height: float, drawn: Iterable[Markup], width: float = WIDTH) -> Markup:
    """Return an ``svg`` of a height, with what it shows in words."""
    return _SVG.format(width, height, label, Markup("").join(drawn))


def line(x1: float, y1: float, x2: float, y2: float, kind: str = "grid") -> Markup:
    """Return a straight line of a class of the page's style."""
    return _LINE.format(x1, y1, x2, y2, kind)


def text(x: float, y: float, words: str, anchor: str = "start", kind: str = "label") -> Markup:
    """Return a text that starts, ends or is centred at a place."""
    return _TEXT.format(x, y, anchor, kind, words)


def _interval_row(row: Estimate, x: Scale, top: float) -> list[Markup]:
    best = " best" if row.best else ""
    return [
        text(_MARK, top, row.name, kind=f"name{best}"),
        text(WIDTH - _MARK, top, f"{row.value:.1f}", anchor="end", kind=f"name{best}"),
        line(x(row.low), top + 10, x(row.high), top + 10, f"interval{best}"),
        _dot(x(row.value), top + 10, best),
    ]


def _upright(row: Estimate, x: float, y: Scale) -> list[Markup]:
    best = " best" if row.best else ""
    title = f"{row.name}: {row.value:.1f} ({row.low:.1f}–{row.high:.1f})"
    return [
        line(x, y(row.low), x, y(row.high), f"interval{best}"),
        _dot(x, y(row.value), best, title),
    ]


def _dot(x: float, y: float, best: str, title: str = "") -> Markup:
    words = Markup("<title>{}</title>").format(title) if title else ""
    return _DOT.format(x, y, _MARK, best, words)


def _curve(kind: str, xs: Sequence[float], ys: Sequence[float], x: Scale, y: Scale) -> Markup:
    known = [(a, b) for a, b in zip(xs, ys, strict=True) if np.isfinite(b)]
    points = " ".join(f"{x(a):.1f},{y(b):.1f}" for a, b in known)
    return _CURVE.format(points, kind)


def _y_axis(ticks: Sequence[float], y: Scale, left: float, right: float) -> list[Markup]:
    """Return a line from left to right for each number, with the number before it."""
    lines = [line(left, y(tick), right, y(tick)) for tick in ticks]
    return [*lines, *(text(left - 5, y(tick) + 4, _number(tick), anchor="end") for tick in ticks)]


def _number(tick: float) -> str:
    return f"{tick:,.10g}"


def _tick_labels(ticks: Sequence[float], x: Scale, y: float) -> list[Markup]:
    anchors = ["start", *["middle"] * (len(ticks) - 2), "end"]
    return [
        text(x(tick), y, _number(tick), anchor=anchor)
        for tick, anchor in zip(ticks, anchors, strict=True)
    ]
