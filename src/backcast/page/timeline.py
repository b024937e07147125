"""When things happened: spans on a common axis of time, as inline SVG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from backcast.page.markup import Html, Tone, escape, join, tag

_LINE, _BAR = 20, 13
_LABEL, _WIDTH, _SHOWN = 180, 480, 90


@dataclass(frozen=True, slots=True)
class Span:
    """One thing that took time."""

    label: str
    start: datetime
    end: datetime
    tone: Tone = "info"
    shown: str = ""
    """Written beside it."""
    told: str = ""
    """Said under the pointer."""


def timeline(spans: Sequence[Span], *, label: str = "") -> Html:
    """One line for each, in the order given; nothing for none."""
    if not spans:
        return Html()
    first, last = min(each.start for each in spans), max(each.end for each in spans)
    scale = _WIDTH / max((last - first).total_seconds(), 0.001)
    lines = []
    for number, each in enumerate(spans):
        left = _LABEL + (each.start - first).total_seconds() * scale
        long = max((each.end - each.start).total_seconds() * scale, 1.5)
        top = number * _LINE
        title = tag("title", f"{each.label}: {each.told or each.shown}")
        place = f'x="{left:.1f}" y="{top}" width="{long:.1f}" height="{_BAR}"'
        lines.append(
            join(
                _text(_LABEL - 8, top + 11, each.label[:26], "end"),
                Html(f'<rect class="fill-{each.tone}" {place} rx="1.5">{title}</rect>'),
                _text(left + long + 6, top + 11, each.shown, "start"),
            )
        )
    height = len(spans) * _LINE
    axis = Html(f'<line class="axis" x1="{_LABEL}" y1="{height}" x2="{_LABEL + _WIDTH}" y2="{height}"/>')
    ends = join(
        _text(_LABEL, height + 14, _clock(first), "start"), _text(_LABEL + _WIDTH, height + 14, _clock(last), "end")
    )
    whole = _LABEL + _WIDTH + _SHOWN
    box = f'width="{whole}" height="{height + 18}" viewBox="0 0 {whole} {height + 18}"'
    return Html(f'<svg class="chart" {box} role="img" aria-label="{escape(label)}">{join(*lines, axis, ends)}</svg>')


def _text(x: float, y: float, value: str, anchor: str) -> Html:
    return Html(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(value)}</text>')


def _clock(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
