"""Time columns: which values of a column belong to an interval, whatever the column's type."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum

from pydantic import model_validator

from backcast.model import time as t
from backcast.model.document import Document
from backcast.model.time import Grain


class TimeKind(StrEnum):
    DATE = "date"
    TIMESTAMP = "timestamp"
    TIMESTAMP_NTZ = "timestamp_ntz"
    STRING = "string"
    INTEGER = "integer"


_TOKENS = {"yyyy": "year", "MM": "month", "dd": "day", "HH": "hour", "mm": "minute", "ss": "second"}
_ORDER = list(_TOKENS)
_TOKEN = re.compile("|".join(_TOKENS))
_EPOCHS = {"epoch_seconds": 1, "epoch_millis": 1_000, "epoch_micros": 1_000_000}
_UNIT_OF_TOKEN: dict[str, Grain | None] = {"yyyy": Grain.YEAR, "MM": Grain.MONTH, "dd": Grain.DAY, "HH": Grain.HOUR}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class TimeColumn(Document):
    """A column that places a row in time.

    `zone` says in which zone dates and wall clock times are meant. `format` is needed for strings (`yyyy-MM-dd`) and
    integers (`yyyyMMdd`, `epoch_seconds`, `epoch_millis`, `epoch_micros`); it must sort like time.
    """

    column: str
    kind: TimeKind = TimeKind.TIMESTAMP
    zone: str = "UTC"
    format: str | None = None

    @model_validator(mode="after")
    def _format_fits(self) -> TimeColumn:
        t.zone(self.zone)
        if self.kind in (TimeKind.STRING, TimeKind.INTEGER):
            if not self.format:
                raise ValueError(f"a time column of kind {self.kind} needs a format such as yyyy-MM-dd or epoch_millis")
            if self.format in _EPOCHS:
                if self.kind is TimeKind.STRING:
                    raise ValueError(f"{self.format} needs kind integer: as text it does not sort like time")
                return self
            tokens = _TOKEN.findall(self.format)
            rest = _TOKEN.sub("", self.format)
            if tokens != _ORDER[: len(tokens)] or not tokens or re.search(r"[A-Za-z]", rest):
                raise ValueError(
                    f"format {self.format!r} does not sort like time: use yyyy, MM, dd, HH, mm, ss in this order"
                )
            if self.kind is TimeKind.INTEGER and rest:
                raise ValueError(f"format {self.format!r} of an integer column may hold digits only")
        elif self.format:
            raise ValueError(f"a time column of kind {self.kind} takes no format")
        return self

    @property
    def epoch_scale(self) -> int | None:
        """Units per second when the column counts from 1970, else None."""
        return _EPOCHS.get(self.format or "")

    @property
    def unit(self) -> Grain | None:
        """The length of time that one value stands for; None when a value is an instant."""
        if self.kind is TimeKind.DATE:
            return Grain.DAY
        if self.format and self.epoch_scale is None:
            return _UNIT_OF_TOKEN.get(_TOKEN.findall(self.format)[-1])
        return None

    @property
    def is_wall(self) -> bool:
        """True when values are local to `zone` instead of instants."""
        return self.kind is not TimeKind.TIMESTAMP and self.epoch_scale is None

    def encode(self, instant: datetime) -> str:
        """The smallest value of the column whose time is not before the instant, as text."""
        if self.kind is TimeKind.TIMESTAMP:
            return _iso(instant.astimezone(UTC).replace(tzinfo=None)) + "Z"
        if self.epoch_scale is not None:
            return str(-((_EPOCH - instant) // timedelta(microseconds=1_000_000 // self.epoch_scale)))
        wall = t.local(instant, self.zone)
        if self.unit is not None:
            wall = self._ceil(wall, instant, self.unit)
        match self.kind:
            case TimeKind.DATE:
                return wall.date().isoformat()
            case TimeKind.TIMESTAMP_NTZ:
                return _iso(wall)
            case _:
                return _TOKEN.sub(lambda m: _written(wall, m.group()), self.format or "")

    def _ceil(self, wall: datetime, instant: datetime, unit: Grain) -> datetime:
        """A day whose first instant is 01:00 still starts there: it is not rounded up to the next one."""
        floor = t.floor_wall(wall, unit)
        return floor if t.first_instant(floor, self.zone) >= instant else t.ceil_wall(wall, unit)

    def value(self, text: str) -> str | int | date | datetime:
        """The encoded text as a Python value of the column's type."""
        match self.kind:
            case TimeKind.DATE:
                return date.fromisoformat(text)
            case TimeKind.TIMESTAMP | TimeKind.TIMESTAMP_NTZ:
                return datetime.fromisoformat(text)
            case TimeKind.INTEGER:
                return int(text)
            case TimeKind.STRING:
                return text


def _iso(wall: datetime) -> str:
    return wall.isoformat(timespec="microseconds")


def _written(wall: datetime, token: str) -> str:
    """Padded to the token's length: `strftime` writes the year 900 with three digits, which does not sort like time."""
    return str(getattr(wall, _TOKENS[token])).zfill(len(token))


def aligned(instant: datetime, unit: Grain, column: TimeColumn) -> bool:
    """Whether a partition of that unit starts at the instant.

    Iceberg cuts instants in UTC and wall times as they are.
    """
    return t.floor_instant(instant, unit, column.zone if column.is_wall else "UTC") == instant
