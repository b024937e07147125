"""A stream replayed by a run: which state it starts from, how event time advances, and why it is no batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from pydantic import Field

from backcast.model.document import Document, later
from backcast.model.run import Event
from backcast.model.throttle import Throttle
from backcast.model.time import Interval
from backcast.model.watermark import WatermarkStrategy

USUAL_BATCH = 50_000
"""Records of a batch, where neither the stream nor a throttle says fewer."""


class Mend(StrEnum):
    """What makes a run give a stream's own rows all the same."""

    STATE = "state"
    """Only a query that begins with the state that the stream had."""
    WARM_UP = "warm-up"
    """A batch does, when it reads as far around the window as the pipeline's `warm_up` says."""
    NOTHING = "nothing"
    """Neither a batch nor another query does."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Why a streaming query may give other rows than its transform over a batch."""

    because: str
    """A sentence."""
    mend: Mend
    beyond: bool = False
    """Rows of a window may need records from behind it, too."""


class ReplayPin(Document):
    """What a plan says about the replay of a stream. Part of the manifest."""

    stream: str
    strategy: WatermarkStrategy
    because: str
    """Why this strategy, in a sentence."""
    checkpoint: str = ""
    query_id: str = ""
    batch: int | None = None
    """It starts with the state after this batch of the live query; None: with no state, where the windows begin."""
    positions: dict[int, int] = Field(default_factory=dict)
    """What the live query had read by then: the next offset of each partition."""
    column: str = ""
    delay_seconds: Annotated[int, later(0)] = 0
    most_per_trigger: Annotated[int | None, later(None)] = None
    """Records that one batch takes at the most, so that windows do not all close at once. Plans of earlier releases may
    leave it open.
    """

    ends: Annotated[dict[int, int], later({})] = Field(default_factory=dict)
    """Of a full replay: where the query stood after that batch, which is its own."""
    takeover: Annotated[bool, later(False)] = False
    """A full replay: its query has computed the rows already, and goes on as the stream."""

    tables: Annotated[dict[str, str | None], later({})] = Field(default_factory=dict)
    """Of a full replay: at which versions its query has read the other inputs, by their names."""

    beyond: Annotated[bool, later(False)] = False
    """What belongs to its windows may come behind them; a run reads no further than the pipeline's `warm_up` says."""

    computed: Annotated[WatermarkStrategy | None, later(None)] = None
    """Of corrections: how the windows that late records touch are computed, `batch` or `sorted`."""
    windows: Annotated[tuple[Interval, ...], later(())] = ()
    """Of corrections: these windows. Others stay as the stream wrote them."""
    late: Annotated[int, later(0)] = 0
    """Of corrections: records that the stream dropped in them."""
    unknown: Annotated[int, later(0)] = 0
    """Of corrections: records in them of which its checkpoint no longer tells whether it did."""

    @property
    def batch_records(self) -> int:
        """Records that one batch takes at the most."""
        return self.most_per_trigger or USUAL_BATCH

    @property
    def order(self) -> WatermarkStrategy:
        """How the rows that are computed are computed."""
        return self.computed or self.strategy

    @property
    def streamed(self) -> bool:
        """Whether a streaming query computes the rows."""
        return self.order is not WatermarkStrategy.BATCH

    @property
    def ordered(self) -> bool:
        """Whether that query gets its records as files in the order of event time, instead of from the topic."""
        return self.order in (WatermarkStrategy.SORTED, WatermarkStrategy.PARTITIONS)


def batch_records(declared: int | None, throttle: Throttle | None, partitions: Callable[[], int]) -> int:
    """Records that one batch of a replay takes at the most: as the stream says, or usually; a pace may ask for fewer.

    A history that came in one batch would close all its windows at once.
    """
    paced = None if throttle is None else throttle.most(partitions() if throttle.per_partition else 1)
    usual = declared or USUAL_BATCH
    return usual if paced is None else min(usual, paced)


REPLAYED = "replayed"
"""The event that tells of it."""
FAST = 10
"""Times faster than the events happened: what a replay is expected to be at the least."""


class Replayed(Document):
    """What a replay did, on record with its run."""

    batches: int
    seconds: float
    """Both of the process that ended it, which may have gone on where another one died."""
    event_seconds: float
    """The event time that was asked for."""

    @property
    def speed(self) -> float:
        """How many times faster than the events once happened."""
        return self.event_seconds / self.seconds if self.seconds else 0.0

    @property
    def slow(self) -> bool:
        """Whether a replay of it takes long enough for somebody to ask why."""
        return self.speed < FAST


def replayed(events: Iterable[Event]) -> Replayed | None:
    """What the run's replay did, once it has come to its end."""
    found = next((event.data for event in events if event.name == REPLAYED), None)
    return None if found is None else Replayed.model_validate({name: found[name] for name in Replayed.model_fields})
