"""Numbers, sizes, times and names as people read them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

_UNITS = ("KiB", "MiB", "GiB", "TiB", "PiB")


def number(value: int) -> str:
    return f"{value:,}"


def signed(value: int) -> str:
    return f"{value:+,}" if value else "0"


def count(value: int, noun: str, plural: str = "") -> str:
    """`1 day`, `365 days`."""
    return f"{value:,} {noun if value == 1 else plural or noun + 's'}"


def size(value: int) -> str:
    if value < 1024:
        return f"{value} B"
    amount = float(value)
    for unit in _UNITS:
        amount /= 1024
        if amount < 1024 or unit == _UNITS[-1]:
            break
    return f"{amount:,.1f} {unit}"


def duration(seconds: float) -> str:
    """`0.4 s`, `12 s`, `2 min 05 s`, `1 h 20 min`, `7 days`: two units at most."""
    if seconds < 10:
        return f"{max(seconds, 0):.1f} s".replace(".0 s", " s")
    whole = round(seconds)
    minutes, rest = divmod(whole, 60)
    if minutes == 0:
        return f"{whole} s"
    if minutes < 60:
        return f"{minutes} min {rest:02d} s" if rest and minutes < 10 else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 24:
        return f"{hours} h {minutes:02d} min" if minutes else f"{hours} h"
    days, hours = divmod(hours, 24)
    return f"{count(days, 'day')} {hours} h" if hours and days < 7 else count(days, "day")


def about(low: float, high: float) -> str:
    """A span for an estimate, no finer than it is good for: `20 s to 1 min`, `4 to 9 min`."""
    if high >= 120:
        low, high = (60 * round(low / 60) if low >= 60 else low), 60 * round(high / 60)
    first, last = duration(low), duration(high)
    if first == last:
        return first
    same = first.rpartition(" ")[2] == last.rpartition(" ")[2] and first.count(" ") == last.count(" ") == 1
    return f"{first.partition(' ')[0]} to {last}" if same else f"{first} to {last}"


def moment(instant: datetime) -> str:
    return f"{instant.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def ago(instant: datetime, now: datetime) -> str:
    """`3 min ago`; the same moment is `now`."""
    passed = (now - instant).total_seconds()
    return f"{_one_unit(passed)} ago" if passed >= 1 else "now"


def time_of_day(instant: datetime) -> str:
    return f"{instant.astimezone(UTC):%H:%M:%S} UTC"


_SLOW = 10


def rate(rows_per_second: float) -> str:
    """`12,300 rows/s`, or `40 rows/min` of what is slow."""
    if rows_per_second >= _SLOW:
        return f"{number(round(rows_per_second))} rows/s"
    return f"{number(round(rows_per_second * 60))} rows/min"


def remaining(until: datetime, now: datetime) -> str:
    """`6 days 23 h left`, or `over`. Begun minutes count: a moment after it was granted, a week is still a week."""
    left = until - now
    minute = timedelta(minutes=1)
    whole = -(-left // minute) * minute if left > minute else left
    return f"{duration(whole.total_seconds())} left" if left > timedelta() else "over"


def _one_unit(seconds: float) -> str:
    for length, noun in ((86_400, "day"), (3_600, "h"), (60, "min")):
        if seconds >= length:
            amount = int(seconds // length)
            return count(amount, "day") if noun == "day" else f"{amount} {noun}"
    return f"{int(seconds)} s"


def some(names: Sequence[str], limit: int = 3) -> str:
    """The first few names, and how many more."""
    shown = ", ".join(names[:limit])
    return f"{shown} and {number(len(names) - limit)} more" if len(names) > limit else shown


def clean(text: str) -> str:
    """Text from elsewhere without characters that could drive a terminal."""
    return "".join(each if each.isprintable() or each in "\n\t" else "�" for each in text)
