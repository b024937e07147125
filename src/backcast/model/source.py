"""Sources as the flow knows them: what is not a table and can still be read again, exactly."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum

from backcast.model.column import TimeColumn
from backcast.model.log import Isolation


class Encoding(StrEnum):
    """How bytes of a record become columns."""

    JSON = "json"
    AVRO = "avro"
    RAW = "raw"


class Surplus(StrEnum):
    """What becomes of a record with fields that the declared schema does not know."""

    IGNORE = "ignore"
    REFUSE = "refuse"
    KEEP = "keep"
    """In column `_extra`, as JSON text by name."""


class Lack(StrEnum):
    """What becomes of a record that lacks a declared field."""

    NULL = "null"
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True)
class Layout:
    """How one side of a record (its value or its key) is written."""

    encoding: Encoding
    schema: str = ""
    """JSON: columns as DDL. Avro: the reader schema as JSON text, when it comes from a file."""
    registry: str | None = None
    """Avro: address of a schema registry whose ids the records carry."""
    subject: str | None = None
    """Avro: the subject whose newest version is the reader schema, when no schema file is given."""
    surplus: Surplus = Surplus.IGNORE
    lack: Lack = Lack.NULL


@dataclass(frozen=True, slots=True)
class Quarantine:
    """Where records that cannot be decoded go, and how many of them a run may meet."""

    table: str
    """Full name of a table, or delta.`path`; made when it is not there."""
    most: int = 0
    """More than this, and the run fails."""


@dataclass(frozen=True, slots=True)
class Archive:
    """Where records of a topic are kept longer than by the log: a table, or files that somebody else writes."""

    table: str | None = None
    """Full name of a table, or delta.`path`. `backcast archive` makes it and adds to it."""
    files: str | None = None
    """Parquet files: a folder, or a path with wildcards."""
    is_delta: bool = False
    columns: dict[str, str] = field(default_factory=dict)
    """Columns that are called otherwise there, by our names for them."""

    @property
    def place(self) -> str:
        return self.table or self.files or ""


@dataclass(frozen=True, slots=True)
class LogSource:
    """A declared Kafka topic. Nothing secret is in here."""

    name: str
    topic: str
    value: Layout
    key: Layout = field(default_factory=lambda: Layout(Encoding.RAW))
    time: TimeColumn | None = None
    """Event time; a column of the decoded value. None: only offsets and record times tell when."""
    isolation: Isolation = Isolation.COMMITTED
    slack_before: timedelta = timedelta(hours=1)
    slack_after: timedelta = timedelta(hours=1)
    """How much earlier and later than its event time a record may carry its record time."""
    to_end: bool = False
    """Read to the end of the log instead of trusting `slack_after`."""
    transactional: bool = False
    """Producers use transactions: their markers take offsets that hold no record."""
    tombstones: bool = False
    """Records without a value are handed over too, as rows whose columns are null."""
    quarantine: Quarantine | None = None
    archive: Archive | None = None
    to_archive: bool = False
    """Read to be archived: every record as the log has it, with the topic's id."""

    @property
    def time_columns(self) -> tuple[TimeColumn, ...]:
        return () if self.time is None else (self.time,)


@dataclass(frozen=True, slots=True)
class KafkaAccess:
    """How clients reach the brokers. Holds secrets: never stored, never printed."""

    servers: str
    client: dict[str, str] = field(default_factory=dict, repr=False)
    """Options of librdkafka, for the control plane."""
    spark: dict[str, str] = field(default_factory=dict, repr=False)
    """Options of Spark's connector, each with its `kafka.` prefix."""
    registry: dict[str, str] = field(default_factory=dict, repr=False)
    """Options of the schema registry's client besides its address."""
