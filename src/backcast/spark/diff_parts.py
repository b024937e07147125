"""Which part of a comparison a row belongs to, as a SQL expression over the rows of a side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from backcast.model.column import TimeColumn, TimeKind
from backcast.model.scope import Predicate
from backcast.model.time import Grain
from backcast.spark.predicates import Types, balanced, quote, text_literal, to_sql

ALL = "all rows"
_FORMATS = {
    Grain.HOUR: "yyyy-MM-dd HH:00",
    Grain.DAY: "yyyy-MM-dd",
    Grain.WEEK: "yyyy-MM-dd",
    Grain.MONTH: "yyyy-MM",
    Grain.YEAR: "yyyy",
}
_EPOCHS = {1: "timestamp_seconds", 1_000: "timestamp_millis", 1_000_000: "timestamp_micros"}
_MOST_CONDITIONS = 200


class Parts(Protocol):
    """How rows are divided. A label is whatever is cheap to compute for every row; people read its name."""

    def label(self, types: Types) -> str:
        """The part's label as SQL; NULL for a row that is in none."""

    def name(self, label: object) -> str | None:
        """The name of the part with that label; None for rows that are in none."""

    def name_sql(self, label: str) -> str:
        """The same as SQL."""

    def only(self, names: list[str], types: Types) -> str | None:
        """A condition that holds for rows of these parts at least, if one is worth its while."""

    def order(self, found: set[str]) -> list[str]:
        """The names of all parts, given those that have rows."""


@dataclass(frozen=True, slots=True)
class ByPredicate:
    """A row belongs to the first part that it matches; labels are numbers."""

    parts: Mapping[str, Predicate]

    def label(self, types: Types) -> str:
        if len(self.parts) == 1:
            return "0"
        # One flat CASE: nested ones overflow the JVM's stack when a year is cut into days.
        cases = (f"WHEN {to_sql(each, types)} THEN {number}" for number, each in enumerate(self.parts.values()))
        return f"CASE {' '.join(cases)} END"

    def name(self, label: object) -> str | None:
        return list(self.parts)[label] if isinstance(label, int) else None

    def name_sql(self, label: str) -> str:
        return f"element_at(array({', '.join(map(text_literal, self.parts))}), {label} + 1)"

    def only(self, names: list[str], types: Types) -> str | None:
        if len(names) == len(self.parts) or len(names) > _MOST_CONDITIONS:
            return None
        return balanced([to_sql(self.parts[name], types) for name in names], lambda one, other: f"({one} OR {other})")

    def order(self, found: set[str]) -> list[str]:
        del found  # Also parts without rows are told.
        return list(self.parts)


_NO_TIME = "null"


@dataclass(frozen=True, slots=True)
class ByTime:
    """Parts are the days (hours, months) of a column that have rows on either side; labels are dates or texts."""

    time: TimeColumn
    grain: Grain

    def can_cut(self, left: Types, right: Types) -> bool:
        """Whether both sides have the column, as what it is declared to be."""
        column, kind = self.time.column, self.time.kind
        if column not in left or left[column] != right.get(column):
            return False
        return kind in (TimeKind.STRING, TimeKind.INTEGER) or left[column] == kind

    @property
    def _is_date(self) -> bool:
        # Formatting a date for every row costs more than hashing all of the row.
        return self.time.kind is TimeKind.DATE and self.grain is Grain.DAY

    def label(self, types: Types) -> str:
        name = quote(self.time.column)
        return name if self._is_date else self._text(name)

    def name(self, label: object) -> str | None:
        return _NO_TIME if label is None else str(label)

    def name_sql(self, label: str) -> str:
        return f"coalesce(CAST({label} AS STRING), '{_NO_TIME}')"

    def _text(self, name: str) -> str:
        match self.time.kind:
            case TimeKind.DATE | TimeKind.TIMESTAMP_NTZ:
                moment = name
            case TimeKind.TIMESTAMP:
                moment = self._local(name)
            case _ if self.time.epoch_scale is not None:
                moment = self._local(f"{_EPOCHS[self.time.epoch_scale]}({name})")
            case _:
                return f"CAST({name} AS STRING)"
        cut = f"date_trunc('week', {moment})" if self.grain is Grain.WEEK else moment
        return f"date_format({cut}, '{_FORMATS[self.grain]}')"

    def _local(self, moment: str) -> str:
        return moment if self.time.zone == "UTC" else f"from_utc_timestamp({moment}, {text_literal(self.time.zone)})"

    def only(self, names: list[str], types: Types) -> str | None:
        if len(names) > _MOST_CONDITIONS:
            return None
        label = self.label(types)
        known = [name for name in names if name != _NO_TIME]
        literals = [f"DATE {text_literal(name)}" if self._is_date else text_literal(name) for name in known]
        conditions = [f"{label} IS NULL"] if len(known) < len(names) else []
        conditions += [f"{label} IN ({', '.join(literals)})"] if literals else []
        return " OR ".join(conditions)

    def order(self, found: set[str]) -> list[str]:
        return sorted(found)


EVERY_ROW = ByPredicate({ALL: Predicate()})
