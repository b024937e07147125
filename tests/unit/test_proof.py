"""Proofs of jobs add up to what a plan pinned, or the first offset that is wrong is named."""

from __future__ import annotations

from backcast.model.coverage import Coverage, PartitionCoverage
from backcast.model.log import Isolation, LogPin, LogSlice, OffsetRange
from backcast.model.proof import LogProof, problem


def pin(*owned: tuple[int, int]) -> LogPin:
    ranges = [(OffsetRange(partition=0, start=start, end=end),) for start, end in owned]
    return LogPin(
        topic="orders",
        topic_id="t",
        isolation=Isolation.COMMITTED,
        cleanup=("delete",),
        retention_ms=None,
        retention_bytes=None,
        timestamp_type="CreateTime",
        partitions=(),
        slices={f"c{number}": LogSlice(ranges=each, owned=each) for number, each in enumerate(ranges)},
    )


def proven(token: int, *read: tuple[int, int], handed_over: int | None = None) -> LogProof:
    parts = tuple(PartitionCoverage(partition=0, start=start, end=end, rows=end - start) for start, end in read)
    coverage = Coverage(partitions=parts)
    rows = coverage.rows if handed_over is None else handed_over
    return LogProof(input="orders", token=token, chunks=(), coverage=coverage, handed_over=rows)


def test_parts_that_lie_apart_are_proven_when_each_is() -> None:
    assert problem(pin((0, 5), (7, 9)), [proven(1, (0, 5), (7, 9))]) is None
    assert problem(pin((0, 5), (7, 9)), [proven(1, (7, 9)), proven(2, (0, 5))]) is None


def test_what_was_not_read_or_read_for_nobody_is_told_with_its_place() -> None:
    assert problem(pin((0, 9)), [proven(1, (0, 5)), proven(2, (7, 9))]) == (
        "2 offsets, from offset 5 of partition 0 on, not accounted for"
    )
    assert problem(pin((0, 5), (7, 9)), [proven(1, (0, 9))]) == (
        "2 offsets, from offset 5 of partition 0 on, read though nobody asked for them"
    )
    assert "2 offsets were read twice" in (problem(pin((0, 9)), [proven(1, (0, 5)), proven(2, (3, 9))]) or "")
    assert "beyond the slack" in (problem(pin((0, 5)), [proven(1, (0, 5), handed_over=4)]) or "")
