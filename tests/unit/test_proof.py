"""Proofs of jobs add up to what a plan pinned, or the first offset that is wrong is named."""

from __future__ import annotations

from datetime import UTC, datetime

from backcast.model.coverage import Coverage, PartitionCoverage
from backcast.model.log import Isolation, LogPin, LogSlice, OffsetRange
from backcast.model.proof import COVERED, LogProof, newest, problem, summary
from backcast.model.run import Event


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
    assert "2 offsets read twice" in (problem(pin((0, 9)), [proven(1, (0, 5)), proven(2, (3, 9))]) or "")
    assert "beyond the slack" in (problem(pin((0, 5)), [proven(1, (0, 5), handed_over=4)]) or "")


def told(number: int, *chunks: str, name: str = "orders", rejected: int = 0) -> Event:
    proof = LogProof(input=name, token=number, chunks=chunks, coverage=Coverage(), handed_over=0, rejected=rejected)
    at = datetime(2026, 1, 1, tzinfo=UTC)
    return Event(run_id="r", number=number, at=at, name=COVERED, data=proof.as_json(), previous="", sha256="")


def test_what_a_repeated_chunk_tells_takes_the_place_of_what_its_whole_job_told() -> None:
    """A group that failed comes again in halves; another input of the same chunks has its own numbers."""
    events = [
        told(1, "a", "b", rejected=3),
        told(2, "c", rejected=1),
        told(3, "a", "b", name="refunds", rejected=9),
        told(4, "a", rejected=2),
    ]
    assert [(each.token, each.aside) for each in newest(events)] == [(2, 1), (3, 9), (4, 2)]
    assert [each.token for each in newest([*events, told(5, "b")])] == [2, 3, 4, 5]


def test_what_was_rejected_is_told_beside_what_became_of_the_offsets() -> None:
    one = proven(1, (0, 5)).model_copy(update={"rejected": 2})
    told_all = "6 offsets of 1 partition: 6 rows (2 of them rejected by the transform)"
    assert summary(pin((0, 6)), [one, proven(2, (5, 6))]) == told_all
    assert "rejected" not in proven(1, (0, 5)).as_json(), "documents on record keep their bytes"
