"""The life of a stream that is run here, as the store keeps it: where it stands, its batches, what was asked of it."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any

from pydantic import Field

from backcast.model.document import Document
from backcast.model.log import Ranges
from backcast.model.run import Lease

KEPT_BATCHES = 500
"""Of each stream on record; a table's own commits tell about older ones."""


class LiveState(StrEnum):
    """What is on record about the process that runs a stream. Whether it lives, its lease tells."""

    STARTING = "starting"
    """Until its first batch is over, or there is nothing to read, or that batch takes its time."""
    RUNNING = "running"
    STOPPED = "stopped"
    """Behind a committed batch, unless it was forced: then the batch that was cut off is repeated."""
    FAILED = "failed"


class Stop(StrEnum):
    """How a stream that runs was asked to stop."""

    BOUNDARY = "boundary"
    """Once the batch that is under way is committed."""
    NOW = "now"
    """In the middle of its batch, which the next start repeats."""


class LiveStream(Document):
    """One row of the list of streams."""

    name: str
    state: LiveState
    query_id: str | None
    """Spark's name for the query, from its checkpoint; None before the first start got that far."""
    pipeline: str
    version: str
    """Of the transform."""
    code: str
    """Digest of the project's code that the transform consists of."""
    topic: str
    topic_id: str
    dataset: str
    table: str
    checkpoint: str
    started_at: datetime
    changed_at: datetime
    token: int = 0
    """Of the lease of the process that this tells about."""
    detail: str = ""
    """Why it is in this state, when that needs words."""
    hint: str = ""
    """What to type next, when that is not a new start."""


class LiveBatch(Document):
    """One batch: written down before the table is touched, completed after."""

    stream: str
    query_id: str
    batch: int
    offsets: Ranges
    """What it reads of the topic; at most one range for each partition."""
    base: str | None
    """The table's version when it was intended: what landed since lies behind it."""
    at: datetime
    version: str | None = None
    """The table's version that holds it."""
    landed: bool = False
    waits: bool = False
    """Computed by nobody yet, because a run keeps the table frozen."""
    rows_in: int | None = None
    """As Spark counted them: None until it has."""
    rows_out: int = 0
    """Rows added to the table, or put in place of older ones."""
    last_with_rows: int | None = None
    """The newest batch of the query before it that has rows: those between landed without. -1: none before it has any;
    None: nobody knows. It outlives the records of those batches."""
    set_aside: int = 0
    """Records that could not be used and went to quarantine."""
    watermark: datetime | None = None
    """What the next batch goes by."""
    late_rows: int = 0
    """Dropped as late. Spark counts groups, not rows, where it adds up before it looks: the true number is no less."""
    operators: int | None = None
    """How many of the query's operators keep state; None until Spark has told."""
    log_end: dict[int, int] = Field(default_factory=dict)
    """Where each partition ended when the batch was planned."""
    seconds: float | None = None

    @property
    def lag(self) -> int:
        """Records that were in the log and not in the batch."""
        ends = {each.partition: each.end for each in self.offsets}
        return sum(max(0, end - ends.get(partition, 0)) for partition, end in self.log_end.items())


class LiveStep(Document):
    """One step of a command that works on a stream in several: repeated, it goes on behind the last."""

    stream: str
    number: int
    at: datetime
    name: str
    data: dict[str, Any]


class StreamPosition(Document):
    """Where the checkpoint of a stream that others run stands, behind its newest committed batch."""

    batch: int
    begun: datetime
    ends: dict[int, int]
    """By partition: the first offset that is not read."""
    watermark: datetime | None = None
    """In force when the batch began."""


class UnderWay(Document):
    """A command of several steps that has begun on a stream and is not over."""

    what: str
    """In words: `a full replay`."""
    again: str
    """The command that goes on with it."""
    lease: str
    """What that command holds while it works."""
    stands: bool
    """It has stopped the stream, which nobody else may start before it is over."""
    alive: bool = False
    """Whether the command works right now."""


class StreamStatus(Document):
    """A declared stream, and what is on record about it."""

    name: str
    pipeline: str
    topic: str
    dataset: str
    table: str
    checkpoint: str
    external: bool
    live: LiveStream | None = None
    lease: Lease | None = None
    """Who runs it now, or did until it died."""
    alive: bool = False
    """Whether that process may still act."""
    asked: Stop | None = None
    batches: tuple[LiveBatch, ...] = ()
    """The newest first."""
    position: StreamPosition | None = None
    """Of a stream that others run: where its checkpoint stands. Where ours stand, their batches tell."""
    unknown: str = ""
    """Why that is not known."""
    under_way: UnderWay | None = None
    next: str = ""
    """What to type next."""

    @property
    def state(self) -> str:
        """In one word: what is on record and who lives, taken together."""
        if self.external:
            return "external"
        if self.live is None:
            return "starting" if self.alive else "never started"
        runs = self.live.state in (LiveState.STARTING, LiveState.RUNNING)
        if not self.alive:
            return "died" if runs else self.live.state.value
        token = 0 if self.lease is None else self.lease.token
        if not runs:
            return "stopping" if token and token == self.live.token else "starting"
        if 0 not in (token, self.live.token) and token != self.live.token:
            # What is on record is about a process that is gone.
            return "starting"
        return "stopping" if self.asked is not None else self.live.state.value


_STREAM_LEASE = "stream/"


def stream_lease(name: str) -> str:
    """The lease of the process that runs a stream: nobody else may write for it."""
    return f"{_STREAM_LEASE}{name}"


def stream_of(lease: str) -> str | None:
    """The stream whose lease that is; None for a lease of something else."""
    return lease.removeprefix(_STREAM_LEASE) if lease.startswith(_STREAM_LEASE) else None


def replay_lease(name: str) -> str:
    """The lease of the command that replays a stream."""
    return f"full-replay/{name}"


def backfill_lease(name: str) -> str:
    """The lease of the command that backfills a stream's table."""
    return f"stream-backfill/{name}"


def slice_lease(name: str) -> str:
    """The lease of the process whose Spark reads on for a replay of the stream."""
    return f"full-replay-slice/{name}"


def freeze_lease(table: str) -> str:
    """The lease of a run during which no stream of ours writes to the table."""
    return f"freeze/{table}"
