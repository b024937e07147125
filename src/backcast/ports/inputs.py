"""What the flow asks of what a pipeline reads: pinned by the plan, read as it was pinned."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from backcast.model.coverage import Coverage
    from backcast.model.manifest import InputPin
    from backcast.model.request import Request
    from backcast.model.scope import Predicate
    from backcast.model.table import TableIdentity
    from backcast.model.time import Interval


@dataclass(frozen=True, slots=True)
class Reading:
    """Rows of an input."""

    rows: DataFrame
    log: LogReading | None = None


@dataclass(frozen=True, slots=True)
class Sifted:
    """A transform's rows, and the records that it rejected."""

    kept: DataFrame
    rejected: DataFrame
    """Position and reason, not computed yet; of one record as often as the transform said so."""
    count: Callable[[], int | None]
    """How many were left out when `kept` was written; None when that was lost."""
    strangers: Callable[[], int | None]
    """How many of them are of a topic that is no input: nobody would keep them. None when that was lost."""


@dataclass(frozen=True, slots=True)
class Unusable:
    """Records that a job has to set aside."""

    undecoded: int
    rejected: DataFrame | None
    """As `Sifted` has them; None when there are none."""
    before: int
    """Set aside by other jobs of the run."""


class LogReading(Protocol):
    """What a job that reads a log can tell once its rows were written."""

    @property
    def topic(self) -> str:
        """Whose records they are."""

    @property
    def most(self) -> int | None:
        """How many records a run may set aside; None: there is no place for any."""

    def proof(self) -> tuple[Coverage, int]:
        """What became of the offsets that its chunks own, and how many rows it handed over."""

    def quarantine(self, run_id: str, chunks: tuple[str, ...], found: Unusable, at: datetime) -> int:
        """Keep these records, each once however often a job is repeated; how many of them were rejected, and count
        in this job alone.

        Raises ChunkFailed when there is no place for them, QuarantineFull when they are more than was allowed.
        """


class Input(Protocol):
    """What a pipeline reads: pinned by the plan, read as it was pinned. Never written to."""

    def identity(self) -> TableIdentity:
        """What it is and which columns it has, now."""

    def pin(self, windows: Mapping[str, Interval], now: datetime) -> InputPin:
        """What the chunks, given by id with the time that each needs, will read. Raises nothing for what is gone."""

    def check(self, pin: InputPin, windows: Mapping[str, Interval]) -> None:
        """Raises Drifted when what was pinned is gone, or is something else by now, as far as these chunks need it."""

    def read(self, pin: InputPin, windows: Mapping[str, Interval]) -> Reading:
        """Exactly the rows that were pinned for these chunks."""

    def placed(self, pin: InputPin, windows: Mapping[str, Interval]) -> Mapping[str, Predicate] | None:
        """Which of these rows each chunk has for its own, by their time; None when no time of theirs says so."""


class SharedLog(Input, Protocol):
    """An input that is a log, of which a stream may have read a part."""

    def beside(self, stream: str, position: Callable[[], Mapping[int, int] | None]) -> Input:
        """The same, but windows are pinned up to the position that the stream has then: the rest is left to it.

        None: it has none yet, and nothing is left to it.
        """


class LogInput(SharedLog, Protocol):
    """A log whose offsets may cut a run."""

    def pin_offsets(self, request: Request, window: Interval | None, now: datetime, most: int) -> InputPin:
        """What the request asks for, in at most so many slices of about the same size, each a chunk."""
