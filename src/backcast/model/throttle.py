"""How a run holds back, so that what is live beside it keeps its share of the machines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import AfterValidator, Field

from backcast.model.document import Document, later
from backcast.model.hours import written
from backcast.model.words import many

BATCH_SECONDS = 10
"""A batch of a query that keeps a pace takes what the pace gives in so many seconds, not more."""


@dataclass(frozen=True, slots=True)
class Work:
    """What one job did, or one batch of a query."""

    rows: int
    seconds: float
    busiest: int = 0
    """Offsets that it read of the partition of a topic of which it read most."""
    bytes: int = 0
    """Of the files that it wrote."""


@dataclass(frozen=True, slots=True)
class Behind:
    """How far a live stream is behind its topic."""

    records: int
    position: tuple[tuple[int, int], ...] = ()
    """The next offset of each partition that it reads."""
    known_to_run: bool = True
    """Its process is known. Of one that others run nobody knows more than that its position moves."""
    note: str = ""
    """Why it may be more by now: nobody could be asked."""


_Positive = Annotated[int, Field(ge=1)]


class Throttle(Document):
    """Limits of each process that works on a run, or of all of them together. They change when rows are computed, never
    which.
    """

    rows_per_second: _Positive | None = None
    per_partition: Annotated[_Positive | None, later(None)] = None
    """Records a second that are read of any partition of a topic: what the broker that leads it has to give."""
    bytes_per_minute: Annotated[_Positive | None, later(None)] = None
    """Of the files that jobs write."""
    commits_per_hour: Annotated[_Positive | None, later(None)] = None
    """Jobs of the run that commit to its stage in any hour, whatever processes take part."""
    parallel_jobs: Annotated[_Positive | None, later(None)] = None
    """Jobs of the run that are at work at the same time, whatever processes take part."""
    pause_seconds: Annotated[int, Field(ge=0)] = 0
    """At least so long between two jobs."""
    hours: Annotated[Annotated[str, AfterValidator(written)] | None, later(None)] = None
    """Outside of them no job begins: `22:00-06:00 Europe/Berlin`."""
    live_lag: Annotated[int, Field(ge=0)] | None = None
    """Records that a live stream may be behind; no job begins while one of them is further behind."""
    streams: tuple[str, ...] = ()
    """Those that write to the same table."""

    def rest(self, work: Work) -> float:
        """How long to wait after a job, from its end on."""
        bytes_per_second = None if self.bytes_per_minute is None else self.bytes_per_minute / 60
        paces = (
            (work.rows, self.rows_per_second),
            (work.busiest, self.per_partition),
            (work.bytes, bytes_per_second),
        )
        due = (amount / pace - work.seconds for amount, pace in paces if pace is not None)
        return max(float(self.pause_seconds), *due, 0.0)

    def most(self, partitions: int) -> int | None:
        """Records that one batch over a topic of so many partitions may take; None: the pace says nothing."""
        paces = (self.rows_per_second, None if self.per_partition is None else self.per_partition * partitions)
        return min((each * BATCH_SECONDS for each in paces if each is not None), default=None)

    def at_any_time(self) -> Throttle:
        """Without its hours: while a stream stands, nobody waits for the night."""
        return self.model_copy(update={"hours": None})

    def told(self) -> str:
        """For people: `at most 50,000 rows a second, 5 s between jobs, ...`."""
        limits = (
            (self.rows_per_second, "row", "a second"),
            (self.per_partition, "record", "a second of a partition"),
            (self.bytes_per_minute, "byte", "a minute"),
            (self.commits_per_hour, "commit", "to the stage in an hour"),
            (self.parallel_jobs, "job", "at once"),
        )
        parts = [f"at most {many(most, noun)} {per}" for most, noun, per in limits if most is not None]
        if self.hours is not None:
            parts.append(f"jobs begin at {self.hours} only")
        if self.pause_seconds:
            parts.append(f"{self.pause_seconds:,} s between jobs")
        if self.live_lag is not None:
            late = f"waits while {' or '.join(self.streams)} is more than {self.live_lag:,} records behind"
            parts.append(late if self.streams else "live_lag waits for nobody: no stream here writes to the table")
        return ", ".join(parts)
