"""What a dataset lacks: pieces of time, hours, offsets, rows that its sources would make; and the plans that add it."""

from __future__ import annotations

from enum import StrEnum

from backcast.model.calendar import Week
from backcast.model.document import Document
from backcast.model.health import Gap
from backcast.model.log import OffsetRange
from backcast.model.request import Request
from backcast.model.time import Grain, Interval


class Fate(StrEnum):
    """What the log has at offsets that no row carries."""

    THERE = "there"
    """Records: no row was made of them."""
    EMPTY = "empty"
    """Nothing: markers of transactions, or compaction."""
    GONE = "gone"
    """Retention took some of them, so nobody can say."""
    UNKNOWN = "unknown"
    """No pipeline that reads exactly one topic fills the dataset."""


class Hole(Document):
    """Offsets between two that rows carry, and that no row carries."""

    range: OffsetRange
    fate: Fate


class Differing(Document):
    """A piece of time with another number of rows than a run would give it now."""

    window: Interval
    rows: int
    expected: int


class Against(Document):
    """The dataset against what a pipeline would make of its sources now, by the number of rows."""

    pipeline: str
    expected: int
    differing: tuple[Differing, ...]
    """Pieces with rows, but not as many; those without any are gaps."""
    problem: str = ""
    """Why it cannot be judged; empty when it was."""


class PlannedFix(Document):
    """A plan that was made of a request here."""

    run_id: str
    recorded: bool
    chunks: int
    problem: str = ""
    """The first reason why it was refused."""


class Gaps(Document):
    """What a dataset lacks, in one window."""

    dataset: str
    table: str
    version: str | None
    grain: Grain
    zone: str
    window: Interval | None
    """None for a dataset without rows, when no window was asked for."""
    rows: int
    pieces: int
    calendar: Week
    closed: int
    """Pieces without rows of which none is expected."""
    gaps: tuple[Gap, ...]
    hours: tuple[Gap, ...]
    """Hours without rows, of pieces that have some. None are told of where the time column knows no hours."""
    holes: tuple[Hole, ...]
    """The first of them; of datasets whose rows carry positions."""
    positions: bool
    """Whether rows carry positions."""
    against: Against | None
    pipeline: str | None
    """Which one would fill the gaps."""
    requests: tuple[Request, ...]
    """Exactly what is missing; several when one request cannot say it."""
    notes: tuple[str, ...]
    """What the requests leave out, and why."""
    plans: tuple[PlannedFix, ...] = ()

    @property
    def lacking(self) -> tuple[Hole, ...]:
        return tuple(each for each in self.holes if each.fate is not Fate.EMPTY)

    @property
    def sound(self) -> bool:
        against = self.against
        short = against is not None and (against.differing or against.problem)
        return not (self.gaps or self.hours or self.lacking or short)
