"""What a live query asks of the world: a place for its record, and a table that takes each batch once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from backcast.model.analysis import Combines
    from backcast.model.live import LiveBatch, LiveStep, LiveStream, Stop
    from backcast.model.log import Ranges, TopicFacts
    from backcast.model.report import OnProgress
    from backcast.model.run import Lease
    from backcast.model.table import Merging
    from backcast.ports.clock import Clock


class StreamReader(Protocol):
    """Reads what is on record about streams. Works without Spark and without user code."""

    def stream(self, name: str) -> LiveStream | None:
        """None for one that was never started here."""

    def batches(self, name: str, limit: int) -> list[LiveBatch]:
        """The one that was begun last first, whatever hosts took for the time."""

    def steps(self, name: str) -> list[LiveStep]:
        """What commands on the stream have done, oldest first."""

    def asked(self, name: str) -> Stop | None:
        """How the stream was asked to stop since somebody took its lease last."""


class StreamStore(StreamReader, Protocol):
    """Writes it. With a lease: raises StateConflict when that was lost."""

    def save(self, stream: LiveStream, lease: Lease) -> None:
        """Where the stream stands now."""

    def ask(self, name: str, how: Stop) -> None:
        """Ask the process that runs it to stop. Whoever takes the stream's lease next was asked nothing."""

    def record(self, batch: LiveBatch, lease: Lease) -> None:
        """The intent of a batch, or more about one. Only the newest are kept."""

    def step(self, name: str, what: str, **data: Any) -> None:
        """Add a step."""


@dataclass(frozen=True, slots=True)
class LiveWrite:
    """One batch on its way into a table."""

    stream: str
    query_id: str
    batch: int
    offsets: str
    """What it reads, in words: `0=100..200,1=50..80`."""
    properties: dict[str, str]
    """What the commit says about itself besides the three above."""
    merging: Merging | None = None
    """None: rows are added."""


@dataclass(frozen=True, slots=True)
class LiveCommit:
    """A batch that is in the table."""

    batch: int
    version: str | None
    """None for a batch without a row, which leaves no commit."""
    rows: int
    offsets: str | None
    """As the commit tells them; None when the table no longer says."""


class LiveTarget(Protocol):
    """A table that takes each batch of a query once, whoever brings it and however often."""

    def head(self) -> str | None:
        """The version that readers see."""

    def newest(self, stream: str, query_id: str, base: str | None) -> LiveCommit | None:
        """The newest batch of that query that the table has; None for none.

        Raises OutcomeUnknown when nobody can tell what landed since the base.
        """

    def write(self, write: LiveWrite, rows: DataFrame, ready: Callable[[], None]) -> LiveCommit:
        """Land the rows in one commit. `ready` is called when they are computed and before they land: it may raise.

        Raises StateConflict when the table has this batch, or a later one of the query, already.
        """


@dataclass(frozen=True, slots=True)
class Position:
    """How far the checkpoint of a query has come. Nothing known: there is no checkpoint yet."""

    query_id: str | None = None
    committed: int | None = None
    """The newest batch that is over."""
    planned: int | None = None
    """The newest batch whose offsets are fixed; it is repeated when it is not over."""
    ends: dict[int, int] = field(default_factory=dict)
    """The next offset of each partition behind the newest batch that is over."""
    topics: tuple[str, ...] = ()


class LiveSource(Protocol):
    """The topic of a stream."""

    def facts(self) -> TopicFacts:
        """As the brokers have it now."""

    def frame(self) -> DataFrame:
        """The topic without end, decoded, for a transform."""

    def set_aside(self, stream: str, batch: int, ranges: Ranges, rejected: DataFrame | None, at: datetime) -> int:
        """Keep what a batch could not use, each record once; how many. Raises when there is no place for them."""


@dataclass(frozen=True, slots=True)
class LiveHost:
    """What the process that runs a query answers for."""

    store: StreamStore
    lease: Callable[[], Lease]
    """The right to write for the stream; raises LeaseHeld once it may be lost."""
    asked: Callable[[], Stop | None]
    """Whether the stream should stop."""
    frozen: Callable[[], str | None]
    """Who keeps streams from writing to the table, in words; None: nobody."""
    started: Callable[[str], None]
    """Told the query's id before its first batch does anything."""
    running: Callable[[], None]
    """Told once the query is seen to work."""
    clock: Clock
    on_progress: OnProgress


class LiveQuery(Protocol):
    """A declared stream, ready to run."""

    def position(self) -> Position:
        """Where its checkpoint stands."""

    def topic(self) -> TopicFacts:
        """As the brokers have it now."""

    def newest(self, query_id: str) -> LiveCommit | None:
        """The newest batch of that query that the table has; None for none."""

    def stateful(self) -> bool:
        """Whether it keeps state between its batches. Runs no job."""

    def remembers(self) -> tuple[Combines, ...]:
        """What its transform does to records that lets several of them decide about one row. Runs no job."""

    def code(self) -> str:
        """Digest of the code that the transform consists of."""

    def run(self, host: LiveHost, *, once: bool) -> None:
        """Until it is asked to stop; with `once`, until it has read what is in the log now.

        Returns when it ended at a committed batch, or was interrupted on request; raises what stopped it otherwise.
        """
