"""Which part of a table is replaced when records that nobody could read are taken up again."""

from __future__ import annotations

from datetime import date

from backcast.model.log import Isolation, LogPin, LogSlice, OffsetRange
from backcast.model.request import Request
from backcast.retrying import of_chunks
from backcast.testing.samples import sample_manifest


def of(start: int, end: int, partition: int = 0) -> OffsetRange:
    return OffsetRange(partition=partition, start=start, end=end)


def asked(*offsets: OffsetRange) -> Request:
    """For these, of a run over five days that read twelve offsets each, two of them as slack."""
    manifest = sample_manifest(days=5)
    ranges = [(of(10 * number, 10 * number + 12), of(0, 1, partition=1)) for number in range(5)]
    log = LogPin(
        topic="orders",
        topic_id="t",
        isolation=Isolation.COMMITTED,
        cleanup=("delete",),
        retention_ms=None,
        retention_bytes=None,
        timestamp_type="CreateTime",
        partitions=(),
        slices={
            chunk.id: LogSlice(ranges=each, owned=each) for chunk, each in zip(manifest.chunks, ranges, strict=True)
        },
    )
    pin = manifest.inputs[0].model_copy(update={"log": log})
    return of_chunks(Request(pipeline="orders", retries="r"), manifest, [pin], {pin.dataset: offsets}, "UTC")


def test_one_day_or_neighbours_are_a_window() -> None:
    found = asked(of(5, 6))
    assert (found.start, found.end) == ("2025-01-01T00:00:00+00:00", "2025-01-02T00:00:00+00:00")
    found = asked(of(11, 12), of(25, 26))
    assert (found.start, found.end) == ("2025-01-01T00:00:00+00:00", "2025-01-04T00:00:00+00:00")
    assert found.retries == "r"


def test_days_with_others_between_them_are_named() -> None:
    """What lies between is not restated."""
    found = asked(of(5, 6), of(45, 47))
    assert (found.start, found.dates) == (None, (date(2025, 1, 1), date(2025, 1, 5)))


def test_a_record_that_every_chunk_reads_may_be_of_any_of_them() -> None:
    found = asked(of(0, 1, partition=1))
    assert (found.start, found.end) == ("2025-01-01T00:00:00+00:00", "2025-01-06T00:00:00+00:00")
