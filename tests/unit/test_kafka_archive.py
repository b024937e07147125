"""Where an archive and its log meet, decided without either of them."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from backcast.cli.render.archive import render_archive
from backcast.cli.render.plan import render_plan
from backcast.errors import InvalidRequest, PlanRefused
from backcast.model.archiving import ArchiveReport
from backcast.model.coverage import Coverage, PartitionCoverage
from backcast.model.log import (
    ArchivePin,
    Isolation,
    LogPin,
    OffsetRange,
    PartitionState,
    PinnedPartition,
    Ranges,
    TopicFacts,
)
from backcast.model.manifest import Survival
from backcast.model.source import KafkaAccess
from backcast.sources.kafka.archive_gap import unarchived, unarchived_of
from backcast.sources.kafka.retention import forgotten, judged
from backcast.sources.kafka.spelling import parse_offsets
from backcast.sources.kafka.topic import KafkaTopic
from backcast.sources.kafka.whole import Held, Whole, cut_held, last_passed, taken_range, with_gaps
from backcast.testing.samples import sample_manifest
from tests.unit.cli_screens import sample_plan, shown

NOW = datetime(2026, 3, 1, tzinfo=UTC)
DAY = timedelta(days=1)


def at(start: int, end: int, partition: int = 0) -> OffsetRange:
    return OffsetRange(partition=partition, start=start, end=end)


def log(start: int, end: int = 100, **more: object) -> TopicFacts:
    facts: dict[str, object] = {
        "cleanup": frozenset({"delete"}),
        "retention_ms": 86_400_000,
        "retention_bytes": None,
        "timestamp_type": "CreateTime",
    }
    return TopicFacts("t", "id", (PartitionState(0, start, end),), **{**facts, **more})  # type: ignore[arg-type]


def whole(facts: TopicFacts, held: Held, *, leaves_gaps: bool = False) -> Whole:
    return Whole(KafkaTopic(KafkaAccess("nobody:1"), "t"), facts, leaves_gaps, held)


@pytest.mark.parametrize(
    ("log_start", "held", "wanted", "taken"),
    [
        (50, at(0, 60), at(10, 90), at(10, 60)),
        (50, at(0, 60), at(10, 40), at(10, 40)),
        (50, at(0, 60), at(60, 90), None),
        (50, at(0, 60), at(70, 90), None),
        (0, at(20, 60), at(10, 90), None),
        (50, at(20, 60), at(10, 90), at(20, 60)),
        (50, at(0, 30), at(10, 90), at(10, 30)),
        (50, None, at(10, 90), None),
    ],
)
def test_all_that_is_archived_is_taken_from_there_unless_only_the_log_has_the_start(
    log_start: int, held: OffsetRange | None, wanted: OffsetRange, taken: OffsetRange | None
) -> None:
    assert taken_range(log(log_start), {} if held is None else {0: held}, wanted) == taken


def test_each_offset_comes_from_one_of_both() -> None:
    pin = ArchivePin(place="a", ranges=(at(10, 60),))
    for start in range(10, 80, 7):
        for end in range(start, 90, 9):
            asked: Ranges = (at(start, end), at(0, 5, partition=1))
            ours, rest = pin.part(asked), pin.rest(asked)
            assert sorted(_offsets(ours) + _offsets(rest)) == sorted(_offsets(asked))


def _offsets(ranges: Ranges) -> list[tuple[int, int]]:
    return [(each.partition, offset) for each in ranges for offset in range(each.start, each.end)]


@pytest.mark.parametrize(
    ("log_start", "taken", "survival", "missing"),
    [
        (50, at(10, 60), Survival.AT_RISK, []),
        (50, at(10, 90), Survival.OK, []),
        (50, at(10, 30), Survival.PARTIAL, [at(30, 50)]),
        (50, at(20, 60), Survival.PARTIAL, [at(10, 20)]),
        (95, at(20, 60), Survival.PARTIAL, [at(10, 20), at(60, 90)]),
        (95, None, Survival.GONE, [at(10, 90)]),
    ],
)
def test_retention_is_judged_only_by_what_the_log_has_to_give(
    log_start: int, taken: OffsetRange | None, survival: Survival, missing: list[OffsetRange]
) -> None:
    archive = None if taken is None else ArchivePin(place="a", ranges=(taken,))
    (found,), lost = judged(log(log_start), (at(10, 90),), archive, {0: NOW - 2 * DAY}, NOW)
    assert (found.survival, lost) == (survival, missing)


@pytest.mark.parametrize(
    ("held", "start", "first", "lost"),
    [
        (None, 50, NOW, (at(0, 50),)),
        (at(0, 60), 20, NOW, ()),
        (at(10, 60), 10, NOW, (at(0, 10),)),
        (at(10, 60), 10, NOW - 9 * DAY, ()),
        (at(0, 30), 50, NOW, (at(30, 50),)),
        (at(0, 30), 50, NOW - 9 * DAY, ()),
        (at(0, 30), 60, NOW, ()),
    ],
)
def test_a_time_that_neither_of_both_remembers_is_missing(
    held: OffsetRange | None, start: int, first: datetime, lost: Ranges
) -> None:
    since = NOW - 5 * DAY
    assert forgotten(log(50), (at(start, start),), {0: first}, since, NOW, {0: held} if held else None) == lost


def proven(*ranges: OffsetRange, records: int = 0) -> Coverage:
    """What runs of ours have passed."""
    parts = (
        PartitionCoverage(partition=each.partition, start=each.start, end=each.end, rows=records) for each in ranges
    )
    return Coverage(partitions=tuple(parts))


def test_offsets_without_a_record_that_runs_have_passed_count_as_archived() -> None:
    assert with_gaps({0: at(3, 9)}, proven(at(0, 5)) + proven(at(5, 10))) == {0: at(0, 10)}
    assert with_gaps({0: at(3, 9)}, proven(at(20, 30))) == {0: at(3, 9)}
    assert with_gaps({}, proven(at(0, 2, partition=1))) == {1: at(0, 2, partition=1)}
    assert cut_held(log(0, 8), {0: at(3, 9), 1: at(0, 5, partition=1)}) == {0: at(3, 8)}


def test_what_runs_have_passed_tells_where_something_is_missing() -> None:
    passed = proven(at(0, 20)) + proven(at(45, 90))
    assert last_passed(passed, {0: 44}) == {0: 19}
    assert last_passed(passed, {0: 60}) == {0: 60}
    assert last_passed(proven(at(45, 90)), {0: 44}) == {}


def test_what_is_left_to_archive_begins_where_the_archive_ends() -> None:
    assert unarchived(whole(log(50), {0: at(0, 60)}), {}) == ((at(60, 100),),)
    assert unarchived(whole(log(50), {}), {0: 70}) == ((at(50, 70),),)
    assert unarchived(whole(log(50), {0: at(0, 100)}), {}) == ()
    assert unarchived(whole(log(50), {0: at(0, 90)}), {0: 70}) == ()
    with pytest.raises(PlanRefused, match=re.escape("offsets 0=30..50")):
        unarchived(whole(log(50), {0: at(0, 30)}), {})


def test_asked_offsets_that_would_leave_a_hole_are_refused_while_the_log_can_fill_it() -> None:
    asked = parse_offsets("0=70..90", "t")
    with pytest.raises(InvalidRequest, match=re.escape("0=60..70")):
        unarchived_of(whole(log(50), {0: at(0, 60)}), asked)
    assert unarchived_of(whole(log(70), {0: at(0, 60)}), asked) == ((at(70, 90),),)
    with pytest.raises(InvalidRequest, match=re.escape("0=20..40")):
        unarchived_of(whole(log(0), {0: at(40, 60)}), parse_offsets("0=0..20", "t"))
    gaps = replace(whole(log(50), {0: at(0, 60)}, leaves_gaps=True), passed=proven(at(0, 60)))
    assert unarchived_of(gaps, parse_offsets("0=50..90", "t")) == ((at(60, 90),),)


def test_the_screens_say_how_many_offsets_come_from_where() -> None:
    manifest = sample_manifest(days=3)
    archive = ArchivePin(place="lake.raw.orders", version="7", ranges=(at(10, 60),))
    log_pin = LogPin(
        topic="orders",
        topic_id="id",
        isolation=Isolation.COMMITTED,
        cleanup=("delete",),
        retention_ms=None,
        retention_bytes=None,
        timestamp_type="CreateTime",
        partitions=(PinnedPartition(partition=0, start=10, end=90, log_start=50, log_end=100),),
        archive=archive,
    )
    pins = tuple(each.model_copy(update={"log": log_pin}) for each in manifest.inputs[:1])
    told = shown(render_plan(sample_plan(inputs=pins)), width=120)
    assert "50 offsets from the archive lake.raw.orders, 30 offsets from the log" in told
    assert LogPin.model_validate_json(log_pin.model_dump_json()) == log_pin
    report = ArchiveReport(
        source="orders", topic="orders", table="lake.raw.orders", runs=("r-1",), copied=(at(60, 90),), records=29
    )
    assert shown(render_archive(report)).splitlines() == [
        "29 records copied from topic orders to lake.raw.orders",
        "30 offsets of 1 partition: 0=60..90",
        "by r-1",
    ]
    nothing = report.model_copy(update={"runs": (), "copied": (), "records": 0})
    assert shown(render_archive(nothing)) == "nothing to copy: lake.raw.orders has it all"
