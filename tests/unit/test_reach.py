"""How far a topic should be in a dataset: what is missing there, and what is only not read yet."""

from __future__ import annotations

from backcast.model.gaps import Fate, Hole, joined_holes
from backcast.model.log import Isolation, LogPin, LogSlice, OffsetRange, PartitionState, PinnedPartition
from backcast.model.reach import Reach, begins_of, read_by

LOG = {0: PartitionState(0, 20, 50), 1: PartitionState(1, 0, 9)}


def at(start: int, end: int, partition: int = 0) -> OffsetRange:
    return OffsetRange(partition=partition, start=start, end=end)


def pin(*partitions: OffsetRange, parts: tuple[LogSlice, ...] = ()) -> LogPin:
    pinned = ({"partition": each.partition, "start": each.start, "end": each.end} for each in partitions)
    return LogPin(
        topic="t",
        topic_id="id",
        isolation=Isolation.COMMITTED,
        cleanup=("delete",),
        retention_ms=None,
        retention_bytes=None,
        timestamp_type="CreateTime",
        partitions=tuple(PinnedPartition(**each, log_start=0, log_end=50) for each in pinned),
        slices={str(number): each for number, each in enumerate(parts)},
    )


def test_what_lies_behind_the_position_is_pending_and_what_lies_before_it_is_missing() -> None:
    reach = Reach(LOG, begins={0: 5, 1: 0}, ends={0: 40})
    assert reach.marks() == ((0, 5), (0, 20), (0, 40), (0, 50), (1, 0), (1, 9))
    assert reach.is_pending(at(40, 50), carried=True)
    assert reach.is_pending(at(45, 50), carried=True)
    assert not reach.is_pending(at(38, 40), carried=True)
    assert not reach.is_pending(at(5, 20), carried=True), "what the log has lost nobody will read"


def test_a_partition_without_rows_is_missing_unless_a_stream_will_come_to_it() -> None:
    begins = {0: 20, 1: 0}
    assert not Reach(LOG, begins, ends={}).is_pending(at(0, 9, 1), carried=False)
    assert Reach(LOG, begins, ends={}, streamed=True).is_pending(at(0, 9, 1), carried=False)
    assert Reach(LOG, begins, ends={}).is_pending(at(7, 9, 1), carried=True), "who loads windows comes to it"


def test_runs_of_windows_leave_records_of_other_windows_out() -> None:
    by_time = Reach(LOG, {0: 20, 1: 0}, ends={}, scanned={1: 6})
    assert (1, 6) in by_time.marks()
    assert not by_time.is_pending(at(0, 6, 1), carried=False)
    assert by_time.is_pending(at(6, 9, 1), carried=False)


def test_a_stream_begins_where_it_was_told_to() -> None:
    assert begins_of("earliest", "t", LOG) == {0: 20, 1: 0}
    assert begins_of("latest", "t", LOG) == {}
    assert begins_of('{"t": {"0": 5, "1": -2}}', "t", LOG) == {0: 5, 1: 0}
    assert begins_of('{"t": {"0": -1}}', "t", LOG) == {}


def test_runs_of_offsets_tell_where_they_began_and_ended() -> None:
    asked = LogSlice(ranges=(at(0, 30),), owned=(at(0, 30),), only=(at(3, 10), at(20, 30)))
    other = LogSlice(ranges=(at(2, 4, 1),), owned=(at(2, 4, 1),))
    assert read_by([pin(at(0, 30), parts=(asked,)), pin(at(2, 4, 1), parts=(other,))]) == (
        {0: 3, 1: 2},
        {0: 30, 1: 4},
        {},
    )


def test_neighbours_of_which_the_log_says_the_same_are_one_hole() -> None:
    told = [(at(0, 3), Fate.GONE), (at(3, 5), Fate.THERE), (at(5, 6), Fate.THERE), (at(6, 7, 1), Fate.THERE)]
    found = joined_holes(Hole(range=each, fate=fate) for each, fate in told)
    assert [each.range for each in found] == [at(0, 3), at(3, 6), at(6, 7, 1)]
