"""How fast chunks are done and how long the rest takes, from what was seen since the step began."""

from __future__ import annotations

from typing import Any

from backcast.cli.render.words import clean, duration, number


class Pace:
    """Chunks that an earlier attempt had finished do not count: only what changed since the first message does."""

    def __init__(self) -> None:
        self._first: tuple[int, int, float] | None = None
        self._last: tuple[int, int, float] = (0, 0, 0.0)

    def feed(self, done: int, rows: int, now: float) -> None:
        self._last = (done, rows, now)
        if self._first is None:
            self._first = self._last

    @property
    def rows_per_second(self) -> float | None:
        done, rows, seconds = self._since_first()
        return rows / seconds if done > 0 and seconds > 0 else None

    def seconds_left(self, total: int) -> float | None:
        done, _, seconds = self._since_first()
        return seconds / done * (total - self._last[0]) if done > 0 and seconds > 0 else None

    def _since_first(self) -> tuple[int, int, float]:
        if self._first is None:
            return 0, 0, 0.0
        return (self._last[0] - self._first[0], self._last[1] - self._first[1], self._last[2] - self._first[2])


def pace_text(rows_per_second: float | None, seconds_left: float | None) -> str:
    """`12,300 rows/s, 2 min left`; empty as long as nothing is known."""
    parts = []
    if rows_per_second is not None:
        parts.append(f"{number(round(rows_per_second))} rows/s")
    if seconds_left is not None:
        parts.append(f"{duration(seconds_left)} left" if seconds_left >= 1 else "done soon")
    return ", ".join(parts)


def plain_line(document: dict[str, Any], rows_per_second: float | None, seconds_left: float | None) -> str:
    """One progress document as a line of a log."""
    done, total = document["done"], document["total"]
    parts = [document["step"]]
    if total:
        parts.append(f"{number(done)}/{number(total)} chunks")
        if document["rows"]:
            parts.append(f"{number(document['rows'])} rows")
    if document["message"]:
        parts.append(clean(document["message"]))
    if pace := pace_text(rows_per_second, seconds_left if done < total else None):
        parts.append(pace)
    return ": ".join((parts[0], ", ".join(parts[1:]))) if len(parts) > 1 else parts[0]
