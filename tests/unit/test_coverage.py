"""The proof of a read: every offset is accounted for, or the run is rejected with the first one that is not."""

from __future__ import annotations

from backcast.model.coverage import (
    Coverage,
    GapPolicy,
    Observed,
    PartitionCoverage,
    Scanned,
    Status,
    explained,
    seen,
)
from backcast.model.digest import Digest
from backcast.model.log import Isolation, OffsetRange

_RANGES = (OffsetRange(partition=0, start=10, end=20), OffsetRange(partition=3, start=5, end=5))
_DIGEST = Digest(rows=10, high="7", low="9")
_PLAIN = GapPolicy(compacted=False, transactional=False, isolation=Isolation.COMMITTED)


def _observed(rows: int, others: dict[tuple[int, Status], int], positions: Digest = _DIGEST) -> Observed:
    return Observed(positions, rows, others, {})


def test_a_count_that_saw_each_offset_once_is_the_proof() -> None:
    others = {(0, Status.FILTERED): 3, (0, Status.TOMBSTONE): 1, (0, Status.QUARANTINED): 2}
    covered = seen(_RANGES, _observed(4, others), _DIGEST)
    assert covered is not None
    assert covered.complete
    assert covered.partitions == (
        PartitionCoverage(partition=0, start=10, end=20, rows=4, filtered=3, tombstones=1, quarantined=2),
    )
    assert (covered.rows, covered.filtered, covered.tombstones, covered.quarantined) == (4, 3, 1, 2)


def test_a_count_of_anything_else_proves_nothing() -> None:
    """Other offsets with the same number of records, and counts that contradict each other."""
    assert seen(_RANGES, _observed(10, {}, Digest(rows=10, high="8", low="9")), _DIGEST) is None
    assert seen(_RANGES, _observed(9, {}), _DIGEST) is None
    assert seen(_RANGES, _observed(-1, {(0, Status.FILTERED): 11}), _DIGEST) is None


def test_a_gap_is_explained_by_what_the_topic_is_and_by_nothing_else() -> None:
    scanned = [Scanned(0, {Status.ROW: 6}, first_gap=12)]

    def gaps(policy: GapPolicy, uncommitted: dict[int, int] | None = None) -> tuple[int, int, int, int, int | None]:
        (found,) = explained(_RANGES, scanned, policy, uncommitted).partitions
        assert found.complete is (found.unexplained == 0)
        return found.compacted, found.markers, found.aborted, found.unexplained, found.first_unexplained

    compacted = GapPolicy(compacted=True, transactional=True, isolation=Isolation.COMMITTED)
    transactional = GapPolicy(compacted=False, transactional=True, isolation=Isolation.COMMITTED)
    assert gaps(_PLAIN) == (0, 0, 0, 4, 12)
    assert gaps(_PLAIN, {0: 6}) == (0, 0, 0, 4, 12)
    assert gaps(_PLAIN, {0: 9}) == (0, 1, 3, 0, None)
    assert gaps(transactional) == (0, 4, 0, 0, None)
    assert gaps(transactional, {0: 9}) == (0, 1, 3, 0, None)
    assert gaps(compacted, {0: 9}) == (4, 0, 0, 0, None)


def test_a_partition_without_a_single_record_is_a_hole_from_its_start() -> None:
    covered = explained(_RANGES, [], _PLAIN)
    assert covered.partitions[0].unexplained == 10
    (sentence,) = covered.problems
    assert sentence.startswith("partition 0, offsets 10 to 20: no record at 10 offsets, the first is 10")


def test_an_offset_that_was_read_twice_rejects_the_run() -> None:
    covered = explained(_RANGES, [Scanned(0, {Status.ROW: 10}, doubled=2)], _PLAIN)
    assert not covered.complete
    assert covered.problems == ("partition 0, offsets 10 to 20: 2 offsets read twice",)


def test_proofs_of_ranges_that_touch_add_up_in_any_order() -> None:
    first = PartitionCoverage(partition=0, start=0, end=4, rows=3, markers=1)
    second = PartitionCoverage(partition=0, start=4, end=6, filtered=2)
    other = PartitionCoverage(partition=1, start=0, end=1, tombstones=1)
    whole = PartitionCoverage(partition=0, start=0, end=6, rows=3, filtered=2, markers=1)
    left, right = Coverage(partitions=(first,)), Coverage(partitions=(second, other))
    assert left + right == right + left == Coverage(partitions=(whole, other))
    assert (left + right).complete
    assert left + Coverage() == left


def test_proofs_are_joined_where_they_touch_and_an_overlap_is_told() -> None:
    def covered(start: int, end: int) -> Coverage:
        return Coverage(partitions=(PartitionCoverage(partition=0, start=start, end=end, rows=end - start),))

    apart = covered(7, 9) + covered(0, 5)
    assert [(each.start, each.end) for each in apart.partitions] == [(0, 5), (7, 9)]
    overlap = (covered(0, 5) + covered(3, 9)).partitions[0]
    assert (overlap.doubled, overlap.unexplained, overlap.complete) == (2, 0, False)
    inside = (covered(0, 9) + covered(3, 5)).partitions[0]
    assert (inside.end, inside.doubled, inside.complete) == (9, 2, False)
