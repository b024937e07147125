"""A stream whose checkpoint cannot be trusted: what the table proves, what the log still has, and what to do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum

from backcast.errors import Refused
from backcast.model.document import Document
from backcast.model.integrity import Integrity
from backcast.model.live import LiveBatch, StreamStatus
from backcast.model.log import OffsetRange, Ranges

RECOVERED = "recover.checkpoint"
"""The step that put a fresh checkpoint in place."""
NO_BATCH = -1
"""What stands before the first batch of a query."""


class Way(StrEnum):
    """How a stream comes back."""

    START = "start"
    """Its checkpoint is whole and stands where the table does."""
    FRESH = "fresh checkpoint"
    """A new one that begins behind the last record whose rows the table has."""


class Recovery(Document):
    """What was found, and what follows from it. Nothing has been changed yet."""

    stream: str
    pipeline: str
    dataset: str
    table: str
    checkpoint: str
    query_id: str
    """Of the query whose batches the table has."""
    damages: tuple[str, ...]
    """What is wrong with the checkpoint, a line each."""
    recoverable: int | None
    """The newest batch of it after which the stream could go on."""
    stateful: bool
    position: dict[int, int] | None
    """Where the checkpoint stands: the next offset of each partition. None when it does not tell."""
    proven: dict[int, int]
    """Where the table stands, by the lineage of its own commits."""
    batch: int
    """The newest batch of the query that the table has, or NO_BATCH."""
    version: str | None
    """Of the table, in which it came."""
    gone: Ranges
    """Offsets behind that which the log no longer has."""
    lacking: Ranges
    """Those of them, and of what an earlier recovery went past, that no run has added to the table."""
    by_offset: bool
    """Whether the pipeline can add exactly these: it appends or merges."""
    by_window: bool = False
    """Whether the windows that lack them can be restated before the stream starts, from the archive too."""
    archived: bool
    """Whether the topic has an archive to take them from."""
    way: Way
    why: str
    external: bool = False
    """Others run it, and start it again."""
    by: str = ""
    """What proves where the table stands; empty: the stream's own commits do."""
    integrity: Integrity | None = None
    """Of the table; None until somebody has looked."""

    def moved(self, now: Recovery) -> str:
        """What a later look finds otherwise, in words; empty while all that a decision rests on is the same."""
        words = {
            "query_id": "another query runs the stream",
            "proven": "the table proves other offsets",
            "gone": "the log has lost more",
            "lacking": "other offsets are lacking in the table",
            "position": "the checkpoint stands elsewhere",
            "damages": "the checkpoint has other damages",
            "stateful": "its transform is another one",
            "way": "another way back follows",
        }
        return ", ".join(told for name, told in words.items() if getattr(self, name) != getattr(now, name))

    @property
    def starting(self) -> dict[int, int]:
        """Where a fresh checkpoint begins: a log that was cut begins later."""
        return self.proven | {each.partition: each.end for each in self.gone}


class Recovered(Document):
    """What `stream recover` did."""

    found: Recovery
    after: Integrity | None
    """Of the table once what was lacking is in it; None when nothing had to be added."""
    stream: StreamStatus | None
    """As it runs again; None when it was not started."""


def proven_position(
    ends: Mapping[int, int], batch: int, known: Iterable[LiveBatch], over: tuple[int, Mapping[int, int]] | None = None
) -> dict[int, int]:
    """Behind the last record whose rows the table has: behind its newest commit, and behind the batches after it that
    are known to have had no rows for it.

    `known` are batches of the query on record, the one that was begun last first. `over`: the newest batch that the
    checkpoint of the same query has behind it, and where that ends; None: nobody can tell. A checkpoint may have gone
    back: what lies in front of it is computed again, and may have rows then.
    """
    position, reached = dict(ends), batch
    for each in sorted(_standing(known), key=lambda one: one.batch):
        follows = each.last_with_rows == batch or (each.last_with_rows is None and each.batch == reached + 1)
        if each.batch > reached and follows and each.landed and not _has_rows(each):
            position |= {one.partition: one.end for one in each.offsets}
            reached = each.batch
    if over is None or over[0] >= reached:
        return position
    return {**ends, **(over[1] if over[0] > batch else {})}


def last_with_rows(number: int, known: Iterable[LiveBatch], there: int | None) -> int | None:
    """The newest batch of a query with rows before that one, or NO_BATCH; None when nobody can tell.

    `known` are batches of it on record, `there` is its newest one that the table has.
    """
    before = {each.batch: each for each in known if each.batch < number}
    if not before and there is None:
        return NO_BATCH
    while number > 0:
        number -= 1
        each = before.get(number)
        if number == there or (each is not None and each.landed and _has_rows(each)):
            return number
        if each is None or not each.landed:
            return None
        if each.last_with_rows is not None:
            return each.last_with_rows
    return NO_BATCH


def _has_rows(batch: LiveBatch) -> bool:
    return batch.version is not None or batch.rows_out > 0


def _standing(known: Iterable[LiveBatch]) -> Iterator[LiveBatch]:
    """Without those that a query left which has gone back since, and begun an earlier batch anew."""
    lowest = None
    for each in known:
        if lowest is None or each.batch < lowest:
            lowest = each.batch
            yield each


def ranges_of(offsets: str) -> Ranges:
    """What a batch read, by the lineage of its commit: `0=100..200,1=50..80`."""
    pairs = (each.partition("=") for each in offsets.split(",") if each)
    spans = ((int(partition), span.partition("..")) for partition, _, span in pairs)
    return tuple(OffsetRange(partition=number, start=int(start), end=int(end)) for number, (start, _, end) in spans)


def ends_of(offsets: str) -> dict[int, int]:
    """Where it ended."""
    return {each.partition: each.end for each in ranges_of(offsets)}


def cut_off(position: Mapping[int, int], log_starts: Mapping[int, int]) -> Ranges:
    """Offsets from the position on that the log begins after."""
    return tuple(
        OffsetRange(partition=partition, start=offset, end=log_starts[partition])
        for partition, offset in sorted(position.items())
        if log_starts.get(partition, 0) > offset
    )


def way_back(
    *, sound: bool, position: Mapping[int, int] | None, proven: Mapping[int, int], gone: Ranges = ()
) -> tuple[Way, str]:
    """And why that one."""
    if sound and position == proven and gone:
        # Spark refuses to go on in front of the log.
        return Way.FRESH, "the log begins behind where the checkpoint stands"
    if sound and position == proven:
        return Way.START, "the checkpoint is whole, and stands where the table does"
    if not sound:
        return Way.FRESH, "the checkpoint is damaged"
    if position is None:
        return Way.FRESH, "there is no checkpoint"
    return Way.FRESH, "the checkpoint stands elsewhere than the table"


def refuse_losing_state(found: Recovery, *, without_state: bool) -> None:
    """Raises Refused for a fresh checkpoint of a stream that keeps state, unless that is meant."""
    if not found.stateful or without_state:
        return
    name = found.stream
    if found.gone:
        hint = "no state can have what the log lost: "
    elif found.recoverable is not None:
        hint = f"backcast checkpoint rewind {name} --to-batch {found.recoverable}; or "
    else:
        hint = f"backcast checkpoint restore {name} --from BACKUP; or "
    raise Refused(
        f"stream {name} keeps state, which a fresh checkpoint does not have: windows that were open would be wrong",
        hint=f"{hint}backcast stream recover {name} --without-state, and correct those windows later:"
        f" backcast plan {found.pipeline} --stream {name} --from DAY --to DAY",
    )
