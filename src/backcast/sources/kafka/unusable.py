"""Records that a job cannot use: counted, judged by what the source allows, and kept."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from backcast.errors import BackcastError, ChunkFailed, QuarantineFull
from backcast.model.quarantine import POSITION, REJECTED
from backcast.model.source import LogSource
from backcast.model.words import many
from backcast.ports import Unusable
from backcast.sources.kafka.decode import PROBLEM
from backcast.sources.kafka.quarantine import write_quarantine

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MINE = "_mine"
"""Whether a rejected record is counted by this job; null when the job did not read it."""
_NAMED = 3


@dataclass(frozen=True, slots=True)
class Aside:
    """What one job sets aside."""

    run_id: str
    chunks: tuple[str, ...]
    found: Unusable
    problems: DataFrame
    """Position and problem of what could not be decoded."""
    rejected: DataFrame | None
    """The same of what the transform rejected, with `MINE`."""
    at: datetime
    stream: str | None = None
    """Whose batch it is, when it is not a run's job."""


def set_aside(source: LogSource, aside: Aside) -> int:
    """Keep the records; how many of them the transform rejected."""
    with _counted(source, aside.rejected) as (mine, number):
        frame = aside.problems if mine is None else aside.problems.unionByName(mine)
        total = aside.found.undecoded + number
        if not total:
            return 0
        place = source.quarantine
        if place is None or aside.found.before + total > place.most:
            raise _refusal(source, aside, number, frame)
        write_quarantine(frame.sparkSession, place.table, aside.run_id, frame, aside.chunks, aside.at)
        return number


@contextmanager
def _counted(source: LogSource, rejected: DataFrame | None) -> Iterator[tuple[DataFrame | None, int]]:
    """Those that are counted here, computed once, and how many they are."""
    if rejected is None:
        yield None, 0
        return
    kept = rejected.persist()
    try:
        row = kept.agg(F.count(F.when(F.col(MINE), 1)), F.count(F.when(F.col(MINE).isNull(), 1))).collect()[0]
        if row[1]:
            raise ChunkFailed(
                f"the transform rejects {many(row[1], 'record')} with a `{POSITION}` that is not of topic"
                f" {source.topic}",
                hint=f"return `{POSITION}` as it came beside `{REJECTED}`",
            )
        yield kept.where(MINE).drop(MINE), row[0]
    finally:
        kept.unpersist()


def _refusal(source: LogSource, aside: Aside, rejected: int, frame: DataFrame) -> BackcastError:
    undecoded, before = aside.found.undecoded, aside.found.before
    first = "; ".join(
        f"partition {row[POSITION]['partition']}, offset {row[POSITION]['offset']}: {row[PROBLEM]}"
        for row in frame.limit(_NAMED).collect()
    )
    told = f"{many(undecoded, 'record')} of topic {source.topic} cannot be decoded"
    if rejected:
        others = f"the transform rejects {many(rejected, 'record')}"
        told = f"{told} and {others}" if undecoded else f"{others} of topic {source.topic}"
    place = source.quarantine
    again = "" if aside.stream is None else f"; then backcast stream start {aside.stream}"
    if place is None:
        return ChunkFailed(
            f"{told}, and there is no quarantine for them: {first}",
            hint=f"mend the declaration or the transform, or set `quarantine` under sources.{source.name}{again}",
        )
    others, whole = ("chunks", "a run") if aside.stream is None else ("batches", "this stream")
    so_far = f" after {before:,} in other {others}" if before else ""
    return QuarantineFull(
        f"{told}{so_far}, and {place.most:,} are allowed in {whole}: {first}",
        hint=f"mend the declaration or the transform, or raise `most` under sources.{source.name}.quarantine"
        + (again or f"; then backcast cancel {aside.run_id}, and plan it again"),
    )
