"""Hours of each day, by the wall clock of a zone, in which something may begin."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta

from backcast.errors import InvalidRequest
from backcast.model.time import first_instant, local, zone

_WRITTEN = re.compile(r"(\d{1,2}:\d\d)-(\d{1,2}:\d\d)(?: (\S+))?")


@dataclass(frozen=True, slots=True)
class Hours:
    """From `begin` on, up to `end` and without it; an end that is not behind the begin is that of the next day."""

    begin: time
    end: time
    zone: str

    @classmethod
    def parse(cls, text: str, zone_name: str = "UTC") -> Hours:
        """`22:00-06:00`, by the clock of that zone, or of the one that the text names: `22:00-06:00 Europe/Berlin`.

        Raises ValueError.
        """
        found = _WRITTEN.fullmatch(text)
        if found is None:
            raise ValueError(f"expected hours such as 22:00-06:00 or 22:00-06:00 Europe/Berlin, got {text!r}")
        begin, end = _time(found[1]), _time(found[2])
        if begin == end:
            raise ValueError(f"{text!r} begins and ends at the same time: leave it out for the whole day")
        try:
            zone(found[3] or zone_name)
        except InvalidRequest as error:
            raise ValueError(
                f"expected a time zone such as UTC or Europe/Berlin, got {found[3] or zone_name!r}"
            ) from error
        return cls(begin, end, found[3] or zone_name)

    def __str__(self) -> str:
        return f"{self.begin:%H:%M}-{self.end:%H:%M} {self.zone}"

    def next(self, now: datetime) -> datetime | None:
        """When they begin again; None while they last."""
        today = local(now, self.zone).date()
        for days in range(-1, 3):
            begin, end = self._on(today + timedelta(days=days))
            # Both are the same instant where the clock skips them.
            if begin < end and now < end:
                return begin if now < begin else None
        return None

    def _on(self, day: date) -> tuple[datetime, datetime]:
        until = day if self.end > self.begin else day + timedelta(days=1)
        begin, end = datetime.combine(day, self.begin), datetime.combine(until, self.end)
        return first_instant(begin, self.zone), first_instant(end, self.zone)


def written(text: str) -> str:
    """As it goes on record, always with its zone."""
    return str(Hours.parse(text))


def _time(text: str) -> time:
    hour, _, minute = text.partition(":")
    try:
        return time(int(hour), int(minute))
    except ValueError as error:
        raise ValueError(f"expected a time of day from 00:00 to 23:59, got {text!r}") from error
