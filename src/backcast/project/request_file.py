"""Requests as files in git: one request for each file, read with the line of everything that is wrong in it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, ValidationError, model_validator

from backcast.errors import ConfigError, InvalidRequest
from backcast.model.document import Document
from backcast.model.request import MOST, Kind, Request
from backcast.model.scope import ValueClause
from backcast.model.time import parse_instant
from backcast.model.watermark import WatermarkStrategy
from backcast.project.problems import from_validation, raise_problems
from backcast.project.values import Duration, Identifier, Label
from backcast.project.yaml_lines import Tree, read_yaml


def _several(value: object) -> object:
    return [value] if isinstance(value, str) else value


def _day(value: object) -> object:
    try:
        day = date.fromisoformat(value) if isinstance(value, str) and len(value) == len("2025-01-31") else None
    except ValueError:
        day = None
    if day is None:
        raise ValueError(f"expected a day such as 2025-01-31, got {value!r}")
    return day


def _moment(value: object) -> object:
    try:
        parse_instant(str(value), "UTC")
    except InvalidRequest as error:
        raise ValueError(f"{error.message}; {error.hint}") from None
    return value


Day = Annotated[date, BeforeValidator(_day)]
Days = Annotated[tuple[Day, ...], BeforeValidator(_several)]
Moment = Annotated[str, BeforeValidator(_moment)]


class RequestConfig(Document):
    """The file: what `plan` takes as options, under the same names."""

    pipeline: Label
    start: Moment | None = Field(default=None, alias="from")
    end: Moment | None = Field(default=None, alias="to")
    dates: Days = ()
    exclude: Days = ()
    where: dict[Identifier, Annotated[tuple[str, ...], Field(min_length=1), BeforeValidator(_several)]] = Field(
        default_factory=dict
    )
    offsets: str | None = None
    record_time: str | None = None
    checkpoint: str | None = None
    stream: str | None = None
    as_stream: bool = False
    watermark: WatermarkStrategy | None = None
    affected: Annotated[int, Field(ge=1, le=MOST)] | None = None
    max_rows: Annotated[int, Field(ge=1, le=MOST)] | None = None
    max_cost: Annotated[float, Field(ge=0, le=MOST)] | None = None
    max_duration: Duration | None = None
    kind: Kind = Kind.RESTATEMENT
    reason: str = ""
    ticket: str = ""

    @model_validator(mode="after")
    def _says_when(self) -> RequestConfig:
        if self.dates and (self.start or self.end):
            raise ValueError("dates cannot be mixed with from and to")
        if (self.start is None) != (self.end is None):
            raise ValueError(f"a window needs from and to: {'from' if self.start is None else 'to'} is missing")
        if self.start is not None and self.end is not None:
            first, last = parse_instant(self.start, "UTC"), parse_instant(self.end, "UTC")
            if first == last:
                raise ValueError(f"the window is empty: from and to are both {self.start}, and to is exclusive")
            if first > last:
                raise ValueError(f"the window runs backwards: from {self.start} is after to {self.end}")
        named = self.start or self.dates or self.offsets or self.record_time or self.checkpoint
        if not named and self.kind is not Kind.BOOTSTRAP:
            raise ValueError("which days? it names neither from and to, nor dates")
        return self

    def resolve(self, requested_by: str) -> Request:
        length = self.max_duration
        return Request(
            pipeline=self.pipeline,
            start=self.start,
            end=self.end,
            dates=tuple(sorted(set(self.dates))),
            exclude=tuple(sorted(set(self.exclude))),
            where=tuple(ValueClause(column=name, values=values) for name, values in self.where.items()),
            offsets=self.offsets,
            record_time=self.record_time,
            checkpoint=self.checkpoint,
            stream=self.stream,
            as_stream=self.as_stream,
            watermark=self.watermark,
            affected=self.affected,
            max_rows=self.max_rows,
            max_cost=self.max_cost,
            max_seconds=None if length is None else int(length.total_seconds()),
            kind=self.kind,
            reason=self.reason,
            ticket=self.ticket,
            requested_by=requested_by,
        )


@dataclass(frozen=True, slots=True)
class WrittenRequest:
    """A request and the file that it stands in."""

    file: str
    request: Request
    tree: Tree

    def at(self, key: str) -> str:
        """File and line of a key, for messages."""
        return str(self.tree.place((key,)))


def read_request(file: Path, requested_by: str = "") -> WrittenRequest:
    """Raises ConfigError with every problem of the file."""
    shown_as = str(file)
    if not file.is_file():
        raise ConfigError(f"there is no file {shown_as}", hint="name a request file, such as requests/2025-april.yaml")
    tree = read_yaml(file, shown_as)
    try:
        config = RequestConfig.model_validate(tree.value)
    except ValidationError as error:
        problems = from_validation(error, tree.place, _keys_at, lambda _: False)
        raise_problems(problems)
        raise
    return WrittenRequest(shown_as, config.resolve(requested_by), tree)


def _keys_at(path: tuple[Any, ...]) -> list[str]:
    return [] if path else [field.alias or name for name, field in RequestConfig.model_fields.items()]
