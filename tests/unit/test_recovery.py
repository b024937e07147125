"""What a table proves about how far its stream came, and the way back."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from backcast.model.live import LiveBatch
from backcast.model.log import OffsetRange
from backcast.model.recovery import (
    NO_BATCH,
    Recovery,
    Way,
    cut_off,
    ends_of,
    last_with_rows,
    proven_position,
    way_back,
)


def _batch(
    number: int, end: int, *, version: str | None = None, landed: bool = True, last: int | None = None
) -> LiveBatch:
    offsets = (OffsetRange(partition=0, start=0, end=end), OffsetRange(partition=1, start=5, end=5))
    at = datetime(2026, 1, 1, tzinfo=UTC)
    rows = 1 if version else 0
    return LiveBatch(
        stream="s",
        query_id="q",
        batch=number,
        offsets=offsets,
        base=None,
        at=at,
        version=version,
        landed=landed,
        rows_out=rows,
        last_with_rows=last,
    )


def test_batches_without_rows_behind_the_newest_commit_count_as_long_as_none_is_missing() -> None:
    ends = ends_of("0=0..10,1=5..5")
    assert ends == {0: 10, 1: 5}
    later = [_batch(9, 90), _batch(8, 20), _batch(7, 10, version="77")]
    assert proven_position(ends, 7, later) == {0: 90, 1: 5}
    assert proven_position(ends, 7, [_batch(9, 90)]) == ends, "batch 8 is not on record"
    assert proven_position(ends, 7, [_batch(8, 20, version="78")]) == ends, "its rows are not in the table any more"
    assert proven_position(ends, 7, [_batch(8, 20, landed=False)]) == ends


def test_however_many_batches_had_no_rows_their_newest_record_tells_which_one_had() -> None:
    """The store keeps the newest records alone, and a stream of an hourly window has hundreds without a row."""
    ends = {0: 10, 1: 5}
    newest_first = [_batch(number, number, last=7) for number in range(900, 400, -1)]
    assert proven_position(ends, 7, newest_first) == {0: 900, 1: 5}
    assert proven_position(ends, 6, newest_first) == ends, "rows of batch 7 are not in the table any more"
    unknown = [each.model_copy(update={"last_with_rows": None}) for each in newest_first]
    assert proven_position(ends, 7, unknown) == ends


def test_what_a_checkpoint_that_went_back_has_in_front_of_it_is_not_behind_the_stream() -> None:
    ends = {0: 10, 1: 5}
    rowless = [_batch(number, number, last=7) for number in range(20, 7, -1)]
    assert proven_position(ends, 7, rowless, (20, {0: 20})) == {0: 20, 1: 5}
    assert proven_position(ends, 7, rowless, (12, {0: 12})) == {0: 12, 1: 5}, "it will read on from there"
    assert proven_position(ends, 7, rowless, (5, {0: 2})) == ends, "the table is ahead of it"
    assert proven_position(ends, 7, [], (12, {0: 12})) == ends, "nobody knows that the batches between had no rows"
    anew = [_batch(13, 15, last=7), *rowless]
    assert proven_position(ends, 7, anew) == {0: 15, 1: 5}, "batch 13 was begun anew, so those behind it are void"


def test_a_batch_knows_the_newest_one_with_rows_before_it() -> None:
    rows = _batch(7, 10, version="77")
    assert last_with_rows(0, [], None) == NO_BATCH
    assert last_with_rows(8, [rows], 7) == 7
    assert last_with_rows(10, [_batch(9, 9), _batch(8, 8), rows], 7) == 7
    assert last_with_rows(900, [_batch(899, 9, last=7)], 7) == 7
    assert last_with_rows(2, [_batch(1, 9), _batch(0, 8)], None) == NO_BATCH
    assert last_with_rows(50, [_batch(50, 9, landed=False)], None) == NO_BATCH, "its query began as another stream"
    assert last_with_rows(9, [], 8) == 8, "by the table alone"
    assert last_with_rows(9, [], 7) is None
    assert last_with_rows(9, [_batch(8, 8, landed=False), rows], 7) is None


def test_what_the_log_no_longer_has_is_named() -> None:
    assert cut_off({0: 10, 1: 5}, {0: 12, 1: 5}) == (OffsetRange(partition=0, start=10, end=12),)


def test_only_a_whole_checkpoint_that_stands_where_the_table_does_is_kept() -> None:
    ends = {0: 10}
    assert way_back(sound=True, position=ends, proven=ends)[0] is Way.START
    for sound, position in ((False, ends), (True, None), (True, {0: 9})):
        assert way_back(sound=sound, position=position, proven=ends)[0] is Way.FRESH
    gone = cut_off(ends, {0: 12})
    assert way_back(sound=True, position=ends, proven=ends, gone=gone)[0] is Way.FRESH, "the log begins behind it"


def test_what_a_decision_rests_on_has_moved_when_a_later_look_finds_it_otherwise() -> None:
    told: dict[str, Any] = {
        "stream": "s",
        "pipeline": "p",
        "dataset": "d",
        "table": "t",
        "checkpoint": "/c",
        "query_id": "q",
    }
    looked: dict[str, Any] = {"damages": ("it is not there",), "recoverable": None, "stateful": False, "position": None}
    stands: dict[str, Any] = {"proven": {0: 10}, "batch": 7, "version": "77", "gone": (), "lacking": ()}
    found = Recovery(**told, **looked, **stands, by_offset=True, archived=False, way=Way.FRESH, why="damaged")
    assert found.moved(found.model_copy(update={"version": "78", "why": "damaged still"})) == ""
    assert found.moved(found.model_copy(update={"proven": {0: 20}})) == "the table proves other offsets"
    other = found.model_copy(update={"query_id": "r", "way": Way.START})
    assert found.moved(other) == "another query runs the stream, another way back follows"
