"""Pipelines and datasets as the flow knows them: the project's declarations, resolved and checked."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from backcast.model.calendar import EVERY_DAY, Calendar
from backcast.model.column import TimeColumn
from backcast.model.manifest import Semantics, Settings
from backcast.model.source import LogSource
from backcast.model.states import Execution
from backcast.model.time import Grain, Interval


class Cut(StrEnum):
    """What to do when the window cuts partitions: widen it to whole ones, or stage row-exact."""

    WIDEN = "widen"
    EXACT = "exact"


class TableFormat(StrEnum):
    """Formats whose tables can be inputs and targets."""

    ICEBERG = "iceberg"
    DELTA = "delta"

    @property
    def leaves_files(self) -> bool:
        """Whether files of released runs stay behind that no maintenance of the table itself ever visits."""
        return self is TableFormat.DELTA


@dataclass(frozen=True, slots=True)
class Relation:
    """A declared table. One without a time column can only be an input that is read whole."""

    name: str
    table: str
    """Full name: catalog, one or more namespaces, table; or delta.`path`."""
    format: TableFormat = field(default=TableFormat.ICEBERG, kw_only=True)

    @property
    def time_columns(self) -> tuple[TimeColumn, ...]:
        """Every column that places a row in time; none here."""
        return ()


@dataclass(frozen=True, slots=True)
class Dataset(Relation):
    """A table under management."""

    time: TimeColumn
    grain: Grain
    partition: TimeColumn | None = None
    """The column the table is partitioned by when that is not `time`; its value follows from `time`."""
    key: tuple[str, ...] = ()
    version: str | None = None
    """Column that tells the newer of two rows with the same key."""
    streaming_readers: tuple[str, ...] = ()
    """Declared streams that read this table, and that a rewrite may stop."""
    tolerance: float | None = None
    """The share of rows that may be wrong without harm."""
    refresh: str | None = None
    """How to compute the table anew from others, when it is derived from them."""
    tier: str | None = None
    """How much depends on the table, in the policy's words."""
    calendar: Calendar = EVERY_DAY
    """On which days rows are expected."""
    position: tuple[str, str] | None = None
    """The columns that hold partition and offset of the record that a row was made of."""

    @property
    def time_columns(self) -> tuple[TimeColumn, ...]:
        """Every column that places a row in time: `time`, then `partition` when there is one."""
        return (self.time,) if self.partition is None else (self.time, self.partition)


@dataclass(frozen=True, slots=True)
class InputSpec:
    """One input of a pipeline under the name the transform knows it by."""

    name: str
    dataset: Relation | LogSource
    windowed: bool = True
    """False: read whole, whatever the window (reference data). True only for a dataset with time columns."""
    version: str | None = None
    as_of: datetime | None = None
    """The version of a table that was the newest then. At most one of both; neither: the newest when it is planned."""
    semantics: Semantics | None = None


@dataclass(frozen=True, slots=True)
class PipelineSpec:
    """A versioned transform, its inputs, its output dataset, its warm-up and how its runs behave."""

    name: str
    version: str
    inputs: tuple[InputSpec, ...]
    output: Dataset
    warm_up_before: timedelta = timedelta()
    warm_up_after: timedelta = timedelta()
    cut: Cut = Cut.WIDEN
    settings: Settings = field(default_factory=Settings)
    """As declared; `settings.spark` is empty here and filled by whoever plans, from `World.result_settings()`."""


@dataclass(frozen=True, slots=True)
class Job:
    """What one call of a transform is told: whose run, why, which part of the output, and what time it is."""

    run_id: str
    execution: Execution
    window: Interval
    """The output of this job. A transform may return warm-up rows outside it; they are cut."""
    clock: datetime
    """The run's own instant, the same in every chunk and in every repetition."""
