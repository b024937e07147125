"""Small charts as inline SVG: no axis that a table beside it does not say, a title under the pointer for each mark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from backcast.page.markup import Content, Html, Tone, escape, join, tag

_BAR, _GAP = 14, 6
_LABEL, _WIDTH, _SHOWN = 180, 420, 130


@dataclass(frozen=True, slots=True)
class Bar:
    """One mark: what it is, how long, in which colour, and what is written beside it."""

    label: str
    value: float
    tone: Tone = "info"
    shown: str = ""


def bars(items: Sequence[Bar], *, label: str = "") -> Html:
    """Horizontal bars, one a line, on a common scale that begins at zero."""
    most = max((abs(each.value) for each in items), default=0) or 1
    step = _BAR + _GAP
    lines = []
    for number, each in enumerate(items):
        top = number * step
        length = abs(each.value) / most * _WIDTH
        middle = top + _BAR - 3
        lines.append(
            join(
                _text(_LABEL - 8, middle, _cut(each.label, 26), "end"),
                _rect(_LABEL, top, max(length, 1.0 if each.value else 0.0), _BAR, each.tone, _titled(each)),
                _text(_LABEL + length + 6, middle, each.shown or _number(each.value), "start"),
            )
        )
    return _svg(_LABEL + _WIDTH + _SHOWN, max(len(items) * step - _GAP, 1), lines, label)


def stacked(parts: Sequence[Bar], *, label: str = "") -> Html:
    """One bar that is a whole, cut into its parts, with a legend."""
    whole = sum(max(each.value, 0) for each in parts) or 1
    width, left, marks = float(_LABEL + _WIDTH + _SHOWN), 0.0, []
    for each in parts:
        length = max(each.value, 0) / whole * width
        if length:
            marks.append(_rect(left, 0, max(length - 1, 1), 18, each.tone, _titled(each)))
        left += length
    legend = tag(
        "p",
        *(
            join(tag("span", "", class_=f"key fill-{each.tone}"), f"{each.label} {each.shown or _number(each.value)}  ")
            for each in parts
            if each.value
        ),
        class_="legend",
    )
    return join(_svg(width, 18, marks, label, stretch=True), legend)


def columns(items: Sequence[tuple[str, Sequence[Bar]]], *, label: str = "", height: int = 90) -> Html:
    """Upright bars, in groups that stand side by side (before and after, say), on a common scale."""
    most = max((each.value for _, group in items for each in group), default=0) or 1
    inside = max((len(group) for _, group in items), default=1)
    thick = min(18.0, max(1.5, (_LABEL + _WIDTH + _SHOWN) / max(len(items) * (inside + 0.6), 1)))
    marks, left = [], 0.0
    for name, group in items:
        for each in group:
            tall = max(each.value, 0) / most * height
            told = tag("title", f"{name}: {each.label} {each.shown or _number(each.value)}")
            marks.append(_rect(left, height - tall, thick * 0.9, tall, each.tone, told))
            left += thick
        left += thick * 0.6
    base = Html(f'<line class="axis" x1="0" y1="{height}" x2="{left:.1f}" y2="{height}"/>')
    names = [items[0][0], items[-1][0]] if len(items) > 1 else [name for name, _ in items]
    ends = tag("p", *(tag("span", name) for name in names), class_="ends", style=f"max-width:{max(left, 160):.0f}px")
    return join(_svg(max(left, 1), height + 1, [*marks, base], label), ends)


def sparkline(values: Sequence[float], *, label: str = "", width: int = 120, height: int = 24) -> Html:
    """A line without axes, for a cell of a table."""
    if not values:
        return Html()
    low, high = min(values), max(values)
    span = (high - low) or 1
    step = width / max(len(values) - 1, 1)
    points = [(number * step, height - 3 - (value - low) / span * (height - 6)) for number, value in enumerate(values)]
    drawn = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    last = Html(f'<circle class="fill-info" cx="{points[-1][0]:.1f}" cy="{points[-1][1]:.1f}" r="2"/>')
    return _svg(width + 3, height, [Html(f'<polyline class="line" points="{drawn}"/>'), last], label)


def _svg(width: float, height: float, marks: Sequence[Html], label: str, *, stretch: bool = False) -> Html:
    named = f' role="img" aria-label="{escape(label)}"' if label else ' role="img"'
    size = 'width="100%" preserveAspectRatio="none"' if stretch else f'width="{width:.0f}"'
    box = f'{size} height="{height:.0f}" viewBox="0 0 {width:.1f} {height:.1f}"'
    return Html(f'<svg class="chart" {box}{named}>{join(*marks)}</svg>')


def _rect(x: float, y: float, width: float, height: float, tone: Tone, inside: Content) -> Html:
    place = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
    return Html(f'<rect class="fill-{tone}" {place} rx="1.5">{escape(inside)}</rect>')


def _text(x: float, y: float, value: str, anchor: str) -> Html:
    return Html(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(value)}</text>')


def _titled(each: Bar) -> Html:
    return tag("title", f"{each.label}: {each.shown or _number(each.value)}")


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:,.2f}"


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
