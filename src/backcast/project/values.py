"""Values that several sections of `backcast.yaml` share: names, durations, zones, time columns."""

from __future__ import annotations

import re
from datetime import timedelta
from decimal import Decimal
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, ValidationError, model_validator

from backcast.errors import InvalidRequest
from backcast.model.column import TimeColumn, TimeKind
from backcast.model.document import Document
from backcast.model.time import parse_duration
from backcast.model.time import zone as find_zone

_RESERVED_TABLES = re.compile(r"(branch|tag)_.*|snapshot_id_\d+|at_timestamp_\d+")
_LONGEST = timedelta(days=3650)


def _identifier(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", text):
        raise ValueError(f"expected a name of letters, digits and _, got {text!r}")
    return text


def _label(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]{0,62}", text):
        raise ValueError(f"expected a name of letters, digits, - and _ that starts with a letter, got {text!r}")
    return text


def _table(text: str) -> str:
    parts = text.split(".")
    if len(parts) < 3 or not all(re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", part) for part in parts):
        raise ValueError(f"expected catalog.namespace.table, each of letters, digits and _, got {text!r}")
    if _RESERVED_TABLES.fullmatch(parts[-1]):
        raise ValueError(f"{parts[-1]!r} names a branch, tag or snapshot and no table")
    return text


def _zone(text: str) -> str:
    try:
        find_zone(text)
    except InvalidRequest as error:
        raise ValueError(f"expected a time zone such as UTC or Europe/Berlin, got {text!r}") from error
    return text


def _share(value: object) -> object:
    """A part of a whole: `0.1%`."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*%", value) if isinstance(value, str) else None
    if found is None or float(found[1]) > 100:
        raise ValueError(f"expected a share such as 0.1%, got {value!r}")
    # Exactly the share that was written: 0.7 divided by 100 is a little less than 0.007.
    return float(Decimal(found[1]) / 100)


def _duration(value: object) -> object:
    if not isinstance(value, str):
        raise ValueError("expected a duration such as 90s, 30m, 12h, 7d or 2w")  # noqa: TRY004 - pydantic reports ValueErrors
    try:
        length = parse_duration(value)
    except OverflowError:
        length = timedelta.max
    if length > _LONGEST:
        raise ValueError(f"expected at most {_LONGEST.days}d, got {value!r}")
    return length


def _version(text: str) -> str:
    if not text or re.search(r"\s", text):
        raise ValueError(f"expected a version such as 1.2.0, got {text!r}")
    return text


def _path(text: str) -> str:
    if not text or any(sign in text for sign in "`\n\0"):
        raise ValueError(f"expected the folder of a Delta table, got {text!r}")
    return text


Identifier = Annotated[str, AfterValidator(_identifier)]
Label = Annotated[str, AfterValidator(_label)]
TableName = Annotated[str, AfterValidator(_table)]
TablePath = Annotated[str, AfterValidator(_path)]
Zone = Annotated[str, AfterValidator(_zone)]
Share = Annotated[float, BeforeValidator(_share)]
Duration = Annotated[timedelta, BeforeValidator(_duration)]
Version = Annotated[str, AfterValidator(_version)]


class TimeConfig(Document):
    """The column that places a row in time; see `backcast.model.column.TimeColumn`."""

    column: Identifier
    kind: TimeKind = TimeKind.TIMESTAMP
    zone: Zone = "UTC"
    format: str | None = None

    @model_validator(mode="after")
    def _fits(self) -> TimeConfig:
        self.resolve()
        return self

    def resolve(self) -> TimeColumn:
        try:
            return TimeColumn(column=self.column, kind=self.kind, zone=self.zone, format=self.format)
        except ValidationError as error:
            raise ValueError("; ".join(each["msg"].removeprefix("Value error, ") for each in error.errors())) from None
