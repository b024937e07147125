"""Windows in words: first day, last day, how many, and what the exclusive end was."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from backcast.cli.render.words import count, duration
from backcast.model.fixing import whole_days
from backcast.model.scope import Predicate, TimeClause, ValueClause
from backcast.model.time import Interval, local


def zone_of(predicate: Predicate) -> str:
    """The zone in which the scope's days were cut: that of its first time column."""
    return next((clause.time.zone for clause in predicate.clauses if isinstance(clause, TimeClause)), "UTC")


def window_text(window: Interval, zone: str) -> str:
    """`2025-01-01 .. 2025-01-31`, or with times when it does not start and end with a day."""
    days = whole_days(window, zone)
    if days is None:
        return f"{_wall(window.start, zone)} .. {_wall(window.end, zone)}"
    first, last = days
    return str(first) if first == last else f"{first} .. {last}"


def windows_lines(windows: Sequence[Interval], zone: str, limit: int = 5) -> list[str]:
    """The scope's windows as people check them: with the last day, since an exclusive end misleads."""
    where = "" if zone == "UTC" else f" {zone}"
    if len(windows) == 1:
        return [f"{window_text(windows[0], zone)}{where} ({_length(windows[0], zone)})"]
    days = [whole_days(each, zone) for each in windows]
    total = sum((last - first).days + 1 for first, last in filter(None, days))
    amount = count(total, "day") if all(days) else duration(sum(map(_seconds, windows)))
    texts = [window_text(each, zone) for each in windows]
    first_day, last_day = texts[0].split(" .. ")[0], texts[-1].split(" .. ")[-1]
    lines = [f"{first_day} .. {last_day}{where} ({amount} in {len(windows)} windows, last day included)"]
    shown = texts if len(texts) <= limit else [*texts[: limit - 2], f"... {len(texts) - limit + 1} more", texts[-1]]
    return lines + [f"  {text}" for text in shown]


def predicate_lines(predicate: Predicate) -> list[str]:
    """The value clauses: `only rows where tenant is T-41 or T-42`."""
    found = [clause for clause in predicate.clauses if isinstance(clause, ValueClause)]
    return [f"only rows where {clause.column} is {' or '.join(clause.values)}" for clause in found]


def _length(window: Interval, zone: str) -> str:
    days = whole_days(window, zone)
    if days is None:
        return f"{duration(_seconds(window))}, end exclusive"
    first, last = days
    if first == last:
        return "1 day"
    amount = count((last - first).days + 1, "day")
    return f"{amount}, last day included; --to {last + timedelta(days=1)} is exclusive"


def _seconds(window: Interval) -> float:
    return (window.end - window.start).total_seconds()


def _wall(instant: datetime, zone: str) -> str:
    return f"{local(instant, zone):%Y-%m-%d %H:%M}"
