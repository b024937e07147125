"""What a dataset lacks: pieces of time, hours, offsets, rows that its sources would make; and the plans that add it."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from backcast.model.calendar import Week
from backcast.model.document import Document
from backcast.model.health import Gap
from backcast.model.log import OffsetRange, Ranges
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
    """The topic could not be asked: no pipeline that reads exactly one fills the dataset, or brokers do not answer."""


class Hole(Document):
    """Offsets that no row carries: between two that rows do, or where the log, streams or runs say that some should."""

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
    pending: Ranges = ()
    """Offsets that no row carries because no stream or run has come to them yet."""
    between_rows: str = ""
    """Why only holes between two rows were looked for; empty when the log was held against them too."""
    unanswered: str = ""
    """Why the topic did not say; empty when it did, or was not asked."""
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
        return not (self.gaps or self.hours or self.lacking or short or self.unanswered)


def joined_holes(holes: Iterable[Hole]) -> tuple[Hole, ...]:
    """Neighbours of which the log says the same as one; holes come in order."""
    found: list[Hole] = []
    for each in holes:
        last = found[-1] if found else None
        if last is not None and (last.range.partition, last.range.end, last.fate) == (
            each.range.partition,
            each.range.start,
            each.fate,
        ):
            found[-1] = Hole(range=last.range.model_copy(update={"end": each.range.end}), fate=each.fate)
        else:
            found.append(each)
    return tuple(found)
