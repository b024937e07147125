"""What the log of a topic has and its archive lacks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from backcast.errors import InvalidRequest, PlanRefused
from backcast.model.log import OffsetRange, PartitionState, Ranges
from backcast.model.pieces import layers
from backcast.sources.kafka.archive import archive_definition
from backcast.sources.kafka.archive_look import islands
from backcast.sources.kafka.spelling import AskedOffsets, format_ranges, resolve_offsets
from backcast.spark.gateway import jvm_errors

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from backcast.sources.kafka.whole import Held, Whole

Ends = Mapping[int, int | None]
"""Where to stop in each partition; None, or not named: at the end of the log."""


def make_archive(spark: SparkSession, table: str, *, is_delta: bool) -> None:
    """The table, unless it is there."""
    with jvm_errors(f"making the archive {table}", table=table):
        spark.sql(archive_definition(table, is_delta=is_delta))


def unarchived(whole: Whole, ends: Ends) -> tuple[Ranges, ...]:
    """From where the archive ends to the log's end, or to the given ends.

    Raises PlanRefused when retention was faster, for then the archive would have a hole that nobody can fill.
    """
    states = {each.partition: each for each in whole.log.partitions}
    starts = {number: _end(whole.held, number, state.log_start) for number, state in states.items()}
    lost = tuple(
        OffsetRange(partition=number, start=start, end=states[number].log_start)
        for number, start in starts.items()
        if start < states[number].log_start
    )
    if lost:
        raise PlanRefused(
            f"retention has removed what follows the archive of {whole.log.topic}: offsets {format_ranges(lost)}",
            hint="to go on where the log begins now, and leave them out for good: --offsets earliest",
        )
    return layers([tuple(_up_to(states[number], start, ends.get(number)) for number, start in starts.items())])


def unarchived_of(whole: Whole, asked: AskedOffsets) -> tuple[Ranges, ...]:
    """Those of the asked offsets that the archive lacks. Raises InvalidRequest for what would leave a hole in it."""
    ranges = resolve_offsets(asked, whole.log)
    for each in ranges:
        _refuse_hole(whole, each)
    if whole.leaves_gaps or whole.records is None:
        # Gaps are nothing unusual there: only what runs of ours have passed is known to be archived.
        there = [(each,) for each in whole.passed.ranges]
    else:
        there = [(each,) for each in islands(whole.records, ranges)]
    return layers([ranges], without=there)


def _refuse_hole(whole: Whole, asked: OffsetRange) -> None:
    held, state = whole.held.get(asked.partition), whole.log.partition(asked.partition)
    if held is None or state is None:
        return
    between = (max(held.end, state.log_start), asked.start) if asked.start > held.end else (asked.end, held.start)
    if between[0] < between[1]:
        hole = f"{asked.partition}={between[0]}..{between[1]}"
        raise InvalidRequest(
            f"the archive would have a hole, offsets {hole}, which the log still has", hint="ask for these too"
        )


def _up_to(state: PartitionState, start: int, end: int | None) -> OffsetRange:
    last = state.log_end if end is None else min(end, state.log_end)
    return OffsetRange(partition=state.partition, start=start, end=max(start, last))


def _end(held: Held, number: int, otherwise: int) -> int:
    return held[number].end if number in held else otherwise
